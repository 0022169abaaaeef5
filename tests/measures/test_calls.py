"""Calls with what people have: names or live models, texts or tokens, one or a list; a word by itself or its number."""

from typing import Any

import pandas
import pytest
import torch

import wordsway as ws
from wordsway.models.loading.load import read_tokenizer
from wordsway.models.loading.locate import locate
from wordsway.testing.output_tests import small_model

TEXT, OTHER = "I love her smile", "A dull old film"
FEW: dict[str, Any] = {"budget": 40, "random_draws": 0}


@pytest.fixture(scope="module")
def live() -> tuple[Any, Any]:
    return small_model(causal=False), read_tokenizer(locate("minilm"))


def test_a_map_by_name_is_the_map_that_one_would_make() -> None:
    tokens = ws.encode(TEXT)
    made = ws.word_sensitivity(ws.named_map("raf", len(tokens), 384, 3), tokens, seed=3, **FEW)
    named = ws.word_sensitivity("raf", TEXT, seed=3, **FEW)
    assert named.records() == made.records() and named.map == made.map
    assert ws.word_sensitivity("raf", tokens, seed=3, **FEW).records() == made.records()
    rows = ws.word_sensitivity("raf", tokens.X, seed=3, **FEW)
    assert rows.words is None and rows.per_token[1].lower == pytest.approx(made.per_token[0].lower, rel=1e-3)


def test_a_word_is_named_or_numbered_from_one() -> None:
    by_name = ws.word_sensitivity("raf", TEXT, word="smile", **FEW)
    assert [row["word"] for row in by_name.records()] == [4]
    assert by_name.words and by_name.words[0].word == 4
    for number in (4, "#4"):
        assert ws.word_sensitivity("raf", TEXT, word=number, **FEW).records() == by_name.records()
    model: dict[str, Any] = {"budget": 8, "real_words": 0}
    flip = ws.flip_radius("raf", TEXT, "smile", readout=torch.ones(6 * 384), **model)
    assert [row["word"] for row in flip.records()] == [4]


def test_a_live_model_and_its_name(live: tuple[Any, Any]) -> None:
    model, tokenizer = live
    found = ws.word_sensitivity(model, TEXT, tokenizer=tokenizer, word="smile", budget=8, random_draws=0)
    pair = ws.word_sensitivity(live, TEXT, word=4, output="logits", budget=8, random_draws=0)
    assert found.map["output"] == "logits" and found.records() == pair.records()  # logits, as it has them
    opened = ws.PretrainedMap(model, "logits", tokenizer=tokenizer)
    assert ws.word_sensitivity(opened, TEXT, word=4, budget=8, random_draws=0).records() == pair.records()
    assert ws.change(live, TEXT, "I love her film") == pytest.approx(
        ws.change(opened, opened.encode(TEXT), opened.encode("I love her film"))
    )


def test_a_list_is_one_result() -> None:
    told: list[tuple[int, int]] = []
    found: Any = ws.word_sensitivity("raf", [TEXT, OTHER], progress=lambda *done: told.append(done), **FEW)
    assert isinstance(found, ws.TextResults) and found.texts == (TEXT, OTHER)
    assert [result.top_word.text for result in found.results] and found.plot().has_data()
    both = found.to_dataframe()
    assert told == [(1, 2), (2, 2)]
    apart = [ws.word_sensitivity("raf", text, **FEW).to_dataframe() for text in (TEXT, OTHER)]
    assert list(both["text_number"]) == [1] * 4 + [2] * 4
    expected = pandas.concat(apart, ignore_index=True)
    pandas.testing.assert_frame_equal(both.drop(columns="text_number"), expected)
    column: Any = ws.word_sensitivity("raf", pandas.DataFrame({"text": [TEXT, OTHER]})["text"], **FEW)
    pandas.testing.assert_frame_equal(column.to_dataframe(), both)
    tokens: Any = ws.word_sensitivity("raf", X=[ws.encode(TEXT), ws.encode(OTHER)], **FEW)
    pandas.testing.assert_frame_equal(tokens.to_dataframe(), both)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (ws.flip_radius, {"budget": 8, "real_words": 0, "word": 2}),
        (ws.radius_profile, {"radii": [0.1], "flips": False, "budget": "quick", "word": 2}),
        (ws.substitutions, {"word": 2, "candidates": ["hate", "see"]}),
        (ws.layer_profile, {"word": 2, "real_words": False, "noise_draws": 2, "budget": "quick"}),
        (ws.attention_maps, {"word": 2}),
    ],
)
def test_every_call_takes_a_list(live: tuple[Any, Any], function: Any, options: dict[str, Any]) -> None:
    found = function(live, [TEXT, OTHER], **options)
    both = found.to_dataframe()
    second = found.results[1].to_dataframe()
    pandas.testing.assert_frame_equal(function(live, OTHER, **options).to_dataframe(), second)
    mine = both[both["text_number"] == 2].drop(columns="text_number").reset_index(drop=True)
    pandas.testing.assert_frame_equal(mine, second)


def test_a_substitution_of_two_texts() -> None:
    tokens = ws.encode(TEXT), ws.encode("I love her film")
    made = ws.substitution(ws.named_map("raf", 6, 384), *tokens, budget=40)
    assert ws.substitution("raf", TEXT, "I love her film", budget=40).records() == made.records()


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("raf", TEXT), {"word": "frown"}, "'frown' is not in the text"),
        (("raf", TEXT), {"word": "smile", "token": 1}, "word and token"),
        (("raf", TEXT), {"word": True}, "its number from 1"),
        (("raf", [[1.0, 2.0]]), {"word": "smile"}, "rows alone have no words"),
        (("raf", TEXT), {"output": "logits"}, "output= belongs to a model"),
        (("sentiment", TEXT), {"encoder": "minilm"}, "encoder= belongs to a map"),
        (("raf", [TEXT, "nothing here"]), {"word": "smile"}, "text 2 of 2: the word 'smile' is not in the text"),
        (("raf", [TEXT, 3]), {}, "text 2 of the list is no text"),
        (("no-such-model", TEXT), {}, "no-such-model"),
    ],
)
def test_errors_say_what_is_wrong(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ws.InputError, match=words):
        ws.word_sensitivity(*arguments, **options, budget=40)
