"""An upper bound for one moved token of an attention layer: separable rows that share one budget.

Notation: Delta = c rho e + v with e = x_i / |x_i| and v orthogonal to e, so |v| <= rho_c = rho sqrt(1 - c^2). Row j
other than i gives the moved token the weight a_j(s_j), non-decreasing in s_j = A_j . Delta = c rho alpha_j + t_j
(`PooledScore.monotone`; else there is no bound) with alpha = A e and t = M v, M = A (I - e e^T). Its squared change is
at most
    psi_j = a^2 rho^2 + 2 a (a - p) c rho (|x_i| - e . r_j) + 2 a |a - p| rho_c |r_j - (e . r_j) e| + (a - p)^2 |x_i
    - r_j|^2.

**One budget.** All t_j come from one v. For any b, lam > 0 and mu > lam sigma_1^2, weak duality gives
    sum_j psi_j <= sum_j max_t [psi_j(t) - b t - lam t^2]  +  mu rho_c^2 + sum_k b^2 z_k / (4 (mu - lam sigma_k^2)),
sigma_k the singular values of M and z_k = (sigma_k u_k . 1)^2: the last two terms bound b 1^T M v + lam |M v|^2.

**The line.** The one-dimensional maxima are taken over intervals that cover the line: between their ends every term
is bounded by monotonicity, so nothing relies on a grid being fine enough.

**All c.** [-1, 1] is covered by intervals with centre m and half-width h. For fixed s_j and fixed multipliers every
term above is concave in c (t_j = s_j - c rho alpha_j), so it lies below its tangent at m, and a sum over rows of
maxima of linear functions is convex, so its largest value is at an end c' = m +- h. At c' the tangents are: psi_j
with c' and with the tangent of rho_c, plus lam h^2 (rho alpha_j)^2 from -lam t^2, and mu rho^2 (1 - c'^2 + h^2)
from mu rho_c^2.

Row i is a convex combination (or 0), so it moves no further than to one of its points; `own_row_bound` has a bound that
shrinks with the radius, and `first_order_bound` one of all rows for small balls: the smaller ones are taken. Better
intervals and multipliers only tighten the bound; any of them is valid.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.base import Certificate
from wordsway.certificates.first_order_bound import first_order_bound
from wordsway.certificates.own_row_bound import own_row_bound
from wordsway.certificates.several_bound import several_bound
from wordsway.maps.attention.attention_view import AttentionView
from wordsway.maps.attention.scores.base import PooledScore

_FIRST_INTERVALS = 5
_SPLITS = 8
_OWN_SHARE = 0.05  # of the squared bound: where the token's own row has less, its hull is good enough
_NEARLY = 1.25  # the first-order bound has not been improved on where it is this near to the derivative
_SLACK = 64 * torch.finfo(torch.float64).eps
_CELLS = 360_000  # over all rows; a row's line is cut into 120 to 720 of them
_MU_FACTORS = 1 + 10.0 ** torch.linspace(-4, 3, 29, dtype=torch.float64)


@dataclass(frozen=True)
class _Rows:
    """The geometry that the bound needs; row vectors run over j != i, spectrum vectors over k."""

    score: PooledScore
    radius: float
    pooled: Tensor
    logit: Tensor
    old: Tensor  # p_j
    pull: Tensor  # alpha_j
    offset_along: Tensor  # |x_i| - e . r_j
    rest_across: Tensor  # |r_j - (e . r_j) e|
    offset_sq: Tensor  # |x_i - r_j|^2
    reach: float  # max_j |M_j|
    sigma_sq: Tensor
    z: Tensor
    own_points: Tensor  # |x_k - (row i)|, k != i, and |row i| if the row can become 0
    own_offset_sq: float  # |x_i - (row i)|^2
    own_along: float  # e . (x_i - row i)
    own_across: float  # |(I - e e^T)(x_i - row i)|
    own_most: float = math.inf  # another bound of the squared change of row i


def certify_attention(view: AttentionView, radius: float) -> Certificate:
    """Bound the change over the ball of `radius` around one token; `several_bound` does so for more."""
    if len(view.tokens) != 1:
        return _certify_several(view, radius)
    if not view.score.monotone:
        return Certificate(
            None, 0.0, f"no certificate: under {_name(view.score)}, a weight may fall as its logit grows"
        )
    near = first_order_bound(view, _reached(view), radius)
    if near is not None and near[0] < _NEARLY * near[1]:
        return Certificate(near[0] / view.base_norm * (1 + _margin(view)))
    total = math.sqrt(max(0.0, _separable_bound(view, radius)))
    if near is not None:
        total = min(total, near[0])
    return Certificate(total / view.base_norm * (1 + _margin(view)))


def _separable_bound(view: AttentionView, radius: float) -> float:
    """Bound the squared change by the rows' separate bounds, for all c."""
    rows = _geometry(view, radius)
    queue = _first_intervals(rows)
    hull = max([math.sqrt(rows.own_offset_sq) + radius, *rows.own_points.tolist()])  # for every c
    if hull**2 > _OWN_SHARE * -queue[0][0]:
        most = own_row_bound(view, radius, hull)
        if most < hull:
            rows = replace(rows, own_most=most**2)
            queue = _first_intervals(rows)
    for _ in range(_SPLITS):  # the bound is the worst interval's: split that one
        worst, middle, half, guess = heapq.heappop(queue)
        for side in (middle - half / 2, middle + half / 2):
            bound, best = _interval_bound(rows, side, half / 2, guess, 0.1)
            heapq.heappush(queue, (-bound, side, half / 2, best))
        if queue[0][0] < worst * (1 - 1e-3) and half < 0.1:
            break
    return -queue[0][0]


