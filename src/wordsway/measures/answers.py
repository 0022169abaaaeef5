"""Answers that put several measurements together: a text over draws of weights, a model in the units of its user.

`wordsway measure` and the page both ask here, so that they answer alike.
"""

from collections.abc import Callable, Sequence
from typing import Any

from wordsway.measures.compare_draws import WEIGHTS, draws_of
from wordsway.measures.draws_result import DrawComparison
from wordsway.measures.expected import expected_seconds, flip_seconds
from wordsway.measures.flip_radii import FlipRadii
from wordsway.measures.profile_result import RadiusProfile
from wordsway.measures.question import OpenQuestion, Question
from wordsway.measures.results import Sensitivity, TokenSensitivity
from wordsway.measures.text_answer import answer_text, predicts
from wordsway.models.moving.map import PretrainedMap
from wordsway.support.cancelling import Cancel
from wordsway.tokens import Tokens

SECONDS = 20.0  # for all draws, unless a number of them is given
REAL_SECONDS = 60.0  # for the real words of a text: a classifier of MiniLM's size tries 400 in each of 20 places


def answer_draws(
    question: Question,
    maps: Sequence[str],
    weights: int | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    each: Callable[[TokenSensitivity], None] | None = None,
    cancel: Cancel | None = None,
    keep: Callable[[OpenQuestion, Sensitivity], Sensitivity] | None = None,
) -> DrawComparison:
    """Measure every word on the maps over `weights` draws; unless given, over as many as take about `SECONDS`, at most
    `WEIGHTS`. `each` hears the tokens of the first measurement, and `keep` completes it."""
    count, seconds = (WEIGHTS, SECONDS) if weights is None else (weights, None)
    return draws_of(question, maps, count, seconds, progress, cancel, keep, each)


def answer_model(
    opened: OpenQuestion,
    radii: Sequence[float] | None = None,
    *,
    effects: bool = True,
    progress: Callable[[int, int], None] | None = None,
    each: Callable[[int, float], None] | None = None,
    cancel: Cancel | None = None,
) -> FlipRadii | RadiusProfile:
    """Measure what it takes to change a model's prediction or, where it has none, the change of its output at some
    `radii`: unless given, at a small one and at that of the question. Without `effects`, a prediction's flips only: no
    real words and no probabilities.

    `each` is called with the number of a word, from 1, and the value that it is coloured by, as soon as that is known.
    """
    asked, phi = opened.question, opened.phi
    assert isinstance(phi, PretrainedMap)
    options: dict[str, Any] = {name: getattr(asked, name) for name in ("radius", "budget", "certificate", "seed")}
    options |= {"device": asked.device, "seconds": REAL_SECONDS, "radii": radii, "effects": effects}
    return answer_text(phi, opened.X, asked.word, progress=progress, each=each, cancel=cancel, **options)


def answer_seconds(opened: OpenQuestion, effects: bool = True) -> float | None:
    """Estimate how long `answer_model` takes; None where the number of runs of a search is given."""
    asked, phi = opened.question, opened.phi
    assert isinstance(phi, PretrainedMap)
    if not predicts(phi):
        return expected_seconds(opened)
    if isinstance(asked.budget, int) or not isinstance(opened.X, Tokens):
        return None
    budget, real_words = asked.budget or "default", None if effects else 0
    return flip_seconds(phi, opened.X, asked.word, budget, real_words, str(asked.device), REAL_SECONDS)
