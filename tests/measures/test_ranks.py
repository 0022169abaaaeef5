"""Ranks that respect the search's own spread: the rule, and what people see of it."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app
from wordsway.maps.attention.random_attention import Attention
from wordsway.maps.base import RANDOM_SPREAD, TRAINED_SPREAD
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name, shared_ranks, tie_levels, tie_sentence
from wordsway.report.measurement import lead_of
from wordsway.report.page import fragment_html, report_html
from wordsway.support.result import result_of

TEXT = "I love her smile"


@pytest.mark.parametrize(
    ("values", "spread", "ranks"),
    [
        ([3.0, 1.0, 2.0], 0.0, [(1, 3)] * 3),  # nothing is known about how far the search is below the supremum
        ([2.0, 2.0, 1.0], 0.05, [(1, 2), (1, 2), (3, 1)]),
        ([1.0, 0.99, 0.98, 0.97], 0.05, [(1, 4)] * 4),
        ([1.0, 0.97, 0.94, 0.5], 0.05, [(1, 2), (1, 3), (2, 2), (4, 1)]),  # the middle one may be either
        ([1.0, 0.9499], 0.05, [(1, 1), (2, 1)]),
        ([0.0, 0.0], 0.05, [(1, 2), (1, 2)]),
        ([7.0], 0.05, [(1, 1)]),
        ([], 0.05, []),
    ],
)
def test_the_rule(values: list[float], spread: float, ranks: list[tuple[int, int]]) -> None:
    assert shared_ranks(values, spread) == ranks


def test_bounds_separate() -> None:
    """The lower bound of one must be above the upper bound of the other; words without one are separated from none."""
    assert shared_ranks([3.0, 2.0, 1.0], 0.0, [3.5, 2.9, 1.5]) == [(1, 1), (2, 1), (3, 1)]
    assert shared_ranks([3.0, 2.0, 1.0], 0.0, [3.5, 3.1, 1.5]) == [(1, 2), (1, 2), (3, 1)]
    assert shared_ranks([3.0, 2.0, 1.0], 0.0, [3.5, None, 1.5]) == [(1, 2), (1, 2), (3, 1)]
    assert shared_ranks([3.0, 2.0, 1.0], 0.0, [None] * 3) == [(1, 3)] * 3


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 3)), min_size=1, max_size=12))
@example([(5.495556498559546, 0.0)] * 3)  # their mean, rounded, is above all three
def test_any_bounds(bounds: list[tuple[float, float]]) -> None:
    """Whatever the true values within the bounds are, every word's true rank is among its possible ones; words that are
    not separated share a shade."""
    lower, upper = [low for low, _ in bounds], [low + more for low, more in bounds]
    ranks = shared_ranks(lower, 0.0, upper)
    for truth in (lower, upper, [low + more / 2 for low, more in bounds]):
        for value, (rank, tied) in zip(truth, ranks, strict=True):
            above = sum(other > value for other in truth)
            not_below = sum(other >= value for other in truth)
            assert rank <= not_below and above + 1 <= rank + tied - 1
    levels = tie_levels(lower, ranks)
    for i, j in itertools.combinations(range(len(bounds)), 2):
        separated = lower[i] > upper[j] or lower[j] > upper[i]
        assert separated or levels[i] == levels[j]
    assert max(levels) <= max(lower) and min(levels) >= min(lower)


def test_how_ranks_and_ties_are_said() -> None:
    assert [rank_name(1, 1), rank_name(1, 4), rank_name(5, 2)] == ["1", "1-4", "5-6"]
    said = tie_sentence(["waiter", "rude", "food", "The"], 0.05)
    assert said == (
        "4 words tie (waiter, rude, food, The): their numbers differ by less than the search's own spread, 5%."
    )
    assert tie_sentence(["a", "b"], 0.0) == (
        "2 words tie (a, b): their bounds overlap, so this map does not separate them."
    )
    assert "8 words tie (a, b, c, d, e and 3 more): " in tie_sentence(list("abcdefgh"), 0.03)


def test_every_map_says_how_steady_its_search_is() -> None:
    assert ws.PretrainedMap("sentiment", "pooled").search_spread == TRAINED_SPREAD
    assert ws.PretrainedMap("sentiment", "logits").search_spread > TRAINED_SPREAD  # logits vary more
    assert ws.RandomTransformer(depth=2).sample(8, seed=0).search_spread == RANDOM_SPREAD
    assert ws.RandomAttention().sample(8, seed=0).search_spread == 0
    assert ws.FromCallable(lambda X: X).search_spread == 0


@pytest.fixture(scope="module")
def tied() -> ws.Sensitivity:
    """smile 3.29 ties with love 3.26, that with I 3.12, and that with her 3.08."""
    phi = ws.RandomAttention().sample(384, seed=0)
    phi.search_spread = 0.05
    return ws.word_sensitivity(phi, ws.encode(TEXT))


def test_a_result_has_ties_and_keeps_them(tied: ws.Sensitivity, tmp_path: Path) -> None:
    assert tied.words is not None and tied.spread == 0.05
    assert [(word.text, word.rank, word.tied) for word in tied.words] == [
        ("I", 2, 3),
        ("love", 1, 3),
        ("her", 3, 2),
        ("smile", 1, 2),
    ]
    assert [word.text for word in tied.ranked_words] == ["smile", "love", "I", "her"]  # still by their numbers
    assert tied.top_word is not None and tied.top_word.lower == tied.lower
    assert [word.text for word in tied.top_words] == ["smile", "love"]
    assert "one of 2 words that tie" in repr(tied)
    tied.save(tmp_path / "r.json")
    saved = json.loads((tmp_path / "r.json").read_text())
    assert saved["spread"] == 0.05 and [word["tied"] for word in saved["words"]] == [3, 3, 2, 2]
    again = ws.load_result(tmp_path / "r.json")
    assert again.words == tied.words and again.spread == tied.spread


def test_files_from_before_have_no_ties(tied: ws.Sensitivity) -> None:
    values: dict[str, Any] = tied.to_dict()
    del values["spread"]
    for rank, word in zip((3, 2, 4, 1), values["words"], strict=True):
        del word["tied"]
        word["rank"] = rank
    old = result_of(values, "old")
    assert old.spread == 0 and [word.text for word in old.top_words] == ["smile"]
    assert "word 'smile'" in repr(old)


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["measure", *arguments, "--weights", "1"], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.stdout


def rows(output: str) -> list[list[str]]:
    _, _, table = output.partition(" rank")
    return [line.split() for line in table.splitlines()[1:5]]


def test_the_command_names_no_winner_of_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Attention, "search_spread", 0.05)
    output = shown(TEXT)
    assert [row[:2] for row in rows(output)] == [["1-2", "smile"], ["1-3", "love"], ["2-4", "I"], ["3-4", "her"]]
    assert "one of 2 words that tie, found by search" in output and "matters most" not in output
    *_, tie, draw, caveat = output.splitlines()
    assert tie == (
        "Largest possible effect found: 2 words tie (smile, love): their numbers differ by less than the search's own "
        "spread, 5%."
    )
    assert draw.startswith("One draw of the map's weights") and caveat == NOT_IMPORTANCE
    tokens = shown("--map", "raf", "--n", "4", "--d", "16", "--token", "all")
    assert any("-" in row[0] for row in rows(tokens))
    monkeypatch.setattr(Attention, "search_spread", 0.99)
    (names,) = re.findall(r"5 words tie \((.*)\):", shown("[/b] love", "--budget", "quick"))
    assert sorted(names.split(", ")) == ["/", "[", "]", "b", "love"]  # no markup


def test_without_a_spread_bounds_decide() -> None:
    output = shown(TEXT)
    assert [row[0] for row in rows(output)] == ["1-4"] * 4 and "their bounds overlap" in output


def test_the_report_and_the_page_of_the_app(tied: ws.Sensitivity) -> None:
    words = fragment_html(tied)  # what the app shows, and the report
    assert all(words.count(f'data-rank="{rank}"') == 1 for rank in ("1-2", "1-3", "2-4", "3-4"))
    assert words.count('data-level="8"') == 4  # love ties with smile, I with love and her with I: one shade
    assert words.count('data-stretched="8"') == words.count('data-stretched="0"') == 1
    assert words.count('tabindex="0" data-word') == 1 and "rank 1-2 of 4" in words
    page = report_html(tied)
    data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)[0])
    assert [row[:2] for row in data["rows"]] == [["1-2", "smile"], ["1-3", "love"], ["2-4", "I"], ["3-4", "her"]]
    lead = lead_of(tied)
    assert lead[0].startswith("Changing one word can alter the output by 3.29 times")
    assert lead[1].startswith("Largest possible effect found: 2 words tie (\u201csmile\u201d, \u201clove\u201d): ")
    assert tied.words is not None
    evil = tuple(replace(word, text="<b>x</b>") for word in tied.words)
    assert "\u201c&lt;b&gt;x&lt;/b&gt;\u201d" in report_html(replace(tied, words=evil))
