"""An upper bound for several heads: that of each of them."""

import math

from wordsway.certificates.base import Certificate
from wordsway.certificates.certify import certify
from wordsway.maps.attention.heads import HeadsView


def certify_heads(view: HeadsView, radius: float) -> Certificate:
    """Bound all heads together: no delta does more to them than the worst one for each."""
    bounds = [certify(head, radius) for head in view.heads]
    uppers: list[float] = []
    for head, bound in zip(view.heads, bounds, strict=True):
        if bound.upper is None:
            return bound
        uppers.append(bound.upper * head.base_norm)
    return Certificate(math.hypot(*uppers) / view.base_norm, min(1.0, sum(bound.failure for bound in bounds)))
