"""Words over draws of the weights: the statistics, the result, and what is called separated."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from wordsway.measures.compare_draws import draw_seeds, draws_of
from wordsway.measures.question import Question
from wordsway.measures.separation import separation, studentized_range

TEXT = "I love her smile"


@pytest.fixture(scope="module")
def drawn() -> ws.DrawComparison:
    return ws.compare_draws(TEXT, budget="quick", random_draws=20)


def test_two_words_are_a_paired_t_test() -> None:
    """With two words, Tukey's interval is the paired one of Student's t."""
    from scipy.stats import ttest_rel

    one, two = [3.1, 2.9, 3.4, 3.0, 3.3], [3.0, 2.95, 3.1, 2.8, 3.1]
    found = separation([one, two])
    interval = ttest_rel(one, two).confidence_interval(0.95)
    assert found is not None and found.freedom == 4
    assert found.margin == pytest.approx((interval.high - interval.low) / 2, rel=1e-6)


@pytest.mark.parametrize(("words", "freedom"), [(2, 1), (3, 2), (4, 12), (10, 36), (50, 196), (240, 956), (30, 29)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_the_studentized_range_is_scipys(words: int, freedom: int, level: float) -> None:
    from scipy.stats import studentized_range as known

    assert studentized_range(level, words, freedom) == pytest.approx(known.ppf(level, words, freedom), rel=1e-7)


def test_what_all_words_share_does_not_count() -> None:
    """A draw on which all words are large says nothing about their order."""
    rows = [[1.0, 5.0, 9.0], [0.9, 4.9, 8.9], [0.5, 4.5, 8.5]]
    found = separation(rows)
    assert found is not None and found.margin == pytest.approx(0.0, abs=1e-9)
    assert separation([[1.0, 2.0]]) is None and separation([[1.0], [2.0]]) is None


def test_equal_words_are_rarely_called_separated() -> None:
    """Of 400 texts of eight equal words, about 5% have a pair that is called separated: not one pair in twenty."""
    source = random.Random(1)
    wrong = 0
    for _ in range(400):
        shared = [source.gauss(0, 1) for _ in range(5)]
        rows = [[3 + common + source.gauss(0, 0.1) for common in shared] for _ in range(8)]
        found = separation(rows)
        means = [sum(row) / 5 for row in rows]
        wrong += found is not None and max(means) - min(means) > found.margin
    assert 6 <= wrong <= 36  # 20 expected


def test_draws_are_independent_and_can_be_made_again(drawn: ws.DrawComparison) -> None:
    assert draw_seeds(0, 5)[0] == 0 and len({seed for s in range(20) for seed in draw_seeds(s, 5)}) == 100
    assert drawn.seeds == tuple(draw_seeds(0, 5)) and drawn.asked == 5
    tokens = ws.encode(TEXT)
    for each in drawn.maps:
        for k in (0, 3):
            phi = ws.named_map(each.name, len(tokens), 384, drawn.seeds[k])
            once = ws.word_sensitivity(phi, tokens, seed=drawn.seeds[k], budget="quick", random_draws=20)
            for word, single in zip(each.words, once.words or (), strict=True):
                assert word.lower[k] == pytest.approx(single.lower, rel=1e-6)
                assert word.upper[k] == pytest.approx(single.upper, rel=1e-6)
            assert once.random is not None and each.random[k] == pytest.approx(once.random.mean, rel=1e-6)


def test_means_ranks_and_margins_belong_together(drawn: ws.DrawComparison) -> None:
    attention, features = drawn.maps
    assert (attention.name, features.name) == ("raf", "rf") and attention.mean > 3 * features.mean
    for each in drawn.maps:
        assert each.margin is not None and [word.word for word in each.words] == [1, 2, 3, 4]
        for word in each.words:
            assert word.mean == pytest.approx(sum(word.lower) / 5) and word.proven is not None
            assert word.proven > word.mean > (each.typical or 9)
            above = sum(each.separated(other, word) for other in each.words)
            below = sum(each.separated(word, other) for other in each.words)
            assert (word.rank, word.tied) == (1 + above, 4 - above - below)
        assert each.ranked[0] in each.top


@pytest.mark.parametrize(("budget", "misses"), [("quick", 0.1), (24, 0.1), ("default", 0.0), (None, 0.0)])
def test_luck_of_a_short_search_is_no_difference(budget: Any, misses: float) -> None:
    """A quick search of "all" once missed 5%, and was called separated from words that it ties with."""
    found = ws.compare_draws("Rain fell all day", "raf", seed=3, budget=budget, random_draws=0, certificate=False)
    (each,) = found.maps
    tukey = separation([word.lower for word in each.words])
    assert tukey is not None and each.misses == misses
    assert each.margin == pytest.approx(tukey.margin + misses * max(word.mean for word in each.words))
    assert {(word.rank, word.tied) for word in each.words} == {(1, 4)}


def test_luck_of_a_search_of_a_transformer_is_no_difference() -> None:
    found = ws.compare_draws("Cold soup", "transformer:depth=1", weights=2, budget="default", random_draws=0)
    assert found.maps[0].misses == ws.RandomTransformer(depth=1).sample(d=8, seed=0).search_spread > 0


def test_a_result_is_kept_whole(drawn: ws.DrawComparison, tmp_path: Path) -> None:
    drawn.save(tmp_path / "d.json")
    again = ws.load_result(tmp_path / "d.json")
    assert again.to_dict() == drawn.to_dict() and again.maps == drawn.maps
    assert "not separated" in repr(drawn) and "5 draws" in repr(drawn)
    frame = drawn.to_dataframe()
    assert len(frame) == 8 and set(frame["subject"]) == {"raf", "rf"}
    assert list(frame["rank"]) == [word.rank for each in drawn.maps for word in each.ranked]
    assert frame.attrs["text"] == drawn.text["text"]
    drawn.plot().figure.savefig(tmp_path / "d.png")
    page = ws.report_html(tmp_path / "d.json")
    assert "One word can move raf" in page and 'class="stretch"' in page
    broken = {**json.loads((tmp_path / "d.json").read_text()), "maps": 3}
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    for name, problem in (("broken.json", "damaged"), ("none.json", "cannot read")):
        with pytest.raises(ws.InputError, match=problem):
            ws.load_result(tmp_path / name)


def test_one_draw_and_little_time() -> None:
    quick = {"budget": "quick", "random_draws": 0}
    one = ws.compare_draws(TEXT, "raf", weights=1, **quick)
    (each,) = one.maps
    assert each.margin is None and each.typical is None and len(one.seeds) == 1
    for a in each.words:
        for b in each.words:
            assert each.separated(a, b) == (a.lower[0] > b.upper[0])
    hurried = ws.compare_draws(TEXT, "raf", weights=5, seconds=1e-6, certificate=False, **quick)
    assert len(hurried.seeds) == 1 and hurried.asked == 5
    assert {(word.rank, word.tied) for word in hurried.maps[0].words} == {(1, 4)}  # without bounds nothing is separated
    single = ws.compare_draws(TEXT, "rf", word="love", weights=2, **quick)
    assert len(single.maps[0].words) == 1 and single.maps[0].margin is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"maps": ()}, "different names"),
        ({"maps": ("raf", "raf")}, "different names"),
        ({"maps": ("raf", "nothing")}, "nothing"),
        ({"weights": 0}, "weights"),
        ({"word": "hate"}, "not in the text"),
    ],
)
def test_errors(arguments: dict, problem: str) -> None:
    with pytest.raises(ws.InputError, match=problem):
        ws.compare_draws(TEXT, **arguments)


def test_rows_have_no_words() -> None:
    asked = Question(ws.synthetic_tokens(4, 8, 0), map="raf")
    with pytest.raises(ws.InputError, match="give a text"):
        draws_of(asked, ("raf",), 2)


def test_a_list_of_texts_gives_the_results_of_each() -> None:
    options = {"maps": ("rf",), "weights": 2, "budget": 60, "random_draws": 0}
    heard: list[tuple[int, int]] = []
    both: Any = ws.compare_draws(["Cold soup", "Lovely staff"], **options, progress=lambda *told: heard.append(told))
    assert both.texts == ("Cold soup", "Lovely staff") and heard == [(1, 2), (2, 2)]
    alone = ws.compare_draws("Lovely staff", **options)
    assert both.results[1].records() == alone.records()


def test_what_is_no_text_is_told_in_plain_words() -> None:
    with pytest.raises(ws.InputError, match="give a text, a list of texts"):
        ws.compare_draws(torch.ones(3, 8))  # pyright: ignore[reportArgumentType]