def _first_intervals(rows: _Rows) -> list[tuple[float, float, float, tuple[float, float]]]:
    """Bound the squared change on each of a few intervals of c: a heap of (-bound, middle, half-width, multipliers)."""
    small = min(1.0, max(rows.radius * rows.reach, 1e-150))  # then weights are as good as linear in t
    guess = (4 * (rows.radius / small / (2 + math.log(1 + len(rows.pull)))) ** 2, 0.5 * small)
    queue: list[tuple[float, float, float, tuple[float, float]]] = []
    half = 1 / _FIRST_INTERVALS
    for k in range(_FIRST_INTERVALS):
        middle = -1 + (2 * k + 1) * half
        bound, guess = _interval_bound(rows, middle, half, guess, 0.4)
        heapq.heappush(queue, (-bound, middle, half, guess))
    return queue


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
    reached = _reached(view)
    logits = torch.cat([view.logits[reached].flatten(), view.pooled[reached]])
    size = float(logits.abs().amax()) if len(logits) else 0.0
    return 1e-9 + 64 * torch.finfo(torch.float64).eps * sum(view.X.shape) * (1 + size)


def _reached(view: AttentionView) -> Tensor:
    """Rows that stay and see a moved token: the others do not change."""
    return view.stay & ~view.logits.amax(1).isneginf()


def _geometry(view: AttentionView, radius: float) -> _Rows:
    text, stay = view.text, _reached(view)
    others = view.stay & ~view.row_logits[0].isneginf()  # what the token's own row sees
    x, row = text.X[view.tokens[0]], view.moved_rows[0]
    size = float(x.norm())
    e = x / size
    queries, rest = text.queries[stay], view.rest[stay]
    pull, along = queries @ e, rest @ e
    M = queries - pull[:, None] * e
    sigma_sq, z = _spectrum(M)
    points = (text.X[others] - row).norm(dim=1)
    if view.score.silences:
        points = torch.cat([points, row.norm()[None]])
    offset = x - row
    return _Rows(
        score=view.score,
        radius=radius,
        pooled=view.pooled[stay],
        logit=view.logits[stay, 0],
        old=view.old[stay, 0],
        pull=pull,
        offset_along=size - along,
        rest_across=(rest - along[:, None] * e).norm(dim=1),
        offset_sq=(x - rest).square().sum(1),
        reach=float(M.norm(dim=1).amax()) * (1 + 1e-9) if len(M) else 0.0,
        sigma_sq=sigma_sq,
        z=z,
        own_points=points,
        own_offset_sq=float(offset.square().sum()),
        own_along=float(offset @ e),
        own_across=float((offset - (offset @ e) * e).norm()),
    )


def _spectrum(M: Float[Tensor, "j d"]) -> tuple[Tensor, Tensor]:
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


