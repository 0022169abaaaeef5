"""The answers of `wordsway measure` that put several measurements together: over draws of weights, and of a model."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import command_line
from wordsway.cli.measure_steps import answer, answer_profile, open_question, option_names, shorter
from wordsway.cli.output import ResultOutput, finish
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.measures.question import OpenQuestion, Question
    from wordsway.measures.results import Sensitivity
    from wordsway.models.moving.map import PretrainedMap

SECONDS = 20.0  # for all draws, unless a number of them is given
REAL_SECONDS = 60.0  # for the real words of a text: a classifier of MiniLM's size tries 400 in each of 20 places
_PLAIN = {"depth": None, "activation": "relu", "temperature": 1.0}  # options of a map that nobody gave


def kind_of_answer(
    radii: int, given: str | None, model: str | None, weights: int | None, alone: Mapping[str, Any]
) -> str:
    """Say what is to be answered: a "profile" over radii, "draws" of weights, a "model", or a "single" map. Options
    that ask for moves of one map or model are in `alone`."""
    of_draws = ("--explain", "--joint") if model is None else ()  # which draws of a map's weights take too
    used = [option for option, value in alone.items() if value not in (None, False) and option not in of_draws]
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


def maps_asked(map: str | None, recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """The maps to compare: the one that was named; else attention and random features, which take no options alike."""
    from wordsway.measures.compare_draws import MAPS

    if map is not None:
        return (map,)
    return MAPS if dict(recipe) == _PLAIN else MAPS[:1]


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
    """Measure a model in the units of its user: what it takes to change a prediction, or the change of its output."""
    from wordsway.cli.show_answers import encoder_tables, prediction_tables
    from wordsway.measures.expected import expected_seconds
    from wordsway.measures.text_answer import answer_text, predicts
    from wordsway.models.moving.map import PretrainedMap
    from wordsway.support.progress import progress_bar
    from wordsway.support.provenance import made

    opened = open_question(question)
    phi = opened.phi
    assert isinstance(phi, PretrainedMap)
    flips = predicts(phi)
    if not flips and isinstance(question.budget, int):
        raise InputError("--budget of a model without a prediction is quick, default or thorough, not a number")
    expected = _expected(opened, phi) if flips else expected_seconds(opened)
    options: dict[str, Any] = {name: getattr(question, name) for name in ("radius", "budget", "certificate", "seed")}
    with progress_bar("step", shorter(question), expected) as update:
        options |= {"device": question.device, "seconds": REAL_SECONDS, "progress": update}
        result: Any = answer_text(phi, opened.X, question.word, **options)
    show: Any = prediction_tables if flips else encoder_tables
    finish(replace(result, made=made(command_line())), end.as_json, end.out, partial(show, stretch=end.stretch))


def _expected(opened: "OpenQuestion", phi: "PretrainedMap") -> float | None:
    """Estimate how long it takes to find what changes a prediction; None where the runs of a search are given."""
    from wordsway.measures.expected import flip_seconds
    from wordsway.tokens import Tokens

    asked = opened.question
    if isinstance(asked.budget, int) or not isinstance(opened.X, Tokens):
        return None
    return flip_seconds(phi, opened.X, asked.word, asked.budget or "default", None, str(asked.device))
