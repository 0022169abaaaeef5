"""An upper bound for several tokens of an attention layer that move together, within one ball of radius rho.

Notation: sigma_j is the norm over k of s_jk = A_j . delta_k, by which row j's logits for the moved tokens change. All
rows share one budget: sum_j sigma_j^2 = sum_k |A delta_k|^2 <= |A|_op^2 rho^2.

**A row that stays.** The moved tokens' pool grows by at most c sigma_j, where c is the Lipschitz constant of pooling in
the 2-norm (1 for logsumexp, sqrt(m) times that of f for a sum of m masses f), so their common weight is at most a
bar_j(sigma_j), the score's `most_shared`.
With common weight a, the row changes by sum_k w_jk delta_k, at most a rho, plus a (y - r_j) - u_j, where y is some
average of the x_k and u_j = sum_k b_jk (x_k - r_j) with the old weights b. Both together are at most
    f_j(a) = a rho + max_k |a (x_k - r_j) - u_j|,
which is convex in a: over [0, a bar] it is at most max(f_j(0), f_j(a bar)), and that grows with sigma_j.

**One budget.** For any lam >= 0, sum_j g_j(sigma_j)^2 <= lam |A|_op^2 rho^2 + sum_j max_sigma [g_j^2 - lam sigma^2].
The maxima are over intervals that cover all sigma, with g_j at the right end and sigma at the left one.

**A row that moves** is a convex combination of old tokens and moved ones (or 0): it moves no further than to one of
these points.
"""

import torch
from torch import Tensor

from wordsway.maps.attention.attention_view import AttentionView

_CELLS = 400
_FACTORS = 10.0 ** torch.linspace(-4, 4, 81, dtype=torch.float64)


def several_bound(view: AttentionView, radius: float) -> float:
    """An upper bound on the squared change."""
    own = _moved_rows(view, radius)
    stay = view.stay
    if not bool(stay.any()):
        return own
    queries = view.text.queries[stay]
    sizes = queries.norm(dim=1)
    small = queries @ queries.T if len(queries) <= queries.shape[1] else queries.T @ queries
    budget = radius**2 * float(torch.linalg.eigvalsh(small)[-1]) * (1 + 1e-12)
    line = _line(radius * float(sizes.amax()) * (1 + 1e-9)).to(queries.device)
    top = _row_bounds(view, radius, line[1:]).square()  # shape: (j, cells)
    # Row j cannot use more than |A_j| rho of its own.
    top = torch.where(line[:-1] > radius * sizes[:, None] * (1 + 1e-9), 0.0, top)
    scale = float(top.sum()) / max(budget, 1e-300)
    duals = [
        lam * budget + float((top - lam * line[:-1].square()).amax(1).sum()) for lam in (scale * _FACTORS).tolist()
    ]
    return own + min([*duals, float(top.amax(1).sum())])


def _row_bounds(view: AttentionView, radius: float, sigma: Tensor) -> Tensor:
    """g_j(sigma) for the rows that stay."""
    stay = view.stay
    share = view.score.most_shared(view.pooled[stay][:, None], view.logits[stay], sigma)  # shape: (j, cells)
    offsets = view.text.X[list(view.tokens)] - view.rest[stay][:, None]  # x_k - r_j, shape: (j, k, d)
    u = (view.old[stay][..., None] * offsets).sum(1)
    square, cross, constant = offsets.square().sum(-1), (offsets * u[:, None]).sum(-1), u.square().sum(-1)
    found = constant.sqrt()[:, None].expand_as(share)  # f_j(0)
    for k in range(len(view.tokens)):
        distance = (share.square() * square[:, k, None] - 2 * share * cross[:, k, None] + constant[:, None]).clamp(
            min=0
        )
        found = torch.maximum(found, share * radius + distance.sqrt())
    return found


def _moved_rows(view: AttentionView, radius: float) -> float:
    total = 0.0
    for row in view.moved_rows:
        reach = (view.text.X - row).norm(dim=1)
        reach[list(view.tokens)] += radius
        furthest = float(reach.amax())
        total += max(furthest, float(row.norm()) if view.score.silences else 0.0) ** 2
    return total


def _line(reach: float) -> Tensor:
    """Ends of intervals that cover [0, reach]: even near 0, where weights change, and wider beyond."""
    near = torch.linspace(0, min(reach, 14.0), _CELLS, dtype=torch.float64)
    if reach <= 14.0:
        return near
    return torch.cat([near, 14.0 + (reach - 14.0) * torch.linspace(0, 1, _CELLS // 4, dtype=torch.float64)[1:] ** 2])
