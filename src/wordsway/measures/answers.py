"""Answers that put several measurements together: a text over draws of weights, a model in the units of its user.

`wordsway measure` and the page both ask here, so that they answer alike.
"""

from collections.abc import Callable, Sequence
from typing import Any

from wordsway.maps.base import FeatureMap
from wordsway.measures.compare_draws import WEIGHTS, draws_of
from wordsway.measures.draws_result import DrawComparison
from wordsway.measures.expected import expected_seconds, flip_seconds
from wordsway.measures.flip_radii import FlipRadii
from wordsway.measures.flip_radius import flip_radius
from wordsway.measures.profile_result import RadiusProfile
from wordsway.measures.question import OpenQuestion, Question
from wordsway.measures.radius_profile import radius_profile
from wordsway.measures.results import Sensitivity, TokenSensitivity
from wordsway.models.moving.map import PretrainedMap
from wordsway.support.cancelling import Cancel
from wordsway.tokens import Tokens

SECONDS = 20.0  # for all draws, unless a number of them is given
REAL_SECONDS = 60.0  # for the real words of a text: a classifier of MiniLM's size tries 400 in each of 20 places
SMALL = 0.1  # of a word's norm: there words of a model still differ


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


def has_prediction(phi: FeatureMap) -> bool:
    """Whether a map is a model whose output is a prediction: a class, or the next token."""
    if not isinstance(phi, PretrainedMap) or not phi.output.is_logits:
        return False
    return phi.model.labels is None or len(phi.model.labels) > 1


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
    asked = opened.question
    common: dict[str, Any] = {"seed": asked.seed, "device": asked.device, "progress": progress, "cancel": cancel}
    if has_prediction(opened.phi):
        common |= {"radius": asked.radius, "budget": asked.budget}
        common |= {"effects": True, "seconds": REAL_SECONDS} if effects else {"real_words": 0}
        tell = None if each is None else lambda entry: each(entry.word, entry.closeness)
        return flip_radius(opened.phi, opened.X, asked.word, each=tell, **common)
    chosen = sorted({min(SMALL, asked.radius), asked.radius}) if radii is None else list(radii)
    common |= {"certificate": asked.certificate, "budget": asked.budget or "default", "each": each}
    return radius_profile(opened.phi, opened.X, chosen, asked.word, flips=False, **common)


def answer_seconds(opened: OpenQuestion, effects: bool = True) -> float | None:
    """Estimate how long `answer_model` takes; None where the number of runs of a search is given."""
    asked, phi = opened.question, opened.phi
    if not has_prediction(phi):
        return expected_seconds(opened)
    if isinstance(asked.budget, int) or not isinstance(opened.X, Tokens):
        return None
    assert isinstance(phi, PretrainedMap)
    budget, real_words = asked.budget or "default", None if effects else 0
    return flip_seconds(phi, opened.X, asked.word, budget, real_words, str(asked.device), REAL_SECONDS)
