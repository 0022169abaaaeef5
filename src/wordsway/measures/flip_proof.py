"""Radii within which no move of a token can change a prediction.

A map with a certificate: class c overtakes the predicted class p only if (theta_c - theta_p).change reaches the lead
of p over c, so not while |theta_c - theta_p| upper(r) |phi(X)| is below it; the largest such r is found by bisection.
A pre-trained model that ends in a norm: what the difference of two scores can reach over moves of any size is known, so
either no move at all can change the prediction, or nothing is proven.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from wordsway.certificates.certify import certify
from wordsway.measures.margins import Margins
from wordsway.models.moving.map import PretrainedView
from wordsway.models.moving.norm_bound import projected_ranges

_ROUNDING = 1e-9  # relative: scores and norms are float64 sums
_CLOSE = 1.005  # ratio of the bracket at which the bisection ends
_FURTHEST = 1e12  # of the allowed radius upwards and downwards: what is beyond is of no interest
_CHUNK = 64  # classes whose ranges are computed at once: a vocabulary has very many


@dataclass(frozen=True)
class Proof:
    """No move of norm up to `radius` changes the prediction, except with probability `failure`; 0 where nothing is
    proven, for a `reason`."""

    radius: float
    failure: float = 0.0
    reason: str | None = None


def prove(margins: Margins, token: int, limit: float) -> Proof:
    """Find a radius, in absolute terms, within which no move of a token changes the prediction."""
    view = margins.view(token)
    if isinstance(view, PretrainedView):
        return margin_proof(margins, view)
    first = certify(view, limit)
    if first.upper is None:
        return Proof(0.0, 0.0, first.reason)
    others, scores = margins.rivals, margins.scores
    sizes = margins.readout.differences(margins.predicted, others).norm(dim=1)
    gaps = scores[margins.predicted] - scores[others]
    allowed = float((gaps / sizes.clamp(min=1e-300)).min()) * (1 - _ROUNDING) / view.base_norm
    failure = 0.0

    def holds(radius: float) -> bool:
        nonlocal failure
        bound = certify(view, radius)
        failure += bound.failure
        return bound.upper is not None and bound.upper < allowed

    radius = largest(holds, limit)
    if radius == 0:
        return Proof(0.0, 0.0, "the map's certificate does not shrink far enough with the radius")
    return Proof(radius, min(1.0, failure))


def largest(holds: Callable[[float], bool], start: float) -> float:
    """Find about the largest radius at which something holds that, once it fails, fails for all larger ones; 0 where it
    does not hold at any that was tried. The answer is a radius at which it was seen to hold."""
    if holds(start):
        low, high = start, start * _FURTHEST
        if holds(high):
            return high
    else:
        low, high = start / _FURTHEST, start
        if not holds(low):
            return 0.0
    while high > low * _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def margin_proof(margins: Margins, view: PretrainedView) -> Proof:
    """Prove, for a pre-trained model, that no move of any size changes the prediction. The likeliest rivals come first:
    one that can overtake ends it."""
    bias, predicted, others = margins.readout.bias, margins.predicted, margins.rivals
    for start in range(0, len(others), _CHUNK):
        some = others[start : start + _CHUNK]
        found = projected_ranges(view, margins.readout.differences(predicted, some))
        if isinstance(found, str):
            return Proof(0.0, 0.0, found)
        if float((found[1] + bias[some] - bias[predicted]).max()) >= 0:
            return Proof(0.0, 0.0, "the bound on moves of any size allows another prediction")
    return Proof(math.inf)
