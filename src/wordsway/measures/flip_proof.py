"""Radii within which no move of a token can change a prediction."""

from dataclasses import dataclass

from wordsway.certificates.certify import certify
from wordsway.measures.margins import Margins
from wordsway.models.moving.map import PretrainedView

_ROUNDING = 1e-9  # relative: scores and norms are float64 sums
_CLOSE = 1.005  # ratio of the bracket at which the bisection ends
_DOUBLINGS = 40  # of a radius that is certified, at most: its bound need not be reported further


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
    differences = margins.readout.differences(margins.predicted)
    scores = margins.scores
    others = [k for k in range(len(scores)) if k != margins.predicted]
    gaps = (scores[margins.predicted] - scores[others]).clamp(min=0.0)
    sizes = differences.norm(dim=1)
    # Class c can overtake only if |differences_c| |change| reaches its gap.
    allowed = float((gaps / sizes.clamp(min=1e-300)).min()) * (1 - _ROUNDING)
    failure = 0.0

    def holds(radius: float) -> bool | None:
        nonlocal failure
        bound = certify(view, radius)
        if bound.upper is None:
            return None
        failure += bound.failure
        return bound.upper * view.base_norm * (1 + _ROUNDING) < allowed

    first = holds(limit)
    if first is None:
        return Proof(0.0, 0.0, certify(view, limit).reason)
    low, high = (limit, limit) if first else (0.0, limit)
    if first:
        for _ in range(_DOUBLINGS):
            high *= 2
            if not holds(high):
                break
            low = high
    else:
        low = limit
        for _ in range(_DOUBLINGS):
            low /= 2
            if holds(low):
                break
            high = low
        else:
            return Proof(0.0, 0.0, "no radius is small enough for the certificate of this map")
    while high > low * _CLOSE:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return Proof(low, min(1.0, failure))


def margin_proof(margins: Margins, view: PretrainedView) -> Proof:
    """Prove, for a pre-trained model, that no move of any size changes the prediction."""
    return Proof(0.0, 0.0, view.no_certificate)