def _interval_bound(
    rows: _Rows, middle: float, half: float, guess: tuple[float, float], step: float
) -> tuple[float, tuple[float, float]]:
    """A bound on the squared change for all c within `half` of `middle`, and the multipliers, lam and b / (2 lam), that
    gave it."""
    rho, root = rows.radius, math.sqrt(1 - middle**2)
    ends = [
        (c, rho * (root - middle * (c - middle) / root)) for c in (middle - half, middle + half)
    ]  # c', tangent of rho_c
    own = max(_own_row(rows, c, across) for c, across in ends)
    if not len(rows.pull):
        return own, guess
    shift_sq = float((rho * rows.pull).square().sum())
    reach = rho * (rows.reach + 2 * half * float(rows.pull.abs().amax()))
    line = _grid(reach, min(720, max(120, _CELLS // len(rows.pull)))).to(rows.pull)
    psis = [_psi(rows, c, across, line) for c, across in ends]
    budgets = torch.tensor([rho**2 * (1 - c * c + half**2) for c, _ in ends], dtype=torch.float64)
    left, right = line[:-1], line[1:]

    def dual(lam: float, shift: float) -> float:
        top = torch.clamp(torch.full_like(left, -shift), left, right)  # where -b t - lam t^2 is largest
        penalty = -lam * top * (2 * shift + top)
        separate = torch.stack([(psi + penalty).amax(1).sum() for psi in psis]).cpu() + lam * half**2 * shift_sq
        mu, tail = _coupled(rows, lam, 2 * lam * shift)
        return float((separate[:, None] + mu * budgets[:, None] + tail).amax(0).min())

    bound, guess = _minimize(dual, guess, step, min(1.0, reach))
    return own + bound, guess


def _coupled(rows: _Rows, lam: float, b: float) -> tuple[Tensor, Tensor]:
    """For several mu, what bounds b 1^T M v + lam |M v|^2 <= mu |v|^2 + tail."""
    mu = max(lam * float(rows.sigma_sq[-1]), 1e-300) * _MU_FACTORS.to(rows.z.device)
    tail = (0.25 * b * b * rows.z / (mu[:, None] - lam * rows.sigma_sq)).sum(1)
    return mu.cpu(), tail.cpu()


def _own_row(rows: _Rows, c: float, across: float) -> float:
    """The squared change of row i: it ends at an old token, at the moved one, or between."""
    moved = rows.own_offset_sq + 2 * (rows.radius * c * rows.own_along + across * rows.own_across) + rows.radius**2
    hull = max(moved, float(rows.own_points.square().amax()) if len(rows.own_points) else 0.0)
    return min(hull, rows.own_most)


def _grid(reach: float, count: int) -> Tensor:
    """Ends of intervals that cover [-reach, reach]: even near 0, where weights change, and wider beyond."""
    inner = min(reach, 14.0)
    near = torch.linspace(-inner, inner, 2 * count // 3, dtype=torch.float64)
    far = inner + (reach - inner) * torch.linspace(0, 1, count // 6, dtype=torch.float64)[1:] ** 2
    return torch.cat([-far.flip(0), near, far]) if reach > inner else near


def _psi(rows: _Rows, c: float, across: float, line: Tensor) -> Float[Tensor, "j t"]:
    """An upper bound of psi_j at c, with rho_c = across, for t between neighbouring points of `line`."""
    shifted = (rows.logit + c * rows.radius * rows.pull)[:, None] + line
    weight, old = rows.score.share(rows.pooled[:, None], shifted), rows.old[:, None]
    gap = weight - old
    slack = _SLACK * (1 + rows.logit.abs()[:, None])  # of a difference of weights: rounding, where they hardly differ
    moved = gap.abs() + slack
    moved = torch.maximum(moved[:, :-1], moved[:, 1:])
    product = weight * gap  # a (a - p): convex in a with its minimum, -p^2 / 4, at p / 2
    least, most = (
        torch.minimum(product[:, :-1], product[:, 1:]) - slack,
        torch.maximum(product[:, :-1], product[:, 1:]) + slack,
    )
    kappa = c * rows.radius * rows.offset_along[:, None]
    dips = (weight[:, :-1] < old / 2) & (weight[:, 1:] > old / 2)
    crossed = kappa * torch.where(kappa >= 0, most, torch.where(dips, -old * old / 4, least))
    most_weight = weight[:, 1:]
    sideways = most_weight * moved * (across * rows.rest_across[:, None])
    return (most_weight * rows.radius).square() + 2 * (crossed + sideways) + moved.square() * rows.offset_sq[:, None]


def _minimize(
    dual: Callable[[float, float], float], guess: tuple[float, float], step: float, unit: float
) -> tuple[float, tuple[float, float]]:
    """A small dual value by pattern search over log(lam) and the shift, in units. Every value is a valid bound; the
    least is kept."""
    best, (lam, shift) = dual(*guess), guess
    while step > 0.05:
        improved = False
        for factor, move in ((math.exp(step), 0.0), (math.exp(-step), 0.0), (1.0, step * unit), (1.0, -step * unit)):
            value = dual(lam * factor, shift + move)
            if value < best:
                best, lam, shift, improved = value, lam * factor, shift + move, True
        step = step if improved else step / 2
    return best, (lam, shift)
