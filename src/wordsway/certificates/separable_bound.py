"""An upper bound for one moved token of an attention layer: separable rows that share a budget.

Notation: Delta = c rho e + v with e = x_i / |x_i| and v orthogonal to e, so |v| <= rho_c = rho sqrt(1 - c^2). Row j
other than i gives the moved token the weight a_j(s_j), non-decreasing in s_j = A_j . Delta = c rho alpha_j + t_j
(`PooledScore.monotone`; else there is no bound) with alpha = A e and t = M v, M = A (I - e e^T). Its squared change is
at most
    psi_j = a^2 rho^2 + 2 a (a - p) (c rho (|x_i| - e . r_j) - tau_j t_j)
            + 2 a |a - p| rho_c |r_j - (e . r_j) e - tau_j M_j| + (a - p)^2 |x_i - r_j|^2,
with any tau_j.

**One budget.** All t_j come from one v. For any b, lam > 0 and mu > lam sigma_1^2, weak duality gives
    sum_j psi_j <= sum_j max_t [psi_j(t) - b t - lam t^2]  +  mu rho_c^2 + sum_k b^2 z_k / (4 (mu - lam sigma_k^2)),
sigma_k the singular values of M and z_k = (sigma_k u_k . 1)^2: the last two terms bound b 1^T M v + lam |M v|^2.

**Fourth powers.** Long texts have a second budget, sum_j w_j g(t_j) <= Lambda rho_c^4 with g(t) = max(0, t^2 - h)^2, h
= mean rho_c^2 (`fourth_powers`): for any nu >= 0, - nu w_j g(t) may be added in the brackets and nu Lambda rho_c^4
behind. Rows that are soon captured get the larger weights w_j.

**The line.** The one-dimensional maxima are taken over intervals that cover all |t| <= |M_j| rho: between
their ends every term is bounded by monotonicity, so nothing relies on a grid being fine enough.

**All c.** [-1, 1] is covered by intervals with centre m and half-width h. For fixed s_j and fixed multipliers every
term above is concave in c (t_j = s_j - c rho alpha_j), so it lies below its tangent at m, and a sum over rows of
maxima of linear functions is convex, so its largest value is at an end c' = m +- h. At c' the tangents are: psi_j
with c' and with the tangent of rho_c, plus lam h^2 (rho alpha_j)^2 from -lam t^2, and mu rho^2 (1 - c'^2 + h^2)
from mu rho_c^2. g is convex, and at c' its tangent is at least g(t_j) - 6 delta^2 max(|t_j|, |t_j + delta|)^2, delta =
(c' - m) rho alpha_j, as g'' <= 12 t^2; where g is 0 between them, it is 0. (1 - c^2)^2 is at most its tangent plus
h^2 / 2 times what its second derivative, 12 c^2 - 4, can be. For h in g, the largest rho_c of the interval is taken.

Row i is a convex combination (or 0), so it moves no further than to one of its points; `own_row_bound` has a bound that
shrinks with the radius: the smaller one is taken. Better intervals and multipliers only tighten the bound; any of them
is valid. So multipliers are searched on a part of the rows, and only what they give for all rows counts.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.fourth_powers import FourthPowers, fourth_powers
from wordsway.certificates.own_row_bound import own_row_bound
from wordsway.certificates.row_geometry import Rows, reached, row_geometry
from wordsway.maps.attention.attention_view import AttentionView

_FIRST_INTERVALS = 5
_SPLITS = 8
_OWN_SHARE = 0.05  # of the squared bound: where the token's own row has less, its hull is good enough
_SLACK = 64 * torch.finfo(torch.float64).eps
_CELLS = 360_000  # over all rows; a row's line is cut into 360 to 720 of them
_CAPTURE = 14.0  # change of a logit within which weights change
_MU_FACTORS = 1 + 10.0 ** torch.linspace(-4, 3, 29, dtype=torch.float64)
_SAMPLE = 400  # rows, about, that multipliers are searched on: half of them the first that would be captured
_USUAL_C = 0.25  # near the c of the worst interval, in random texts
_SOON = 0.75  # of the usual gain: rows that less would capture weigh no more than these
_LONG = 6  # tokens for each dimension: in shorter texts fourth powers have not gained 5%


@dataclass(frozen=True)
class Multipliers:
    """lam, b / (2 lam), and nu: of squares, of the sum and of fourth powers."""

    lam: float
    shift: float
    nu: float = 0.0


_Interval = tuple[float, float, float, Multipliers]  # -bound, middle, half-width, what gave it


def separable_bound(view: AttentionView, radius: float) -> float:
    """Bound the squared change by the rows' separate bounds, for all c."""
    rows = row_geometry(view, radius)
    queue = _first_intervals(rows, None)
    hull = max([math.sqrt(rows.own_offset_sq) + radius, *rows.own_points.tolist()])  # for every c
    if hull**2 > _OWN_SHARE * -queue[0][0]:
        most = own_row_bound(view, radius, hull)
        if most < hull:
            rows = replace(rows, own_most=most**2)
            queue = _first_intervals(rows, None)
    bound = _split(rows, queue, None)
    n, d = view.X.shape
    if view.score.exponential and n > _LONG * d and 2 * radius * rows.reach > math.log(n):  # rows can gain weight
        fourth = fourth_powers(view.text.queries[reached(view)], _weights(rows))
        if fourth is not None:
            bound = min(bound, _split(rows, _first_intervals(rows, fourth), fourth))
    return bound


