"""Many texts: what one gradient step finds, tables in every format, runs that are stopped, several models."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas
import pytest
import torch
from scipy.stats import t as student
from torch.autograd.functional import jacobian

import wordsway as ws
from wordsway.cli.main import app
from wordsway.datasets.readers import read_texts
from wordsway.maps.base import moved
from wordsway.measures.one_step import word_steps
from wordsway.models.loading.load import read_tokenizer
from wordsway.models.loading.locate import locate
from wordsway.studies.estimates import mean_interval
from wordsway.studies.run.store import Store
from wordsway.testing.output_tests import small_model

TEXTS = ["I love her smile", "A dull film, and a long one", "The soup was cold", "Not so good", "What a splendid day"]


@pytest.fixture(scope="module")
def live() -> tuple[Any, Any]:
    return small_model(causal=False), read_tokenizer(locate("minilm"))


def features(phi: ws.PretrainedMap, X: torch.Tensor, token: int, row: torch.Tensor) -> torch.Tensor:
    places = torch.arange(len(X))[:, None] == token
    return phi.output.features(phi.model, torch.where(places, row, X)[None], phi.at)[0].flatten()


class TestOneStep:
    @pytest.mark.parametrize("output", ["logits", "pooled"])
    def test_changes_are_those_of_plain_runs_and_beat_random_moves(self, live: tuple[Any, Any], output: str) -> None:
        phi = ws.PretrainedMap(live[0], output, tokenizer=live[1])
        tokens = phi.encode("Unbelievably good films, seen twice")
        steps, radius = word_steps(phi, tokens, 0.01), 0.01
        assert [step.text for step in steps] == list(tokens.words)
        X, base = tokens.X.double(), phi(tokens.X.double())
        draws = torch.Generator().manual_seed(0)
        for step in steps:
            assert step.token in tokens.pieces[step.word - 1]
            size = radius * float(X[step.token].norm())
            changes = []
            for _ in range(30):
                delta = torch.randn(1, X.shape[1], generator=draws, dtype=torch.float64)
                after = phi(moved(X, (step.token,), delta * size / delta.norm()))
                changes.append(float((after - base).norm() / base.norm()))
            assert step.change > max(changes)
            slopes = jacobian(lambda row: features(phi, X, step.token, row), X[step.token])  # noqa: B023
            most = float(torch.linalg.matrix_norm(slopes, 2)) * size / float(base.norm())  # to first order
            assert 0.3 * most < step.change < 1.1 * most

    def test_probability_falls_as_it_says(self, live: tuple[Any, Any]) -> None:
        phi = ws.PretrainedMap(live[0], "logits", tokenizer=live[1])
        tokens = phi.encode(TEXTS[0])
        base = phi(tokens.X.double())
        for step in word_steps(phi, tokens, 0.02):
            assert step.probability == pytest.approx(float(base.softmax(0).max()), rel=1e-6)
            assert step.probability is not None and step.probability_after is not None
            assert step.probability_after < step.probability
            assert (step.prediction_after != step.prediction) <= (step.probability_after < 0.5)


class TestTables:
    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
    def test_every_format_has_the_same_texts(self, tmp_path: Path, suffix: str) -> None:
        texts = [*TEXTS, 'with "quotes", a comma\nand a line', ""]
        data, path = pandas.DataFrame({"n": range(len(texts)), "review": texts}), tmp_path / f"texts{suffix}"
        if suffix == ".parquet":
            data.to_parquet(path)
        elif suffix == ".jsonl":
            data.to_json(path, orient="records", lines=True)
        else:
            data.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
        assert read_texts(path, "review") == texts
        with pytest.raises(ws.InputError, match=r"no column 'text'; its columns are 'n', 'review'"):
            read_texts(path)

    def test_one_text_a_line(self, tmp_path: Path) -> None:
        (tmp_path / "t.txt").write_text("one\n\ntwo\n", encoding="utf-8")
        assert read_texts(tmp_path / "t.txt", lines=True) == ["one", "", "two"]
        with pytest.raises(ws.InputError, match="--lines"):
            read_texts(tmp_path / "t.txt")


class TestCorpus:
    def test_rows_are_those_of_each_text(self) -> None:
        texts = [TEXTS[0], "", TEXTS[1], TEXTS[0]]
        told: list[tuple[int, int]] = []
        found = ws.measure_texts(texts, map="raf", engine="inline", progress=lambda *done: told.append(done))
        assert told == [(0, 2), (1, 2), (2, 2)]  # a text that stands twice is measured once
        assert found.empty == (2,) and found.measured == 3 and not found.failed
        data = found.to_dataframe()
        assert list(data["text_number"].unique()) == [1, 3, 4]
        alone = ws.Question(TEXTS[0], map="raf", radius=0.1, budget="quick", random_draws=0).measure()
        for number in (1, 4):
            mine = data[data["text_number"] == number]
            assert list(mine["change"]) == [word.lower for word in alone.words or ()]
            assert float(mine["relative"].mean()) == pytest.approx(1.0)
        words = {row["text"]: row for row in found.words()}
        assert words["smile"]["occurrences"] == 2 and words["a"]["occurrences"] == 2  # "A" and "a"
        assert [row["words"] for row in found.by_text()] == [4, 8, 4]
        assert {row["text"] for row in found.kinds()} == {"content", "function", "punctuation"}

    def test_a_text_that_fails_is_named(self) -> None:
        long = "word " * 600
        found = ws.measure_texts([TEXTS[0], long], map="raf", engine="inline")
        assert list(found.failed) == ["2"] and "tokens" in found.failed["2"]
        # Two that begin alike and fail for reasons of their own, and one that begins so and does not fail.
        alike = ["word " * count for count in (600, 700, 9)]
        found = ws.measure_texts(alike, map="raf", engine="inline")
        assert list(found.failed) == ["1", "2"] and {row["text_number"] for row in found.rows} == {3}
        assert "602 tokens" in found.failed["1"] and "702 tokens" in found.failed["2"]
        cropped = ws.measure_texts([long], map="raf", engine="inline", max_tokens=8)
        assert not cropped.failed and len(cropped.rows) == 6

    @pytest.mark.parametrize(
        ("texts", "options", "words"),
        [
            ([" "], {"map": "raf"}, "no text"),
            (TEXTS, {}, "a model or a map"),
            (TEXTS, {"map": "raf", "model": "sentiment"}, "a model or a map"),
            (TEXTS, {"map": "raf", "radius": 0.0}, "radius"),
            (TEXTS, {"map": "raf", "budget": "long"}, "budget"),
        ],
    )
    def test_errors(self, texts: list[str], options: dict[str, Any], words: str) -> None:
        with pytest.raises(ws.InputError, match=words):
            ws.measure_texts(texts, engine="inline", **options)


def invoke(*arguments: str) -> Any:
    from typer.testing import CliRunner

    return CliRunner().invoke(app, list(arguments))


class TestCommand:
    def test_killed_and_resumed_gives_an_equal_table(self, tmp_path: Path) -> None:
        file = tmp_path / "texts.csv"
        pandas.DataFrame({"text": TEXTS}).to_csv(file, index=False)
        arguments = ["measure", "--file", str(file), "--model", "sentiment", "--engine", "inline", "-o"]
        stopped, whole = tmp_path / "stopped.parquet", tmp_path / "whole.parquet"
        killed = subprocess.Popen(
            [sys.executable, "-m", "wordsway", *arguments, str(stopped)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        while count(tmp_path / "stopped.run") < 2 and killed.poll() is None:
            time.sleep(0.005)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        kept = count(tmp_path / "stopped.run")
        assert 2 <= kept <= len(TEXTS) and (kept == len(TEXTS) or not stopped.exists())
        for out in (stopped, whole):
            done = invoke(*arguments, str(out))
            assert done.exit_code == 0, done.output
        pandas.testing.assert_frame_equal(pandas.read_parquet(stopped), pandas.read_parquet(whole))
        assert "kind of word" in done.output and "not importance" in done.output

    def test_options_that_mean_nothing_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "t.txt").write_text("one\ntwo\n", encoding="utf-8")
        for option, words in (("--joint", "--joint does not go with"), ("--radius=0.1,1", "one positive number")):
            done = invoke("measure", "--file", str(tmp_path / "t.txt"), "--lines", option)
            assert done.exit_code == 2 and words in done.output
        unknown = invoke("measure", "--file", str(tmp_path / "t.txt"), "--lines", "-o", str(tmp_path / "t.xlsx"))
        assert unknown.exit_code == 2 and ".xlsx" in unknown.output and not (tmp_path / "t.run").exists()


def count(folder: Path) -> int:
    """Count the texts that a run has kept."""
    if not (folder / "results.sqlite").exists() and not folder.is_dir():
        return 0
    try:
        with Store.read(folder) as store:
            return len(store.results())
    except (ws.InputError, OSError):
        return 0


def test_intervals_of_many_words_hold_together() -> None:
    """Of words without any effect of their own, the one that leads has an interval above the average in 5% of corpora
    at most; with intervals for single words it would in most."""
    draw = random.Random(0)
    leads = 0
    for _ in range(40):
        rows = tuple(
            {"text_number": k, "subject": "m", "word_text": f"w{w}", "word_kind": "content", "effect": 1.0,
             "flips": None, "relative": 1 + draw.gauss(0, 0.3)}
            for k in range(8) for w in range(60)
        )  # fmt: skip
        found = ws.Corpus(("m",), 8, 0.1, "step", rows, {}, ()).words()
        assert len(found) == 60 and [row["low"] for row in found] == sorted((row["low"] for row in found), reverse=True)
        leads += found[0]["low"] > 1
    assert leads <= 6


def test_one_of_several_means_has_a_wider_interval() -> None:
    values = [1.0, 2.0, 4.0, 3.0]
    alone, one_of = mean_interval(values), mean_interval(values, 20)
    assert one_of.low is not None and alone.low is not None and one_of.value == alone.value
    at: Any = student(df=3)
    ratio = float(at.ppf(1 - 0.025 / 20) / at.ppf(0.975))
    assert one_of.value - one_of.low == pytest.approx(ratio * (alone.value - alone.low))
