"""Upper bounds of an attention layer: the least of those that hold for one moved token, or that for several.

For one token: `separable_bound` for balls of any radius, `first_order_bound` for small ones.
"""

import math

import torch

from wordsway.certificates.base import Certificate
from wordsway.certificates.first_order_bound import first_order_bound
from wordsway.certificates.row_geometry import reached
from wordsway.certificates.separable_bound import separable_bound
from wordsway.certificates.several_bound import several_bound
from wordsway.maps.attention.attention_view import AttentionView
from wordsway.maps.attention.scores.base import PooledScore

_NEARLY = 1.25  # the first-order bound has not been improved on where it is this near to the derivative


def certify_attention(view: AttentionView, radius: float) -> Certificate:
    """Bound the change over the ball of `radius` around one token; `several_bound` does so for more."""
    if len(view.tokens) != 1:
        return _certify_several(view, radius)
    if not view.score.monotone:
        return Certificate(
            None, 0.0, f"no certificate: under {_name(view.score)}, a weight may fall as its logit grows"
        )
    near = first_order_bound(view, reached(view), radius)
    if near is not None and near[0] < _NEARLY * near[1]:
        return Certificate(near[0] / view.base_norm * (1 + _margin(view)))
    total = math.sqrt(max(0.0, separable_bound(view, radius)))
    if near is not None:
        total = min(total, near[0])
    return Certificate(total / view.base_norm * (1 + _margin(view)))


def _certify_several(view: AttentionView, radius: float) -> Certificate:
    if not view.text.sight.whole:
        return Certificate(None, 0.0, "no certificate is known for several tokens under masked attention")
    if view.score.lipschitz is None:
        return Certificate(
            None, 0.0, f"no certificate for several tokens: {_name(view.score)} does not say how steep it is"
        )
    total = several_bound(view, radius)
    return Certificate(math.sqrt(total) / view.base_norm * (1 + _margin(view)))


def _name(score: PooledScore) -> str:
    return f"the score {type(score).__name__}"


def _margin(view: AttentionView) -> float:
    """A relative allowance for rounding: dot products of length n + d in float64, and weights whose relative error is
    the absolute error of their logits, which is in proportion to the largest of them."""
    rows = reached(view)
    logits = torch.cat([view.logits[rows].flatten(), view.pooled[rows]])
    size = float(logits.abs().amax()) if len(logits) else 0.0
    return 1e-9 + 64 * torch.finfo(torch.float64).eps * sum(view.X.shape) * (1 + size)
