"""The geometry of the rows that stay when one token moves, as bounds of attention need it.

Notation of `separable_bound`: x_i is the moved token, e = x_i / |x_i|, r_j the value of row j without it, A_j the
vector whose product with the move changes row j's logit for it, and M = A (I - e e^T).
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention.attention_view import AttentionView
from wordsway.maps.attention.scores.base import PooledScore

_LEANS = 0.1  # of the largest |M_j|: a row of less has no lean


@dataclass(frozen=True)
class Rows:
    """The geometry that the bound needs; row vectors run over j != i, spectrum vectors over k."""

    score: PooledScore
    radius: float
    pooled: Tensor
    logit: Tensor
    old: Tensor  # p_j
    pull: Tensor  # alpha_j
    offset_along: Tensor  # |x_i| - e . r_j
    lean: Tensor  # tau_j, of what r_j has along M_j
    rest_across: Tensor  # |r_j - (e . r_j) e - tau_j M_j|
    offset_sq: Tensor  # |x_i - r_j|^2
    reaches: Tensor  # |M_j|, rounded up
    sigma_sq: Tensor
    z: Tensor
    own_points: Tensor  # |x_k - (row i)|, k != i, and |row i| if the row can become 0
    own_offset_sq: float  # |x_i - (row i)|^2
    own_along: float  # e . (x_i - row i)
    own_across: float  # |(I - e e^T)(x_i - row i)|
    own_most: float = math.inf  # another bound of the squared change of row i

    @property
    def reach(self) -> float:
        """The largest |M_j|."""
        return float(self.reaches.amax()) if len(self.reaches) else 0.0

    def some(self, which: Tensor) -> "Rows":
        """Some of the rows; all that is not of single rows stays as it is."""
        names = ("pooled", "logit", "old", "pull", "offset_along", "lean", "rest_across", "offset_sq", "reaches")
        return replace(self, **{name: getattr(self, name)[which] for name in names})


def reached(view: AttentionView) -> Tensor:
    """Rows that stay and see a moved token: the others do not change."""
    return view.stay & ~view.logits.amax(1).isneginf()


def row_geometry(view: AttentionView, radius: float) -> Rows:
    text, stay = view.text, reached(view)
    others = view.stay & ~view.row_logits[0].isneginf()  # what the token's own row sees
    x, row = text.X[view.tokens[0]], view.moved_rows[0]
    size = float(x.norm())
    e = x / size
    queries, rest = text.queries[stay], view.rest[stay]
    pull, along = queries @ e, rest @ e
    M = queries - pull[:, None] * e
    sigma_sq, z = spectrum(M)
    across = rest - along[:, None] * e
    lean = leanings(across, M)
    points = (text.X[others] - row).norm(dim=1)
    if view.score.silences:
        points = torch.cat([points, row.norm()[None]])
    offset = x - row
    return Rows(
        score=view.score,
        radius=radius,
        pooled=view.pooled[stay],
        logit=view.logits[stay, 0],
        old=view.old[stay, 0],
        pull=pull,
        offset_along=size - along,
        lean=lean,
        rest_across=(across - lean[:, None] * M).norm(dim=1),
        offset_sq=(x - rest).square().sum(1),
        reaches=M.norm(dim=1) * (1 + 1e-9),
        sigma_sq=sigma_sq,
        z=z,
        own_points=points,
        own_offset_sq=float(offset.square().sum()),
        own_along=float(offset @ e),
        own_across=float((offset - (offset @ e) * e).norm()),
    )


def leanings(across: Float[Tensor, "j d"], M: Float[Tensor, "j d"]) -> Float[Tensor, " j"]:
    """Find the multiple of M_j nearest to what r_j has across e, not below 0: attention looks where its query points,
    so what captures a row lies along r_j. Rows that gain little keep 0: cells of the line are wide for them."""
    sizes = M.norm(dim=1)
    if not len(M):
        return sizes
    nearest = (across * M).sum(1) / sizes.square().clamp(min=1e-300)
    return torch.where(sizes > _LEANS * sizes.amax(), nearest.clamp(min=0), 0.0)


def spectrum(M: Float[Tensor, "j d"]) -> tuple[Tensor, Tensor]:
    """Squared singular values of M, rounded up, and (sigma_k u_k . 1)^2, from the smaller of the two Gram matrices."""
    if not len(M):
        return M.new_zeros(1), M.new_zeros(1)
    ones = M.sum(0)  # M^T 1
    if len(M) > M.shape[1]:
        values, vectors = torch.linalg.eigh(M.T @ M)
        z = (vectors.T @ ones).square()
    else:
        values, vectors = torch.linalg.eigh(M @ M.T)
        z = values.clamp(min=0) * vectors.sum(0).square()
    return values.clamp(min=0) + 1e-12 * values.amax(), z
