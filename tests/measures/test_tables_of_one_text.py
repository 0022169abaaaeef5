"""Tables of results about one text: columns that mean the same everywhere, in the order in which words are shown."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas
import pytest

import wordsway as ws

TEXT = "I love <her> smile"
FEW: dict[str, Any] = {"budget": 8, "real_words": 30}


@lru_cache
def flips(effects: bool) -> ws.FlipRadii:
    return ws.flip_radius("sentiment", TEXT, effects=effects, **FEW)


@lru_cache
def profile() -> ws.RadiusProfile:
    return ws.radius_profile("minilm", TEXT, [0.1, 0.2], budget="quick", flips=False)


def picture_order(result: ws.Result) -> list[str]:
    return [label.get_text() for label in result.plot().get_yticklabels()]


@pytest.mark.parametrize("effects", [True, False])
def test_flips_have_one_order_everywhere(effects: bool, tmp_path: Path) -> None:
    """By the nearest real word where effects were asked for, else by the smallest change."""
    found = flips(effects)
    shown = [word.word for word in (found.by_real if effects else found.words)]
    ranks = found.real_ranks if effects else found.flip_ranks
    assert shown == [word.word for word in found.ranked]
    assert [row["word"] for row in found.records()] == shown
    assert picture_order(found) == [word.text for word in found.ranked]
    saved = {each["word"]: (each["rank"], each["tied"]) for each in found.to_dict()["words"]}
    assert [saved[number] for number in shown] == list(ranks)
    found.save(tmp_path / "flips.json")
    again = ws.load_result(tmp_path / "flips.json")
    assert again.records() == found.records() and again.words == found.words
    page = ws.report_html(found)
    cells = re.findall(r"<tr><td[^>]*>[^<]*</td><td[^>]*>[^<]*</td><td[^>]*>(\d+)</td>", page)
    assert [int(cell) for cell in cells[: len(shown)]] == shown


def test_the_orders_differ_so_that_the_test_can_tell() -> None:
    assert [word.word for word in flips(True).ranked] != [word.word for word in flips(False).ranked]


def test_changes_of_a_model_are_in_the_order_of_their_ranks() -> None:
    found = profile()
    shown = [word.word for word in found.ranked]
    assert [row["word"] for row in found.records()] == [number for number in shown for _ in found.radii]
    saved = {each["word"]: each["rank"] for each in found.to_dict()["words"]}
    assert [row["rank"] for row in found.records()[::2]] == [saved[number] for number in shown]


def test_columns_mean_what_those_of_many_texts_mean(tmp_path: Path) -> None:
    table = flips(True).to_dataframe()
    assert list(table.columns[:9]) == ["subject", "word", "word_text", "rank", "tied", "prediction", "probability",
                                       "radius", "flips_at"]  # fmt: skip
    assert set(table["subject"]) == {"sentiment"} and set(table["radius"]) == {1.0}
    assert table.attrs["text"] == TEXT and table.attrs["map"]["model"] == "sentiment"
    flips(True).save(tmp_path / "flips.parquet")
    assert pandas.read_parquet(tmp_path / "flips.parquet").attrs == table.attrs
    others = [
        profile(),
        ws.word_sensitivity("raf", TEXT, budget=20, random_draws=0),
        ws.compare_draws(TEXT, maps=("rf",), weights=2, budget=20, random_draws=0),
        ws.logit_ranges("sentiment", TEXT),
    ]
    for result in others:
        row = result.records()[0]
        assert isinstance(row["word"], int) and row["word_text"] in TEXT and "text" not in row
        assert "rank" in row or isinstance(result, ws.LogitRanges)
        assert row["subject"] in ("minilm", "raf", "rf", "sentiment")
        assert result.to_dataframe().attrs["text"] == TEXT
    several: Any = ws.logit_ranges("sentiment", [TEXT, "A dull film"])  # pyright: ignore[reportArgumentType]
    assert several.to_dataframe().attrs["texts"] == [TEXT, "A dull film"]


@pytest.mark.parametrize("effects", [True, False])
def test_a_notebook_shows_the_prediction_the_coloured_text_and_ranks(effects: bool) -> None:
    found = flips(effects)
    shown = found._repr_html_()
    assert f"\u201c{found.prediction}\u201d, probability" in shown
    assert "<her>" not in shown and "&lt;" in shown
    coloured = re.findall(r'<span style="background:#(\w{6});[^>]*title="rank ([^ ]+) of[^>]*>([^<]*)</span>', shown)
    assert [text for _, _, text in coloured] == ["I", "love", "&lt;", "her", "&gt;", "smile"]
    first = found.ranked[0]
    darkest = next(colour for colour, _, text in coloured if text == first.text)
    assert darkest == "08306b" and darkest != coloured[3][0]
    heads = re.findall(r'<th scope="col">([^<]*)</th>', shown)
    assert heads[:6] == ["rank", "word", "place", "flipped by", "at", "flips at"] and "certified" not in heads
    places = [int(place) for place in re.findall(r"<tr><td>[^<]*</td><td>[^<]*</td><td>(\d)</td>", shown)]
    assert places == [word.word for word in found.ranked]


def test_a_notebook_shows_a_row_a_word_of_an_encoder() -> None:
    shown = profile()._repr_html_()
    assert shown.count("<tr>") == 1 + len(profile().words) and ">radius 0.1<" in shown and "background:#08306b" in shown


def test_a_list_of_models_is_an_error_that_names_the_argument() -> None:
    several: Any = ["sentiment", "minilm"]
    for call, name in ((ws.flip_radius, "model"), (ws.radius_profile, "model_or_map"), (ws.word_sensitivity, "phi")):
        with pytest.raises(ws.InputError, match=f"^{name} must be .*got list; to compare several.*compare_results"):
            call(several, TEXT)
