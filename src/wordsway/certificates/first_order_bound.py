"""An upper bound for one moved token of attention within a small ball: the derivative, and what it may change by.

Notation as in `attention_bound` and `own_row_bound`. By the mean value theorem a difference is a slope times a change
of the logit, and a score bounds its slopes over the interval that a logit can be in (`slopes`, `share_slopes`).

**A row j that stays** changes by a Delta + (a - p)(x_i - r_j), a - p = g s_j with s_j = A_j . Delta and g in [g-, g+]
around the slope g0 at s_j = 0. So it differs from J_j Delta = p Delta + g0 s_j (x_i - r_j) by at most
    |s_j| (g+ rho + gap_j |x_i - r_j|),   gap_j = max(g+ - g0, g0 - g-).

**The token's own row** changes by (1 / M') sum_k h_k t_k (x_k - y) + (1 / M') h_i q (x_i - y) + w'_i Delta with h_k in
[h-, h+] around h0, the slopes of f. It differs from J_i Delta = sum_k (h0_k / M) t_k (x_k - y) + w_i Delta by at most
rho times
    |gap^(1/2) (x - y)|_op |gap^(1/2) K|_op + (h+_i / M-) rho bend |x_i - y| + max |w'_i - w_i|,
with gap_k = max(h+_k / M- - h0_k / M, h0_k / M - h-_k / M+) and M- <= M' <= M+.

**Together** the change is at most rho (|J|_op + the root of both remainders' squares): J is the derivative of the whole
layer in the token, so the bound is exact as rho goes to 0. No step subtracts numbers that differ by less than they are
rounded by, so it holds for every rho, however small.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.own_row_bound import OwnRow, operator_norm, own_row
from wordsway.maps.attention.attention_view import AttentionView

_FURTHEST = 4.0  # change of a logit beyond which the remainder is hopeless, so that it is not worth computing


def first_order_bound(view: AttentionView, reached: Tensor, radius: float) -> tuple[float, float] | None:
    """Bound the change of the features, and say how much of the bound is the derivative. None: no such bound, because
    the radius is too large or the score does not say enough. `reached` are the rows that stay and see the token."""
    reach = radius * view.text.queries[reached].norm(dim=1)
    if bool((reach > _FURTHEST).any()):
        return None
    row = own_row(view)
    if row is None or bool((row.reach(radius) > _FURTHEST).any()):
        return None
    own, staying = _own_row(row, radius), _rows_that_stay(view, reached, reach, radius)
    if own is None or staying is None:
        return None
    slope = math.sqrt(max(0.0, float(torch.linalg.eigvalsh(own[0].T @ own[0] + staying[0])[-1])))
    bound = slope + math.hypot(own[1], staying[1])
    return (radius * bound, radius * slope) if math.isfinite(bound) else None


def _own_row(row: OwnRow, radius: float) -> tuple[Float[Tensor, "d d"], float] | None:
    """J_i, and the bound of the remainder over rho."""
    reach, place, total = row.reach(radius), row.place, row.total
    at, within = row.score.slopes(row.logits, row.logits), row.score.slopes(row.logits - reach, row.logits + reach)
    if at is None or within is None:
        return None
    (low, high), slope = within, 0.5 * (at[0] + at[1])  # any slope between them would do
    less, more = row.moved_mass(-reach), row.moved_mass(reach)
    least, most = _totals(row, radius, slope, torch.maximum(high - slope, slope - low))
    least, most = max(least, float(less.sum())), min(most, float(more.sum()))
    if not least > 0:
        return None
    gap = torch.maximum(high / least - slope / total, slope / total - low / most).clamp(min=0).sqrt()[:, None]
    weight = float(row.weights[place])
    rest = operator_norm(gap * row.offsets) * operator_norm(gap * row.keys)
    rest += float(high[place]) / least * radius * row.bend * float(row.offsets[place].norm())
    rest += max(min(1.0, float(more[place]) / least) - weight, weight - float(less[place]) / most)
    J = ((slope / total)[:, None] * row.offsets).T @ row.keys
    J.diagonal().add_(weight)
    return J, rest


def _totals(row: OwnRow, radius: float, slope: Tensor, gap: Tensor) -> tuple[float, float]:
    """Bound the sum M' of all masses from both sides, by slopes; with exp, Jensen's inequality gives M exp(w_i q)."""
    bend = radius**2 * row.bend
    change = radius * float((slope @ row.keys).norm()) + float(slope[row.place]) * bend
    change += float((gap * row.reach(radius)).sum())
    least = row.total - change
    if row.score.exponential:
        least = max(least, row.total * math.exp(-float(row.weights[row.place]) * bend))
    return least, row.total + change


def _rows_that_stay(
    view: AttentionView, reached: Tensor, reach: Float[Tensor, " j"], radius: float
) -> tuple[Float[Tensor, "d d"], float] | None:
    """The sum of J_j^T J_j, and the bound of all remainders over rho."""
    logit, pooled, old = view.logits[reached, 0], view.pooled[reached], view.old[reached, 0]
    at, within = (view.score.share_slopes(pooled, logit - by, logit + by) for by in (0 * reach, reach))
    if at is None or within is None:
        return None
    (low, high), slope = within, 0.5 * (at[0] + at[1])
    queries, offsets = view.text.queries[reached], view.x[0] - view.rest[reached]
    sizes = offsets.norm(dim=1)
    gap = torch.maximum(high - slope, slope - low).clamp(min=0)
    rest = (high * radius + gap * sizes)[:, None] * queries
    if not bool(rest.isfinite().all()):
        return None
    cross = ((old * slope)[:, None] * offsets).T @ queries
    steep = (slope * sizes)[:, None] * queries
    gram = steep.T @ steep + cross + cross.T
    gram.diagonal().add_(old.square().sum())
    return gram, operator_norm(rest)
