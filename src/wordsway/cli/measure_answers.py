"""The answers of `wordsway measure` that put several measurements together: over draws of weights, and of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import command_line
from wordsway.cli.measure_steps import answer, answer_profile, open_question, option_names, shorter
from wordsway.cli.output import ResultOutput, finish
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.measures.flip_radii import FlipRadii
    from wordsway.measures.profile_result import RadiusProfile
    from wordsway.measures.question import OpenQuestion, Question
    from wordsway.measures.results import Sensitivity
    from wordsway.models.moving.map import PretrainedMap

SECONDS = 20.0  # for all draws, unless a number of them is given
REAL_SECONDS = 60.0  # for the real words of a text: a classifier of MiniLM's size tries 400 in each of 20 places
SMALL = 0.1  # of a word's length: there words of a model still differ
_PLAIN = {"depth": None, "activation": "relu", "temperature": 1.0}  # options of a map that nobody gave


def kind_of_answer(
    radii: int,
    given: str | None,
    model: str | None,
    weights: int | None,
    alone: Mapping[str, Any],
    maps: Sequence[str] | None,
) -> str:
    """Say what is to be answered: a "profile" over radii, "draws" of weights, a "model", or a "single" map. Options
    that ask for moves of one map or model are in `alone`. Several maps are always compared over draws."""
    of_draws = ("--explain", "--joint") if model is None else ()  # which draws of a map's weights take too
    used = [option for option, value in alone.items() if value not in (None, False) and option not in of_draws]
    if maps is not None and len(maps) > 1 and model is None:
        _check_several(maps, given, [*used, *(["--radius with several numbers"] if radii > 1 else [])])
        return "draws"
    if weights is not None and (model is not None or radii > 1):
        raise InputError("--weights draws a random map's weights: leave it out with --model and several radii")
    if weights is not None and weights > 1 and (used or given is None):
        why = f"{used[0]} asks about one map" if used else "it needs a text"
        raise InputError(f"--weights {weights} compares the words of a text over draws, and {why}: use --weights 1")
    if radii > 1:
        return "profile"
    if used or given is None or weights == 1:
        return "single"
    return "draws" if model is None else "model"


def _check_several(maps: Sequence[str], given: str | None, used: Sequence[str]) -> None:
    """Refuse what does not go with several maps."""
    if len(set(maps)) < len(maps):
        raise InputError(f"the same map twice: {', '.join(maps)}; leave one of them out", argument="map")
    if given is None:
        raise InputError("several maps are compared on a text; give one in quotes", argument="text")
    if used:
        raise InputError(f"{used[0]} asks about one map: leave it out, or give one --map")


def maps_asked(maps: Sequence[str] | None, recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """The maps to compare: those that were named; else attention and random features, which take no options alike."""
    from wordsway.measures.compare_draws import MAPS

    plain = dict(recipe) == _PLAIN
    if maps and len(maps) > 1 and not plain:
        option = next(name for name, value in recipe.items() if value != _PLAIN[name])
        raise InputError(f"--{option} is of one map: with several, write it with its map, as drf:depth=3")
    return tuple(maps) if maps else MAPS if plain else MAPS[:1]


def give_answer(
    kind: str,
    question: "Question",
    end: ResultOutput,
    radii: list[float],
    maps: tuple[str, ...],
    weights: int | None,
    against: str | None,
    watch: bool,
) -> None:
    """Answer a question in the way that `kind_of_answer` chose."""
    if kind == "profile":
        answer_profile(question, radii, end)
    elif kind == "draws":
        answer_draws(question, maps, weights, end)
    elif kind == "model":
        answer_model(question, end)
    else:
        answer(question, against, watch, end)


def answer_draws(question: "Question", maps: tuple[str, ...], weights: int | None, end: ResultOutput) -> None:
    """Measure every word on the maps over draws of their weights, and write and show the result."""
    from wordsway.cli.show_draws import draw_tables
    from wordsway.measures.compare_draws import WEIGHTS, draws_of
    from wordsway.support.progress import progress_bar
    from wordsway.support.provenance import made

    def complete(opened: "OpenQuestion", result: "Sensitivity") -> "Sensitivity":
        named = isinstance(question.encoder, str)
        return end.complete(opened.phi, opened.X, result, None if named else question.encoder)

    with option_names(), progress_bar("map", "--weights 1, --map raf or --budget quick") as update:
        result = draws_of(
            question,
            maps,
            WEIGHTS if weights is None else weights,
            SECONDS if weights is None else None,
            update,
            keep=complete,
        )
    result = replace(result, made=made(command_line()))
    finish(result, end.as_json, end.out, partial(draw_tables, stretch=end.stretch))


def answer_model(question: "Question", end: ResultOutput) -> None:
    """Measure a model, and write and show the result."""
    from wordsway.cli.show_answers import encoder_tables, prediction_tables
    from wordsway.measures.flip_radii import FlipRadii

    result = measure_model(question, sorted({min(SMALL, question.radius), question.radius}))
    show = prediction_tables if isinstance(result, FlipRadii) else encoder_tables
    finish(result, end.as_json, end.out, partial(show, stretch=end.stretch))


def measure_model(question: "Question", radii: Sequence[float], effects: bool = True) -> "FlipRadii | RadiusProfile":
    """Measure a model in the units of its user: what it takes to change a prediction, or the change of its output at
    some radii. Without `effects`, a prediction's flips only: no real words and no probabilities."""
    from wordsway.measures.expected import expected_seconds
    from wordsway.measures.flip_radius import flip_radius
    from wordsway.measures.radius_profile import radius_profile
    from wordsway.models.moving.map import PretrainedMap
    from wordsway.support.progress import progress_bar
    from wordsway.support.provenance import made

    opened = open_question(question)
    phi = opened.phi
    assert isinstance(phi, PretrainedMap)
    common: dict[str, Any] = {"seed": question.seed, "device": question.device}
    predicts = phi.output.is_logits and (phi.model.labels is None or len(phi.model.labels) > 1)
    if not predicts and isinstance(question.budget, int):
        raise InputError("--budget of a model without a prediction is quick, default or thorough, not a number")
    expected = _expected(opened, phi, None if effects else 0) if predicts else expected_seconds(opened)
    with progress_bar("step", shorter(question), expected) as update:
        common["progress"] = update
        result: FlipRadii | RadiusProfile
        if predicts:
            common |= {"radius": question.radius, "budget": question.budget}
            common |= {"effects": True, "seconds": REAL_SECONDS} if effects else {"real_words": 0}
            result = flip_radius(phi, opened.X, question.word, **common)
        else:
            common |= {"certificate": question.certificate, "budget": question.budget or "default"}
            result = radius_profile(phi, opened.X, list(radii), question.word, flips=False, **common)
    return replace(result, made=made(command_line()))


def _expected(opened: "OpenQuestion", phi: "PretrainedMap", real_words: int | None) -> float | None:
    """Estimate how long it takes to find what changes a prediction; None where the runs of a search are given."""
    from wordsway.measures.expected import flip_seconds
    from wordsway.tokens import Tokens

    asked = opened.question
    if isinstance(asked.budget, int) or not isinstance(opened.X, Tokens):
        return None
    return flip_seconds(phi, opened.X, asked.word, asked.budget or "default", real_words, str(asked.device))
