"""Many texts: what one gradient step finds, tables in every format, runs that are stopped, several models."""

import inspect
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
import torch
from scipy.stats import t as student
from torch.autograd.functional import jacobian
from typer.main import get_command

import wordsway as ws
from wordsway.cli.main import app
from wordsway.datasets.readers import read_texts
from wordsway.maps.base import moved
from wordsway.measures.one_step import word_steps
from wordsway.models.loading.load import read_tokenizer
from wordsway.models.loading.locate import locate
from wordsway.report.page import report_of
from wordsway.studies.corpus import COLUMNS
from wordsway.studies.estimates import mean_interval
from wordsway.studies.run import engines
from wordsway.studies.run.store import Store
from wordsway.studies.word_ranking import ranked
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
        assert read_texts(path, "review") == (texts, {"n": list(range(len(texts)))})
        with pytest.raises(ws.InputError, match=r"no column 'text'; its columns are 'n', 'review'"):
            read_texts(path)

    def test_one_text_a_line(self, tmp_path: Path) -> None:
        (tmp_path / "t.txt").write_text("one\n\ntwo\n", encoding="utf-8")
        assert read_texts(tmp_path / "t.txt", lines=True) == (["one", "", "two"], {})
        with pytest.raises(ws.InputError, match="--lines"):
            read_texts(tmp_path / "t.txt")

    def test_own_columns_keep_their_values(self, tmp_path: Path) -> None:
        rows = 'id,code,score,text\n7,007,0.50,"a, b"\n8,,1.5,c\n'
        (tmp_path / "t.csv").write_text(rows, encoding="utf-8")
        _, columns = read_texts(tmp_path / "t.csv")
        assert columns == {"id": [7, 8], "code": ["007", ""], "score": ["0.50", "1.5"]}  # numbers only without loss
        (tmp_path / "t.csv").write_text("id,text\n7,a,b\n", encoding="utf-8")
        with pytest.raises(ws.InputError, match=r"row 1 .* more fields"):
            read_texts(tmp_path / "t.csv")


