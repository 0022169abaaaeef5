"""Results side by side: what is subtracted, what ties, and what the table and the picture show."""

import random
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import wordsway as ws
from wordsway.measures.differences import Measured, interval, ranks_of
from wordsway.measures.draws_result import DrawComparison
from wordsway.measures.flip_radii import FLIP_SPREAD, FlipRadii
from wordsway.measures.profile_result import RadiusProfile
from wordsway.models.loading.load import read_tokenizer
from wordsway.models.loading.locate import locate
from wordsway.support.names import RESULT_SUBJECTS, RESULTS
from wordsway.testing.output_tests import small_model

TEXT = "I love her smile"


@lru_cache
def draws(seed: int, weights: int = 3, maps: tuple[str, ...] = ("raf", "rf"), radius: float = 1.0) -> DrawComparison:
    options: dict[str, Any] = {"weights": weights, "seed": seed, "radius": radius}
    return ws.compare_draws(TEXT, maps, budget=24, random_draws=0, certificate=False, **options)


@lru_cache
def flips() -> FlipRadii:
    tokenizer = read_tokenizer(locate("minilm"))
    return ws.flip_radius(small_model(False), TEXT, tokenizer=tokenizer, budget=20, radius=3.0, real_words=0)


@lru_cache
def profile(radii: tuple[float, ...] = (0.1,), output: str = "last") -> RadiusProfile:
    tokenizer = read_tokenizer(locate("minilm"))
    options: dict[str, Any] = {"tokenizer": tokenizer, "output": output, "flips": False, "budget": "quick"}
    return ws.radius_profile(small_model(False), TEXT, list(radii), **options)


@lru_cache
def single() -> ws.Sensitivity:
    return ws.Question(TEXT, map="raf", budget=40, random_draws=0).measure()


def mean_of(values: list[float], seeds: tuple[int, ...] = ()) -> Measured:
    mean = sum(values) / len(values)
    sd = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return Measured(mean, sd=sd, count=len(values), draws=tuple(values), seeds=seeds)


class TestIntervals:
    def test_are_those_of_scipy(self) -> None:
        a, b = [1.0, 1.4, 0.7, 1.1], [1.9, 1.2, 1.6, 2.2]
        for rows in (1, 8):
            level = 1 - 0.05 / rows
            welch: Any = stats.ttest_ind(b, a, equal_var=False).confidence_interval(level)
            pairs: Any = stats.ttest_rel(b, a).confidence_interval(level)
            assert interval(mean_of(a), mean_of(b, (5, 6, 7, 8)), rows) == pytest.approx(tuple(welch))
            assert interval(mean_of(a, (1, 2, 3, 4)), mean_of(b, (1, 2, 3, 4)), rows) == pytest.approx(tuple(pairs))

    def test_all_rows_hold_together(self) -> None:
        """Of comparisons of the same thing with itself, at most 5% say that any of 8 words differs."""
        source, wrong, runs = random.Random(0), 0, 600
        for _ in range(runs):
            sides = [[[source.gauss(3.0, 0.2) for _ in range(5)] for _ in range(8)] for _ in range(2)]
            spans = [interval(mean_of(a), mean_of(b, (1,)), 8) for a, b in zip(*sides, strict=True)]
            wrong += any(span is not None and not span[0] <= 0 <= span[1] for span in spans)
        assert stats.binomtest(wrong, runs, 0.05, alternative="greater").pvalue > 0.01

    def test_none_for_a_single_draw(self) -> None:
        assert interval(Measured(1.0, sd=0.0), mean_of([1.0, 2.0]), 3) is None


