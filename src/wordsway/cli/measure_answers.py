"""The answers of `wordsway measure` that put several measurements together: over draws of weights, and of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import command_line
from wordsway.cli.measure_steps import answer, answer_profile, open_question, option_names, shorter
from wordsway.cli.output import ResultOutput, finish, ways
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.measures.flip_radii import FlipRadii
    from wordsway.measures.profile_result import RadiusProfile
    from wordsway.measures.question import OpenQuestion, Question
    from wordsway.measures.results import Sensitivity

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
    from wordsway.measures.compare_draws import MAPS
    from wordsway.support.progress import say

    if kind == "profile":
        answer_profile(question, radii, end)
    elif kind == "draws":
        answer_draws(question, maps, weights, end)
    elif kind == "model":
        answer_model(question, end)
    else:
        if weights == 1 and maps == MAPS:
            say(f"one draw of {MAPS[0]} alone; of random features: --map {MAPS[1]}")
        answer(question, against, watch, end)


def answer_draws(question: "Question", maps: tuple[str, ...], weights: int | None, end: ResultOutput) -> None:
    """Measure every word on the maps over draws of their weights, and write and show the result."""
    from wordsway.cli.show_draws import draw_tables
    from wordsway.measures import answers
    from wordsway.support.progress import progress_bar
    from wordsway.support.provenance import made

    def complete(opened: "OpenQuestion", result: "Sensitivity") -> "Sensitivity":
        named = isinstance(question.encoder, str)
        return end.complete(opened.phi, opened.X, result, None if named else question.encoder)

    open_ways = {"--weights 1": True, f"--map {maps[0]}": len(maps) > 1, "--budget quick": question.budget != "quick"}
    with option_names(), progress_bar("map", ways(open_ways)) as update:
        result = answers.answer_draws(question, maps, weights, progress=update, keep=complete)
    result = replace(result, made=made(command_line()))
    finish(result, end.as_json, end.out, partial(draw_tables, stretch=end.stretch))


def answer_model(question: "Question", end: ResultOutput) -> None:
    """Measure a model, and write and show the result."""
    from wordsway.cli.show_answers import encoder_tables, prediction_tables
    from wordsway.measures.flip_radii import FlipRadii

    result = measure_model(question)
    show = prediction_tables if isinstance(result, FlipRadii) else encoder_tables
    finish(result, end.as_json, end.out, partial(show, stretch=end.stretch))


def measure_model(
    question: "Question", radii: Sequence[float] | None = None, effects: bool = True
) -> "FlipRadii | RadiusProfile":
    """Measure a model in the units of its user, with progress: see `measures.answers.answer_model`."""
    from wordsway.measures import answers
    from wordsway.support.progress import progress_bar
    from wordsway.support.provenance import made

    opened = open_question(question)
    with option_names(), progress_bar("step", shorter(question), answers.answer_seconds(opened, effects)) as update:
        result = answers.answer_model(opened, radii, effects=effects, progress=update)
    return replace(result, made=made(command_line()))