def _weights(rows: Rows) -> Tensor:
    """Weigh the fourth power of each row's gain by what would capture it, within limits."""
    gain = -rows.score.lead(rows.pooled, rows.logit + _USUAL_C * rows.radius * rows.pull)
    usual = max(1.0, float(gain.median()))
    return (gain / usual).clamp(min=_SOON) ** -4


def _split(rows: Rows, queue: list[_Interval], fourth: FourthPowers | None) -> float:
    """Bound the squared change by the worst of the intervals, after splitting the worst again and again."""
    for _ in range(_SPLITS):
        worst, middle, half, guess = heapq.heappop(queue)
        for side in (middle - half / 2, middle + half / 2):
            bound, best = interval_bound(rows, side, half / 2, guess, 0.1, fourth)
            heapq.heappush(queue, (-bound, side, half / 2, best))
        if queue[0][0] < worst * (1 - 1e-3) and half < 0.1:
            break
    return -queue[0][0]


def _first_intervals(rows: Rows, fourth: FourthPowers | None) -> list[_Interval]:
    """Bound the squared change on each of a few intervals of c: a heap."""
    small = min(1.0, max(rows.radius * rows.reach, 1e-150))  # then weights are as good as linear in t
    log = math.log(2 + len(rows.pull))
    guess = Multipliers(4 * (rows.radius / small / (2 + log)) ** 2, 0.5 * small)
    if fourth is not None:  # as found on random texts, of which fourth powers bound the most part
        guess = Multipliers(0.05 * guess.lam, guess.shift, 6 * rows.radius**2 / log**4)
    queue: list[_Interval] = []
    half = 1 / _FIRST_INTERVALS
    for k in range(_FIRST_INTERVALS):
        middle = -1 + (2 * k + 1) * half
        bound, best = interval_bound(rows, middle, half, guess, 0.4, fourth)
        heapq.heappush(queue, (-bound, middle, half, best))
        guess = best if fourth is None else guess  # with two budgets, the best of one c misleads at another
    return queue