class TestDraws:
    def test_two_seeds_are_judged_by_their_draws(self, tmp_path: Path) -> None:
        first, second = draws(0), draws(1)
        for name, result in (("a", first), ("b", second)):
            result.save(tmp_path / f"{name}.json")
        found = ws.compare_results([ws.load_result(tmp_path / f"{name}.json") for name in "ab"], names=["a", "b"])
        assert found.same and len(found.compared_rows) == 8 and "Welch" in found.reading
        words = {(each.name, word.text): word for each in first.maps for word in each.words}
        others = {(each.name, word.text): word for each in second.maps for word in each.words}
        for row in found.compared_rows:
            key = (row.key["map"], row.key["text"])
            a, b = words[key], others[key]
            assert row.values == (a.mean, b.mean) and row.ranks[0] == (a.rank, a.tied)
            welch: Any = stats.ttest_ind(b.lower, a.lower, equal_var=False).confidence_interval(1 - 0.05 / 8)
            assert (row.low, row.high) == pytest.approx(tuple(welch))
            assert row.tied == (welch.low <= 0 <= welch.high)

    def test_one_word_that_differs_is_found(self) -> None:
        first, second = draws(0), draws(1)
        moved, *rest = second.maps[0].words
        other = replace(moved, mean=moved.mean + 40, lower=tuple(value + 40 for value in moved.lower))
        shifted = replace(second, maps=(replace(second.maps[0], words=(other, *rest)), *second.maps[1:]))
        found = ws.compare_results([first, shifted])
        apart = [row.key["text"] for row in found.compared_rows if row.tied is False]
        assert moved.text in apart and f"{len(apart)} of 8 rows differ" in found.summary()

    def test_the_same_draws_are_paired_and_equal(self) -> None:
        found = ws.compare_results([draws(0), replace(draws(0), seconds=1.0)])
        assert all(row.difference == 0 and row.tied for row in found.compared_rows)
        assert "paired" in found.reading and "equal in 8 rows" in found.summary()

    def test_one_draw_says_nothing_about_noise(self) -> None:
        found = ws.compare_results([draws(0, 1), draws(1, 1)])
        assert all(row.tied is None and row.low is None for row in found.compared_rows)
        assert "nothing is known" in found.summary() and "single draw" in found.reading

    def test_two_maps_of_two_files(self) -> None:
        found = ws.compare_results([draws(0, 3, ("raf",)), draws(0, 3, ("rf",))], names=["raf", "rf"])
        assert len(found.compared_rows) == 4 and all(row.tied is False for row in found.compared_rows)

    def test_rows_of_one_result_only_are_named(self, tmp_path: Path) -> None:
        first, (each, *others) = draws(0), draws(1).maps
        second = replace(draws(1), maps=(replace(each, words=each.words[1:]), *others))
        found = ws.compare_results([first, second])
        assert found.only == (1, 0)
        assert found.only_lines == [f"Only in first: {each.words[0].text} (#{each.words[0].word}), {each.name}."]
        found.save(tmp_path / "both.json")
        assert ws.load_result(tmp_path / "both.json") == found
        assert replace(found, only_rows=()).only_lines == ["Only in first: 1 row."]  # of an earlier file

    def test_a_map_of_one_result_only_is_one_name(self, tmp_path: Path) -> None:
        found = ws.compare_results(draws(0), draws(1, 3, ("raf",)))
        assert found.only == (4, 0) and found.only_lines == ["Only in first: rf (4 words)."]
        assert {"subject", "word_text"} <= set(found.records()[0]) and set(found.compared_rows[0].key) >= {
            "map",
            "text",
        }
        found.save(tmp_path / "both.json")
        assert ws.load_result(tmp_path / "both.json").only_lines == found.only_lines
        words = tuple(replace(word, word=k, text=f"w{k}", span=(0, 0)) for k, word in enumerate(flips().words * 3, 1))
        many = ws.compare_results(replace(flips(), words=(*flips().words, *words[4:])), flips())
        assert many.only_lines == ["Only in first: w5 (#5), w6 (#6), w7 (#7), w8 (#8), w9 (#9) and 3 more."]

    def test_other_radii_are_another_quantity(self) -> None:
        found = ws.compare_results([draws(0), draws(0, 3, ("raf", "rf"), 0.5)])
        assert not found.same and "not the same quantity" in found.reading
        assert all(row.difference is None for row in found.compared_rows) and "difference" not in found.records()[0]


class TestModels:
    def test_labels_of_panels_do_not_overlap(self) -> None:
        axes = ws.compare_results([flips(), replace(flips(), seed=1)]).plot().figure.axes
        axes[0].figure.canvas.draw()
        boxes = [ax.xaxis.label.get_window_extent() for ax in axes]
        assert len(boxes) == 3 and all(a.x1 < b.x0 for a, b in pairwise(boxes))

    def test_flips_and_changes_have_ranks_in_common(self) -> None:
        found = ws.compare_results([flips(), profile()], names=["classifier", "encoder"])
        assert not found.same and "not the same quantity" in found.reading
        assert [side.short for side in found.sides] == ["flips at", "change at 0.1"]
        radii = {word.text: word.radius for word in flips().words}
        changes = {word.text: word.lower[0] for word in profile().words}
        ranks = {word.text: rank for word, rank in zip(profile().ranked, profile().ranks, strict=True)}
        columns = ["word", "word_text", "classifier: rank", "classifier: flips at", "encoder: rank"]
        assert list(found.records()[0]) == [*columns, "encoder: change at 0.1"]
        for row in found.compared_rows:
            text = row.key["text"]
            assert row.values == (radii[text], changes[text]) and row.ranks[1] == ranks[text]
            assert row.difference is None and row.tied is None

    def test_two_classifiers_tie_within_what_a_search_may_miss(self) -> None:
        first = flips()
        assert len(first.flipped) == 4
        for factor, tied in ((1 - 0.9 * FLIP_SPREAD, True), (1 - 1.2 * FLIP_SPREAD, False), (1.0, True)):
            words = tuple(replace(word, radius=(word.radius or 0) * factor, certified=0.0) for word in first.words)
            found = ws.compare_results([first, replace(first, words=words)])
            assert found.same and all(row.tied is tied for row in found.compared_rows), factor
            assert [row.values[0] for row in found.compared_rows] == [word.radius for word in first.words]

    def test_a_word_without_a_flip_ranks_last(self) -> None:
        first, *rest = flips().words
        none = replace(flips(), words=(*rest, replace(first, radius=None, distance=None, to=None)))
        rows = ws.compare_results([none, flips()]).compared_rows
        row = next(row for row in rows if row.key["text"] == first.text)
        assert row.values[0] is None and row.difference is None
        assert row.ranks[0] is not None and sum(row.ranks[0]) - 1 == 4

    def test_the_same_radii_of_profiles_are_compared(self) -> None:
        two = profile((0.1, 0.5))
        found = ws.compare_results([two, two])
        assert found.same and {row.key["radius"] for row in found.compared_rows} == {0.1, 0.5}
        assert ws.compare_results([two, profile()]).same
        assert len(ws.compare_results([two, flips()]).compared_rows) == 4

    def test_other_outputs_and_radii_are_other_quantities(self) -> None:
        assert not ws.compare_results([profile(), profile((0.1,), "pooled")]).same
        assert not ws.compare_results([profile(), profile((0.2,))]).same

    def test_three_have_ranks_and_no_differences(self) -> None:
        found = ws.compare_results([profile(), profile(), profile()])
        assert not found.same and "two results" in found.reading and len(found.compared_rows[0].ranks) == 3

    def test_words_are_matched_by_their_place_in_the_text(self) -> None:
        """Another tokenizer counts other words before one."""
        words = tuple(replace(word, word=word.word + 1) for word in profile().words)
        found = ws.compare_results([profile(), replace(profile(), words=words)])
        assert len(found.compared_rows) == 4 and all(row.difference == 0 for row in found.compared_rows)


