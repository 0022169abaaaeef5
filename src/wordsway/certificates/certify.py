"""Upper bounds on how far a view's features can move, next to the lower bounds that a search finds.

A certificate is a statement about every delta of a radius, not about those that a search tried. Where weights are
given it is a deterministic inequality, computed in float64 with a margin for rounding; where they are revealed
lazily it holds up to a stated probability over what is not revealed yet.
"""

import math

from wordsway.certificates.attention_bound import certify_attention
from wordsway.certificates.base import Certificate
from wordsway.certificates.features_bound import certify_features
from wordsway.maps.attention.attention_view import AttentionView
from wordsway.maps.attention.heads import HeadsView
from wordsway.maps.base import View
from wordsway.maps.features.random_features import FeatureView

__all__ = ["Certificate", "certify"]


def certify(view: View, radius: float) -> Certificate:
    """An upper bound on norm(change) / norm(phi(X)) over all deltas of norm at most `radius`."""
    if view.base_norm == 0:
        return Certificate(None, 0.0, "phi(X) is zero, so a relative change is not defined")
    if isinstance(view, AttentionView):
        return certify_attention(view, radius)
    if isinstance(view, HeadsView):
        return _all_heads(view, radius)
    if isinstance(view, FeatureView):
        return certify_features(view, radius)
    if view.terrain in ("layered", "deep"):
        return Certificate(None, 0.0, "no certificate is known for a deep model")
    return Certificate(None, 0.0, "no certificate is known for this map")


def _all_heads(view: HeadsView, radius: float) -> Certificate:
    """No delta does more to all heads together than the worst one for each."""
    found = [certify(head, radius) for head in view.heads]
    total = 0.0
    for head, bound in zip(view.heads, found, strict=True):
        if bound.upper is None:
            return bound
        total += (bound.upper * head.base_norm) ** 2
    return Certificate(math.sqrt(total) / view.base_norm, min(1.0, sum(bound.failure for bound in found)))