class TestCorpus:
    def test_rows_are_those_of_each_text(self) -> None:
        texts = [TEXTS[0], "", TEXTS[1], TEXTS[0]]
        told: list[tuple[int, int, str]] = []
        options: dict[str, Any] = {"budget": "quick", "engine": "inline"}
        found = ws.measure_texts(texts, map="raf", **options, progress=lambda *done: told.append(done))
        assert told[0] == (0, 12, "text 1 of 2") and told[-1][:2] == (12, 12)  # a text that stands twice is done once
        assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
        assert {done for done, _, _ in told} >= {0, 1, 2, 3, 4, 12}  # it moves inside a text
        assert found.empty == (2,) and found.measured == 3 and not found.failed
        data = found.to_dataframe()
        assert list(data["text_number"].unique()) == [1, 3, 4]
        assert list(data.columns) == ["text_number", "text", "subject", "word", "word_text", "word_kind", "radius",
                                      "change", "upper", "relative"]  # fmt: skip
        alone = ws.Question(TEXTS[0], map="raf", budget="quick", random_draws=0).measure()
        for number in (1, 4):
            mine = data[data["text_number"] == number]
            assert set(mine["text"]) == {TEXTS[0]} and set(mine["radius"]) == {1.0}
            bounds = {(word.word, word.lower, word.upper) for word in alone.words or ()}
            assert set(zip(mine["word"], mine["change"], mine["upper"], strict=True)) == bounds
            assert mine["change"].is_monotonic_decreasing and float(mine["relative"].mean()) == pytest.approx(1.0)
        words = {row["text"]: row for row in found.words()}
        assert words["smile"]["occurrences"] == 2 and words["a"]["occurrences"] == 2  # "A" and "a"
        assert [row["words"] for row in found.by_text()] == [4, 8, 4]
        assert {row["text"] for row in found.kinds()} == {"content", "function", "punctuation"}

    def test_progress_moves_inside_texts_on_processes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engines, "_LOOK", 0.002)
        told: list[tuple[int, int, str]] = []
        texts = ["I love her smile and the way that she laughs", "One"]
        options: dict[str, Any] = {"map": "raf", "budget": "quick", "engine": "processes", "workers": 2}
        found = ws.measure_texts(texts, **options, progress=lambda *done: told.append(done))
        assert found.measured == 2 and told[-1][:2] == (11, 11)
        assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
        assert len({done for done, _, _ in told} - {0, 1, 10, 11}) >= 2  # inside the longer text
        assert "texts 1-2 of 2" in {label for _, _, label in told}

    def test_python_measures_here_unless_asked(self) -> None:
        assert inspect.signature(ws.measure_texts).parameters["engine"].default == "inline"
        command: Any = dict(get_command(app).commands)["measure"]  # pyright: ignore[reportAttributeAccessIssue]
        assert next(each for each in command.params if each.name == "engine").default == "processes"

    def test_a_script_without_a_guard_is_told_which_call_to_move(self, tmp_path: Path) -> None:
        script = tmp_path / "unguarded.py"
        script.write_text(
            "import wordsway as ws\n"
            "try:\n"
            "    ws.measure_texts(['One', 'Two'], map='rf', budget=8, engine='processes', workers=2)\n"
            "except ws.InputError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
        assert done.stdout.startswith(
            "worker processes cannot start; in a script of your own, call measure_texts below"
        )
        assert done.stdout.count("\n") == 1 and "Traceback" not in done.stderr  # workers do not do the work again

    def test_own_columns_are_carried_over(self) -> None:
        columns = {"id": [7, 8], "word": ["x", None], "day": [date(2026, 1, 2), date(2026, 1, 3)]}
        options: dict[str, Any] = {"map": "rf", "budget": 20, "engine": "inline"}
        data = ws.measure_texts(TEXTS[2:4], **options, columns=columns).to_dataframe()
        first, second = data[data["text_number"] == 1].iloc[0], data[data["text_number"] == 2].iloc[0]
        assert (first["id"], first["your_word"], first["day"]) == (7, "x", "2026-01-02")
        assert second["id"] == 8 and pandas.isna(second["your_word"]) and isinstance(second["word"], numpy.integer)
        frame = pandas.DataFrame({"id": [7, 8]})
        assert list(ws.measure_texts(TEXTS[2:4], **options, columns=frame).to_dataframe()["id"]) == list(data["id"])
        with pytest.raises(ws.InputError, match="3 values for 2 texts"):
            ws.measure_texts(TEXTS[2:4], **options, columns={"id": [1, 2, 3]})
        with pytest.raises(ws.InputError, match="two columns would be called 'your_word'"):
            ws.measure_texts(TEXTS[2:4], **options, columns={"word": [1, 2], "your_word": [1, 2]})
        with pytest.raises(ws.InputError, match="texts must be a list of texts; give one text in brackets"):
            ws.measure_texts("one text", **options)
        with pytest.raises(ws.InputError, match="got list of NoneType, str"):
            ws.measure_texts(["a text", None], **options)  # pyright: ignore[reportArgumentType]

    def test_shares_of_real_words_are_of_places_where_some_were_tried(self) -> None:
        rows = [
            {
                "text_number": k,
                "word_text": name,
                "flips_at": 0.1 * k,
                "easier_than": 0.5,
                "real_word": real,
                "tried": n,
            }
            for k, name, real, n in ((1, "a", "b", 5), (2, "a", None, 0), (1, ".", None, 0))
        ]
        lines = {line["text"]: line["real"] for line in ranked(rows, lambda row: row["word_text"], rare=True)}
        assert lines == {"a": 1.0, ".": None}

    def test_intervals_need_three_texts_and_are_not_negative(self) -> None:
        rows = [{"text_number": k, "subject": "m", "word": 1, "word_text": word, "word_kind": "content",
                 "relative": value, "change": value, "radius": 1.0}
                for word, values in {"far": (0.01, 0.01, 2.0), "two": (1.0, 3.0)}.items()
                for k, value in enumerate(values, 1)]  # fmt: skip
        found = ws.Corpus(("m",), ("far two", "far two", "far"), "quick", tuple(rows))
        words = {row["text"]: row for row in found.words()}
        assert words["far"]["low"] == 0.0 and words["far"]["high"] > 2.0  # three texts, far apart
        assert words["two"]["low"] is None and words["two"]["value"] == 2.0
        assert found.plot_words().get_xlim()[0] == 0.0
        assert "3x in 3 texts" in next(label.get_text() for label in found.plot_words().get_yticklabels())

    def test_a_text_that_fails_is_named(self) -> None:
        long = "word " * 600
        found = ws.measure_texts([TEXTS[0], long], map="raf", budget="quick", engine="inline")
        assert list(found.failed) == ["2"] and "tokens" in found.failed["2"]
        # Two that begin alike and fail for reasons of their own, and one that begins so and does not fail.
        alike = ["word " * count for count in (600, 700, 9)]
        found = ws.measure_texts(alike, map="raf", budget="quick", engine="inline")
        assert list(found.failed) == ["1", "2"] and {row["text_number"] for row in found.rows} == {3}
        assert "602 tokens" in found.failed["1"] and "702 tokens" in found.failed["2"]
        cropped = ws.measure_texts([long], map="raf", budget="quick", engine="inline", max_tokens=8)
        assert not cropped.failed and len(cropped.rows) == 6

    @pytest.mark.parametrize(
        ("texts", "options", "words"),
        [
            ([" "], {"map": "raf"}, "no text"),
            (TEXTS, {}, "a model or a map"),
            (TEXTS, {"map": "raf", "model": "sentiment"}, "a model or a map"),
            (TEXTS, {"map": "raf", "radius": 0.0}, "radius"),
            (TEXTS, {"map": "raf", "budget": "long"}, "budget"),
            (TEXTS, {"map": "raf", "budget": "step"}, "a gradient step of a model"),
        ],
    )
    def test_errors(self, texts: list[str], options: dict[str, Any], words: str) -> None:
        with pytest.raises(ws.InputError, match=words):
            ws.measure_texts(texts, engine="inline", **options)


def of_margins(margins: list[float], words: list[str], limit: float = 1.0, noise: float = 0.0) -> ws.Corpus:
    """Make a table in which the k-th word of each text flips at k margins of that text, where that is allowed."""
    draw, by_cell, texts = random.Random(0), {}, []
    for number, margin in enumerate(margins):
        texts.append(" ".join(words) + f" {number}")
        rows = []
        for k, word in enumerate(words, 1):
            need = margin * k * (1 + draw.uniform(-noise, noise))
            found = {"flips_at": need, "flips_to": "no"} if need <= limit else {"flips_at": None, "flips_to": None}
            rows.append({"word": k, "word_text": word, "word_kind": "content", "prediction": "yes", "allowed": limit,
                         "probability": 0.9, **found, "real_word": None, "real_distance": None})  # fmt: skip
        by_cell["m", texts[-1]] = rows
    return ws.Corpus.of(texts, ["m"], by_cell, {}, {}, "quick")


class TestComparedWithinTheirTexts:
    """Words are compared with the others of their text: how near a text is to a tie does not matter."""

    def test_a_word_of_a_text_near_a_tie_has_no_advantage(self) -> None:
        wide, near = of_margins([0.1, 0.1, 0.1], ["a", "b", "c"]), of_margins([0.1, 0.001, 0.02], ["a", "b", "c"])
        for found in (wide, near):
            assert [(line["text"], line["value"]) for line in found.words()] == [("a", 1.0), ("b", 0.5), ("c", 0.0)]
            assert [row["easier_than"] for row in found.records()] == [1.0, 0.5, 0.0] * 3
        # A word that stands in a text near a tie only, where it needs most.
        one = of_margins([0.1, 0.1, 0.1], ["a", "b"])
        rows = tuple(row | {"text_number": 4} for row in of_margins([0.001], ["x", "late"]).rows)
        both = ws.Corpus(("m",), (*one.texts, "x late"), "quick", one.rows + rows)
        assert {line["text"]: line["value"] for line in both.words()}["late"] == 0.0
        assert both.words()[-1]["text"] == "late"

    def test_words_without_a_flip_need_more_than_those_with_one(self) -> None:
        found = of_margins([0.3], ["a", "b", "c", "d", "e"])  # the last two need more than is allowed
        values = [row["easier_than"] for row in found.records()]
        assert values == [1.0, 0.75, 0.5, 0.125, 0.125]
        assert sum(values) / 5 == pytest.approx(0.5)  # of any text

    def test_texts_without_a_flip_and_of_one_word_compare_nothing(self) -> None:
        none, alone = of_margins([2.0, 0.1, 0.1, 0.1], ["a", "b"]), of_margins([0.1], ["a"])
        assert [row["easier_than"] for row in none.records()[:2]] == [None, None]
        line = none.words()[0]
        assert (line["text"], line["texts"], line["compared"], line["flipped"]) == ("a", 4, 3, 0.75)
        assert alone.words()[0]["value"] is None and alone.shared_words() == [] and alone.leading() == ""
        assert none.finding().startswith("m: a change of one word flips 3 of 4 texts (0 by a real word); ")
        assert none.finding().endswith("median 0.100, range 0.100 to over 1")
        nothing = of_margins([2.0, 3.0], ["a", "b"])
        assert nothing.finding() == "m: no change of one word, of up to 1 of its norm, was found to flip any of 2 texts"
        assert nothing.plot().has_data() and [line["value"] for line in nothing.words()] == [None, None]

    @pytest.mark.parametrize("texts", [1, 2, 3, 20])
    def test_titles_name_no_word_and_few_texts_no_leader(self, texts: int, tmp_path: Path) -> None:
        words = ["ypsilon", "zett", "eks"]
        found = of_margins([0.1 + 0.01 * k for k in range(texts)], words, noise=0.05)
        title = found.plot().get_title(loc="left")
        assert not any(word in found.finding() + title for word in words) and f"{texts} text" in found.finding()
        lead = report_of(found).lead
        assert report_of(found).title == found.finding()
        named = any("ypsilon" in line for line in lead)
        assert named == (texts >= 3) == ("\u201cypsilon\u201d (easier than 100%)" in found.leading())
        assert not any("zett" in line for line in lead)  # an average word

    def test_a_word_that_is_not_separated_does_not_lead(self) -> None:
        rows = tuple(
            {"text_number": k, "subject": "m", "word": 1, "word_text": "far", "word_kind": "content", "radius": 1.0,
             "flips_at": 0.1, "easier_than": value, "real_word": None}
            for k, value in enumerate((0.2, 0.9, 1.0), 1)
        )  # fmt: skip
        found = ws.Corpus(("m",), ("far",) * 3, "quick", rows)
        line = found.words()[0]
        assert line["value"] == pytest.approx(0.7) and line["low"] < 0.5 and line["high"] == 1.0
        assert found.leading() == (
            "No word in three texts or more needs a smaller change than an average word of its texts, by its 95% "
            "interval."
        )

    def test_a_file_of_an_earlier_version_is_compared_too(self) -> None:
        found = of_margins([0.1, 0.2, 0.3], ["a", "b"])
        rows = tuple({name: value for name, value in row.items() if name != "easier_than"} for row in found.rows)
        earlier = ws.Corpus(("m",), found.texts, "quick", rows)
        assert earlier.words() == found.words() and earlier.kinds() == found.kinds()


class TestPicture:
    def test_a_dot_for_each_text_and_words_beside_them(self) -> None:
        found = of_margins([0.3, 0.1, 2.0], ["ypsilon", "zett"])
        axes = found.plot()
        assert len(axes.figure.axes) == 2
        assert [line.get_xdata()[0] for line in axes.get_lines()] == pytest.approx([0.1, 0.3, 1.0])
        assert [line.get_markerfacecolor() == "white" for line in axes.get_lines()] == [False, False, True]
        assert [each.get_text() for each in axes.texts] == ["ypsilon", "ypsilon", "no flip found"]
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert [label.split()[0] for label in labels] == ["2", "1", "3"]
        assert [label.get_text()[:7] for label in axes.figure.axes[1].get_yticklabels()] == ["ypsilon", "zett (2"]
        assert len(of_margins([0.3], ["a", "b"]).plot().figure.axes) == 1  # no word in several texts

    def test_many_texts_are_a_histogram(self) -> None:
        axes = of_margins([0.01 * k for k in range(1, 51)], ["a", "b"]).plot_texts()
        assert sum(bar.get_height() for bar in axes.patches) == 50 and axes.get_ylabel() == "texts"


def invoke(*arguments: str) -> Any:
    from typer.testing import CliRunner

    return CliRunner().invoke(app, list(arguments))


def one_text(text: str, *options: str) -> dict[str, Any]:
    done = invoke("measure", text, *options, "--budget", "quick", "--json", "--quiet")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


class TestSameAnswer:
    """A text of a table has the answer that `wordsway measure TEXT` gives, whatever the engine is."""

    def test_of_a_classifier_on_two_processes(self, tmp_path: Path) -> None:
        texts = ["Cold soup", "Fine", "Dull", "Lovely"]
        pandas.DataFrame({"id": [4, 5, 6, 7], "review": texts}).to_csv(tmp_path / "t.csv", index=False)
        arguments = ["measure", "--file", str(tmp_path / "t.csv"), "--text-column", "review", "--model", "sentiment"]
        tables = []
        for engine in (["inline"], ["processes", "--workers", "2"]):
            out = tmp_path / f"{engine[0]}.parquet"
            done = invoke(*arguments, "--budget", "quick", "--engine", *engine, "-o", str(out))
            assert done.exit_code == 0, done.output
            tables.append(pandas.read_parquet(out))
        assert "without regard to case" in done.output and "easier than" in done.output
        pandas.testing.assert_frame_equal(*tables)
        data = tables[0]
        may_miss = ["flips_at", "flips_to", "easier_than", "real_word", "real_distance"]
        assert not data.drop(columns=may_miss).isna().any().any()
        assert not {"change", "upper", "flips", "relative", "prediction_after"} & set(data.columns)
        alone = one_text(texts[0], "--model", "sentiment")
        mine = data[data["text_number"] == 1]
        assert set(mine["prediction"]) == {alone["prediction"]} and set(mine["id"]) == {4}
        assert list(mine["probability"]) == [alone["probability"]] * len(mine) and set(mine["text"]) == {texts[0]}
        expected = {word["text"]: word for word in alone["words"]}
        assert set(mine["word_text"]) == set(expected)
        for row in mine.to_dict("records"):
            word = expected[row["word_text"]]
            real, best = word["real"] or {"text": None, "radius": None}, word["best"]
            assert none_if_nan(row["flips_at"]) == word["radius"] and none_if_nan(row["flips_to"]) == word["to"]
            assert (none_if_nan(row["real_word"]), none_if_nan(row["real_distance"])) == (real["text"], real["radius"])
            assert row["probability_after"] == word["lowest"] and row["tried"] == word["tried"]
            assert (row["best_word"], row["best_probability"]) == (best["text"], best["probability"])
        assert list(mine["rank"]) == sorted(mine["rank"]) and mine["real_distance"].dropna().is_monotonic_increasing

    def test_of_an_encoder(self) -> None:
        alone = one_text(TEXTS[3], "--model", "minilm", "--radius", "0.1")
        found = ws.measure_texts(TEXTS[3:4], "minilm", budget="quick", engine="inline")
        rows = {row["word_text"]: row for row in found.records()}
        assert {name: row["change"] for name, row in rows.items()} == {w["text"]: w["lower"][0] for w in alone["words"]}
        assert {row["radius"] for row in rows.values()} == {0.1}
        assert not {"prediction", "flips_at", "probability"} & set(found.to_dataframe().columns)
        changes = [row["change"] for row in found.records()]
        assert changes == sorted(changes, reverse=True)


def none_if_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


class TestCommand:
    @pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM])
    def test_stopped_and_resumed_gives_an_equal_table(self, tmp_path: Path, stop: signal.Signals) -> None:
        file = tmp_path / "texts.csv"
        pandas.DataFrame({"text": TEXTS}).to_csv(file, index=False)
        arguments = ["measure", "--file", str(file), "--model", "sentiment", "--budget", "step", "--engine", "inline"]
        stopped, whole = tmp_path / "stopped.parquet", tmp_path / "whole.parquet"
        running = subprocess.Popen(
            [sys.executable, "-m", "wordsway", *arguments, "-o", str(stopped)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        while count(tmp_path / "stopped.run") < 2 and running.poll() is None:
            time.sleep(0.005)
        os.kill(running.pid, stop)
        _, said = running.communicate()
        kept = count(tmp_path / "stopped.run")
        assert 2 <= kept <= len(TEXTS) and (kept == len(TEXTS) or not stopped.exists())
        if stop == signal.SIGTERM and running.returncode == 130:
            assert "are kept in" in said and "Traceback" not in said
        for out in (stopped, whole):
            done = invoke(*arguments, "-o", str(out))
            assert done.exit_code == 0, done.output
            already = f"{kept} of {len(TEXTS)} texts already measured"
            assert (already in done.output) == (out == stopped)
        pandas.testing.assert_frame_equal(pandas.read_parquet(stopped), pandas.read_parquet(whole))
        assert "kind of word" in done.output and "not the word's importance" in done.output

    def test_the_page_says_what_it_shows(self, tmp_path: Path) -> None:
        found = ws.measure_texts(TEXTS[:2], map="rf", budget=20, engine="inline")
        found.save(tmp_path / "words.html")
        page = (tmp_path / "words.html").read_text(encoding="utf-8")
        assert f"<h1>{found.finding()}" in page and "Corpus" not in page
        assert all(text in page for text in TEXTS[:2])
        for column in found.to_dataframe().columns:
            assert column == "text" or f"{COLUMNS[column]}" in page.replace("&#39;", "'")

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
            {"text_number": k, "subject": "m", "word_text": f"w{w}", "word_kind": "content", "change": 1.0,
             "relative": 1 + draw.gauss(0, 0.3)}
            for k in range(1, 9) for w in range(60)
        )  # fmt: skip
        found = ws.Corpus(("m",), ("x",) * 8, "quick", rows).words()
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
