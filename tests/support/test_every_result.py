"""The kit on every kind of result that has a format: a new one is tested as soon as it has an example here."""

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import wordsway as ws
from wordsway.models.loading.load import read_tokenizer
from wordsway.models.loading.locate import locate
from wordsway.studies.compare_runs import compare_tables
from wordsway.support.names import RESULTS
from wordsway.support.registry import load_home
from wordsway.support.result import Result
from wordsway.testing.output_tests import small_model
from wordsway.testing.result_tests import ResultTests

QUICK: dict[str, Any] = {"budget": "quick", "progress": lambda done, total: None}


@lru_cache
def small(causal: bool) -> tuple[Any, Any]:
    return small_model(causal), read_tokenizer(locate("minilm"))


def classifier(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    model, tokenizer = small(causal=False)
    return function(model, *arguments, tokenizer=tokenizer, **options)


def sensitivity(text: str) -> ws.Sensitivity:
    tokens = ws.encode(text)
    return ws.word_sensitivity(ws.named_map("raf", len(tokens), 384), tokens, budget=40, random_draws=5)


def substitution(text: str) -> ws.Substitution:
    before, after = ws.encode(text + " indeed"), ws.encode(text + " surely")
    return ws.substitution(ws.named_map("raf", len(before), 384), before, after, budget=40)


def prompts(text: str) -> ws.PromptChange:
    model, tokenizer = small(causal=True)
    return ws.compare_prompts(model, text, text + " no", tokenizer=tokenizer, answer_tokens=2)


def flips(text: str) -> ws.Flips:
    return ws.generalize(ws.FlipPlan(("raf", "rf"), (4,), (6,), objectives=("align",), trials=2, d=(8,)))


def differences(text: str) -> Result:
    grid = {"map": ["rf", "raf"], "n": [3, 6], "d": 8, "trials": 2}
    runs = [ws.run(ws.Study("small", {**grid, "seed": seed}), engine="inline") for seed in (0, 1)]
    return compare_tables(runs[0], runs[1])


MAKE: dict[str, Callable[[str], Result]] = {
    "wordsway.sensitivity/3": sensitivity,
    "wordsway.draws/2": lambda text: ws.compare_draws(text, weights=2, budget=24, random_draws=4),
    "wordsway.flip-radius/2": lambda text: classifier(ws.flip_radius, text, 1, budget=8, real_words=3),
    "wordsway.radius-profile/2": lambda text: classifier(ws.radius_profile, text, [0.1, 0.5], 1, flips=False, **QUICK),
    "wordsway.logit_ranges/2": lambda text: ws.logit_ranges("sentiment", text),
    "wordsway.substitution/2": substitution,
    "wordsway.substitutions/2": lambda text: classifier(
        ws.substitutions, text, 2, candidates=["hate", "film", "see"], progress=QUICK["progress"]
    ),
    "wordsway.layers/2": lambda text: classifier(ws.layer_profile, text, 2, real_words=False, noise_draws=2, **QUICK),
    "wordsway.attention/2": lambda text: classifier(ws.attention_maps, text, word=2, attract=True, budget="quick"),
    "wordsway.prompts/1": prompts,
    "wordsway.texts/1": lambda text: ws.logit_ranges("sentiment", [text, "A dull film"]),  # pyright: ignore
    "wordsway.comparison/2": lambda text: ws.compare_results(
        [ws.logit_ranges("sentiment", text), ws.logit_ranges("sentiment", text, at="word-embeddings")]
    ),
    "wordsway.corpus/2": lambda text: ws.measure_texts([text, "A dull film"], map="rf", budget=20, engine="inline"),
    "wordsway.curve/1": lambda text: ws.curve(ws.CurvePlan(("raf", "rf"), (4, 8), (8,), trials=2)),
    "wordsway.flips/1": flips,
    "wordsway.differences/1": differences,
    "wordsway.table/1": lambda text: ws.run(
        ws.Study("small", {"map": ["rf", "raf"], "n": [3, 6], "d": 8, "trials": 2}), engine="inline"
    ),
}


def test_every_format_has_an_example_and_every_kind_a_format() -> None:
    assert sorted(MAKE) == sorted(RESULTS)
    kinds = {load_home(home) for home in RESULTS.values()}
    assert {kind for kind in subclasses(Result) if kind.__module__.startswith("wordsway.")} == kinds
    assert {kind.format for kind in kinds} == set(RESULTS)


def subclasses(kind: type[Any]) -> set[type[Any]]:
    return {each for child in kind.__subclasses__() for each in (child, *subclasses(child))}


def kit_of(kind: str) -> type[ResultTests]:
    return type("Test" + kind, (ResultTests,), {"make": staticmethod(MAKE[kind])})


for kind, home in RESULTS.items():
    globals()[f"Test{home.rpartition(':')[2]}"] = kit_of(kind)


def test_attention_without_a_word_is_read_again(tmp_path: Path) -> None:
    """Two maps of other texts, of which a file has what is shown."""
    found = classifier(ws.attention_maps, "I love her smile", "He saw the old film")
    found.save(tmp_path / "maps.json")
    again = ws.load_result(tmp_path / "maps.json")
    assert again.before is None and again.records() == found.records()
    assert [len(place.images) for place in again.plot().figure.axes][:2] == [1, 1]


def test_infinity_stands_in_json(tmp_path: Path) -> None:
    """A radius that is proven to be infinite is read again as what it was."""
    found = ws.flip_radius("sentiment", "It was a good film", 1, budget=8, real_words=0)
    word = json.loads(json.dumps(found.to_dict()))["words"][0]
    values = {**found.to_dict(), "words": [{**word, "certified": "infinite"}]}
    (tmp_path / "flip.json").write_text(json.dumps(values), encoding="utf-8")
    assert ws.load_result(tmp_path / "flip.json").words[0].certified == float("inf")


@pytest.mark.parametrize(
    "content", ["", "[]", "null", '{"format": 3}', '{"format": "wordsway.table/0"}', "NaN", "\xff"]
)
def test_what_is_no_result_is_an_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content.encode("latin1"))
    with pytest.raises(ws.InputError, match=r"x\.json"):
        ws.load_result(tmp_path / "x.json")
