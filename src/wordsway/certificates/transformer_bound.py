"""Upper bounds for random transformers that end in a norm: each row of the last state lies in a ball around 0."""

import math

import torch

from wordsway.certificates.base import Certificate
from wordsway.certificates.ellipsoid_bound import Ellipsoid
from wordsway.maps.transformer.transformer_view import TransformerView

_ROUNDING = 2.0**13  # units of the view's precision that a row may be off by, as in docs/mathematics/norms.md


def certify_transformer(view: TransformerView, radius: float) -> Certificate:
    """Bound the change of a transformer with norms after each block, over moves of any size; there is no other bound.
    Rows before the moved tokens of a causal one do not change."""
    recipe = view.phi.recipe
    if recipe.norm != "post":
        return Certificate(None, 0.0, f"no certificate is known for a transformer with norm={recipe.norm!r}: "
                           "its last state is not what a norm gives")  # fmt: skip
    rows, d = view.base_rows[view.first :], view.X.shape[1]
    off = _ROUNDING * torch.finfo(view.dtype).eps
    ones = torch.ones(d, dtype=torch.float64)
    norm = Ellipsoid(ones, 0 * ones, True, math.sqrt(d) * (1 + off), aside=off)
    return Certificate((float(norm.furthest(rows).norm()) + view.base_drift) / view.base_norm)