def interval_bound(
    rows: Rows, middle: float, half: float, guess: Multipliers, step: float, fourth: FourthPowers | None = None
) -> tuple[float, Multipliers]:
    """A bound on the squared change for all c within `half` of `middle`, and the multipliers that gave it."""
    rho, root = rows.radius, math.sqrt(1 - middle**2)
    ends = [
        (c, rho * (root - middle * (c - middle) / root)) for c in (middle - half, middle + half)
    ]  # c', tangent of rho_c
    own = max(_own_row(rows, c, across) for c, across in ends)
    if not len(rows.pull):
        return own, guess
    reach = rho * (rows.reach + 2 * half * float(rows.pull.abs().amax()))
    line = _grid(reach, min(720, max(360, _CELLS // len(rows.pull)))).to(rows.pull)
    every = torch.arange(len(rows.pull), device=rows.pull.device)
    which, counts = _sample(rows, middle)
    search = _dual(rows, which, counts, middle, half, ends, line, fourth)
    bound, best = _minimize(search, guess, step, min(1.0, reach))
    if len(which) < len(every):
        bound = _dual(rows, every, torch.ones_like(rows.pull), middle, half, ends, line, fourth)(best)
    return own + bound, best


def _sample(rows: Rows, c: float) -> tuple[Tensor, Tensor]:
    """Some of the rows, and how many each stands for: all of the first that would be captured, few of the others."""
    order = rows.score.lead(rows.pooled, rows.logit + c * rows.radius * rows.pull).argsort(descending=True)
    first, step = _SAMPLE // 2, max(1, 2 * len(order) // _SAMPLE)
    if len(order) <= 2 * _SAMPLE:
        return order, torch.ones_like(rows.pull)
    others = order[first::step]
    counts = torch.ones(first + len(others), dtype=rows.pull.dtype, device=order.device)
    counts[first:] = (len(order) - first) / len(others)
    return torch.cat([order[:first], others]), counts


def _dual(
    rows: Rows,
    which: Tensor,
    counts: Tensor,
    middle: float,
    half: float,
    ends: list[tuple[float, float]],
    line: Tensor,
    fourth: FourthPowers | None,
) -> Callable[[Multipliers], float]:
    """The bound of all rows but the token's own as a function of multipliers; the separate maxima are summed over
    `which` of the rows, each standing for `counts` of them."""
    rho, part = rows.radius, rows.some(which)
    shift_sq = float((rho * rows.pull).square().sum())
    beyond = _nearest(line) - 2 * half * rho * part.pull.abs()[:, None] > rho * part.reaches[:, None]  # never reached
    psis = [_psi(part, c, across, line).masked_fill_(beyond, -math.inf) for c, across in ends]
    budgets = torch.tensor([rho**2 * (1 - c * c + half**2) for c, _ in ends], dtype=torch.float64)
    left, right = line[:-1], line[1:]
    gains = None if fourth is None else [_gains(part, fourth, which, middle, half, c, line) for c, _ in ends]
    fourths = torch.tensor([0.0 if fourth is None else fourth.most * _fourth(rho, middle, half, c) for c, _ in ends])

    def dual(at: Multipliers) -> float:
        top = torch.clamp(torch.full_like(left, -at.shift), left, right)  # where -b t - lam t^2 is largest
        penalty = -at.lam * top * (2 * at.shift + top)
        charged = psis if gains is None else [psi - at.nu * gain for psi, gain in zip(psis, gains, strict=True)]
        separate = torch.stack([(psi + penalty).amax(1) @ counts for psi in charged]).cpu() + at.nu * fourths
        mu, tail = coupled(rows, at.lam, 2 * at.lam * at.shift)
        bounds = (separate + at.lam * half**2 * shift_sq)[:, None] + mu * budgets[:, None] + tail
        return float(bounds.amax(0).min())

    return dual


def _nearest(line: Tensor) -> Tensor:
    """The least |t| of each cell."""
    left, right = line[:-1], line[1:]
    return torch.where((left <= 0) & (right >= 0), 0.0, torch.minimum(left.abs(), right.abs()))


def _gains(
    part: Rows, fourth: FourthPowers, which: Tensor, middle: float, half: float, c: float, line: Tensor
) -> Float[Tensor, "j t"]:
    """A lower bound of w_j times the tangent of g at the middle of an interval, for t in each cell at its end c."""
    mean = fourth.mean * part.radius**2 * (1 - max(0.0, abs(middle) - half) ** 2)
    delta = ((c - middle) * part.radius * part.pull).abs()[:, None]
    furthest = torch.maximum(line[:-1].abs(), line[1:].abs()) + delta
    bent = torch.where(furthest.square() > mean, 6 * (delta * furthest).square(), 0.0)
    return fourth.weights[which][:, None] * ((_nearest(line).square() - mean).clamp(min=0).square() - bent)


def _fourth(rho: float, middle: float, half: float, c: float) -> float:
    """At an end c of an interval, a linear function of c that bounds rho_c^4 on it."""
    bent = max(0.0, 12 * (abs(middle) + half) ** 2 - 4)
    return rho**4 * ((1 - middle**2) ** 2 - 4 * middle * (1 - middle**2) * (c - middle) + 0.5 * bent * half**2)


def coupled(rows: Rows, lam: float, b: float) -> tuple[Tensor, Tensor]:
    """For several mu, what bounds b 1^T M v + lam |M v|^2 <= mu |v|^2 + tail."""
    mu = max(lam * float(rows.sigma_sq[-1]), 1e-300) * _MU_FACTORS.to(rows.z.device)
    tail = (0.25 * b * b * rows.z / (mu[:, None] - lam * rows.sigma_sq)).sum(1)
    return mu.cpu(), tail.cpu()


def _own_row(rows: Rows, c: float, across: float) -> float:
    """The squared change of row i: it ends at an old token, at the moved one, or between."""
    moved = rows.own_offset_sq + 2 * (rows.radius * c * rows.own_along + across * rows.own_across) + rows.radius**2
    hull = max(moved, float(rows.own_points.square().amax()) if len(rows.own_points) else 0.0)
    return min(hull, rows.own_most)


def _grid(reach: float, count: int) -> Tensor:
    """Ends of intervals that cover [-reach, reach]: even where weights change, and wider beyond. In a large ball a row
    changes most by gaining: most of them are on that side."""
    inner = min(reach, _CAPTURE)
    if reach <= inner:
        return torch.linspace(-inner, inner, 2 * count // 3, dtype=torch.float64)
    below = -reach * torch.linspace(1, 0, count // 8, dtype=torch.float64)[:-1] ** 2
    near = torch.linspace(0, inner, 5 * count // 8, dtype=torch.float64)
    far = inner + (reach - inner) * torch.linspace(0, 1, count // 4, dtype=torch.float64)[1:] ** 1.5
    return torch.cat([below, near, far])


def _psi(rows: Rows, c: float, across: float, line: Tensor) -> Float[Tensor, "j t"]:
    """An upper bound of psi_j at c, with rho_c = across, for t between neighbouring points of `line`."""
    shifted = (rows.logit + c * rows.radius * rows.pull)[:, None] + line
    weight, old = rows.score.share(rows.pooled[:, None], shifted), rows.old[:, None]
    gap = weight - old
    slack = _SLACK * (1 + rows.logit.abs()[:, None])  # of a difference of weights: rounding, where they hardly differ
    moved = gap.abs() + slack
    moved = torch.maximum(moved[:, :-1], moved[:, 1:])
    product = weight * gap  # a (a - p): convex in a with its minimum, -p^2 / 4, at p / 2
    most = torch.maximum(product[:, :-1], product[:, 1:]) + slack
    dips = (weight[:, :-1] < old / 2) & (weight[:, 1:] > old / 2)
    least = torch.where(dips, -old * old / 4, torch.minimum(product[:, :-1], product[:, 1:]) - slack)
    along = c * rows.radius * rows.offset_along[:, None] - rows.lean[:, None] * line
    high, low = along[:, :-1], along[:, 1:]
    crossed = torch.maximum(most * torch.where(most >= 0, high, low), least * torch.where(least >= 0, high, low))
    most_weight = weight[:, 1:]
    sideways = most_weight * moved * (across * rows.rest_across[:, None])
    return (most_weight * rows.radius).square() + 2 * (crossed + sideways) + moved.square() * rows.offset_sq[:, None]


def _minimize(
    dual: Callable[[Multipliers], float], guess: Multipliers, step: float, unit: float
) -> tuple[float, Multipliers]:
    """A small dual value by pattern search over log(lam), the shift, in units, and log(nu). Every value is a valid
    bound; the least is kept."""
    best, at = dual(guess), guess
    while step > 0.05:
        improved = False
        up, down = math.exp(step), math.exp(-step)
        tries = [(up, 0.0, 1.0), (down, 0.0, 1.0), (1.0, step * unit, 1.0), (1.0, -step * unit, 1.0)]
        if at.nu:  # the two budgets trade: lam falls by much where nu grows
            tries += [(1.0, 0.0, up), (1.0, 0.0, down), (down**3, 0.0, up), (down**3, 0.0, 1.0)]
        for by_lam, move, by_nu in tries:
            new = Multipliers(at.lam * by_lam, at.shift + move, at.nu * by_nu)
            value = dual(new)
            if value < best:
                best, at, improved = value, new, True
        step = step if improved else step / 2
    return best, at
