"""Estimates before a search: they count what a search then does, and the command says them first."""

import pytest
from typer.testing import CliRunner

import wordsway as ws
from families import tiny, tokenizer
from wordsway.cli.main import app
from wordsway.measures import expected
from wordsway.models.moving.map import PretrainedMap
from wordsway.support import progress

TEXT = "The waiter was rude, and the soup cold."


@pytest.mark.parametrize("budget", ["quick", "default"])
def test_a_search_makes_about_as_many_evaluations(budget: str) -> None:
    phi = PretrainedMap(tiny("bert"), "pooled", tokenizer=tokenizer())
    X = phi.encode(TEXT)
    tokens = [token for pieces in X.pieces for token in pieces]
    result = ws.word_sensitivity(phi, X, "all", radius=1.0, budget=budget, random_draws=0)
    assert 1 / 3 < expected.evaluations_used(len(tokens), budget) / result.evaluations < 3


def test_more_effort_and_more_words_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "time_of_run", lambda *arguments: 0.01)
    phi = PretrainedMap(tiny("bert"), "pooled", tokenizer=tokenizer())
    X = phi.encode(TEXT)

    def seconds(words: int, budget: int | str | None) -> float:
        return expected.search_seconds(phi, X.X, range(1, 1 + words), [1.0] * len(X), budget, "cpu")

    assert seconds(4, "quick") < seconds(4, None) == seconds(4, "default") < seconds(4, "thorough")
    assert seconds(2, "quick") < seconds(4, "quick") and seconds(3, 100) == pytest.approx(0.01 * 300 * 1.6)


def test_a_run_is_timed() -> None:
    phi = PretrainedMap(tiny("bert"), "pooled", tokenizer=tokenizer())
    X = phi.encode(TEXT)
    assert 0 < expected.time_of_run(phi, X.X, 1, 1.0, "cpu") < 5


def test_the_command_says_it_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LONG", 0.0)
    words = ["flip", "I love her smile", "--word", "love", "--budget", "quick", "--real-words", "5"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and done.stderr.startswith("wordsway: about ")
    assert "s in all; shorter: --real-words 0\n" in done.stderr
    quiet = CliRunner().invoke(app, [*words, "--quiet", "--json"])
    assert quiet.exit_code == 0 and not quiet.stderr