def test_ties_of_single_maps_by_bounds_and_spread() -> None:
    first = single()
    assert first.words is not None
    words = tuple(replace(word, lower=word.lower * 1.01) for word in first.words)
    near = replace(first, words=words, spread=0.02)
    assert all(row["tied"] for row in ws.compare_results([first, near]).records())
    bounded = tuple(replace(word, lower=(word.upper or 0) * 2, upper=(word.upper or 0) * 3) for word in first.words)
    assert not any(row["tied"] for row in ws.compare_results([first, replace(first, words=bounded)]).records())


def test_ranks_share_what_is_not_separated() -> None:
    known = [Measured(value, spread=0.1) for value in (1.0, 0.95, 0.5)]
    assert ranks_of(known, smallest_first=False) == [(1, 2), (1, 2), (3, 1)]
    assert ranks_of(known, smallest_first=True) == [(2, 2), (2, 2), (1, 1)]


def test_other_columns_and_kinds() -> None:
    other = ws.compare_results([draws(0), draws(1)], column="sd")
    assert all(row.tied is None for row in other.compared_rows) and "tied means equal" in other.reading
    with pytest.raises(ws.InputError, match="one result is about flips of a classifier, another about draws of random"):
        ws.compare_results([flips(), draws(0)])
    with pytest.raises(ws.InputError, match="no column 'speed'"):
        ws.compare_results([draws(0), draws(1)], column="speed")
    with pytest.raises(ws.InputError, match="no row in common"):
        ws.compare_results([single(), ws.word_sensitivity("raf", "Quite another text here", budget=40)])
    assert set(RESULT_SUBJECTS) == {name.rpartition("/")[0] for name in RESULTS}


def test_results_and_paths_in_any_form(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    first, second, third = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "b" / "one.json"
    for path in (first, second, third):
        flips().save(path)
    expected = ws.compare_results([flips(), flips()], names=["one", "two"])
    for given in ((first, str(second)), ([str(first), second],)):
        assert ws.compare_results(*given) == expected
    assert ws.compare_results(flips(), str(second)).names == ("first", "two")
    assert ws.compare_results(first, third).names == (str(first), str(third))
    for arguments, problem in (
        ((first, tmp_path / "none.json"), "cannot read '.*none.json'"),
        ((flips(),), "two results or more, got 1"),
        (([str(first)],), "two results or more, got 1"),
        (([flips(), flips()], ["a", "b"]), "names go by names="),
        ((flips(), 3), "results must be a Result or a str or a path or a list"),
    ):
        with pytest.raises(ws.InputError, match=problem):
            ws.compare_results(*arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ws.InputError, match="names must be one for each result"):
        ws.compare_results(flips(), flips(), names=["a"])


@pytest.mark.parametrize("pair", ["draws", "models"])
def test_picture_and_table_have_one_order(pair: str) -> None:
    results: list[Any] = [draws(0), draws(1)] if pair == "draws" else [flips(), profile()]
    found = ws.compare_results(results, names=["a", "b"])
    axes = found.plot().figure.axes
    assert len(axes) == (3 if pair == "draws" else 2)
    shown = [label.get_text().split(" (#")[0] for label in axes[0].get_yticklabels()]
    assert shown == [row["word_text"] for row in found.records()]
    for ax, name, column in zip(axes[:2], "ab", found.columns, strict=True):
        assert ax.get_title(loc="left") == name and ax.get_xlabel()
        assert [bar.get_width() for bar in ax.patches] == [row[column] for row in found.records()]
        assert max(bar.get_width() for bar in ax.patches) > 0.3 * ax.get_xlim()[1]  # bars that can be seen
    assert TEXT in axes[0].figure.get_suptitle()
    with pytest.raises(ws.InputError, match="axes"):
        found.plot(axes[:1])
