"""An upper bound for the row of the moved token itself, that shrinks with the radius.

Notation: the row sees tokens k with logits l_k and masses m_k = f(l_k), M = sum_k m_k, weights w_k = m_k / M and value
y = sum_k w_k x_k. A move Delta of token i changes l_k by t_k = K_k . Delta with K_k = W x_k, and l_i by t_i + q with
K_i = (W + W^T) x_i and |q| = |Delta W Delta| <= rho^2 bend. If f = exp, adding a number to all logits changes nothing:
the weighted mean of the K_k is taken from each.

**The change.** New masses m'_k add up to M'. As sum_k m_k (x_k - y) = 0, for every number gamma
    y' - y = (1 / M') sum_k (m'_k - gamma m_k) (x_k - y) + w'_i Delta.
With e_k = m'_k - gamma m_k and any D_k > 0, Cauchy-Schwarz bounds the first part by |D^(1/2) (x - y)|_op |D^(-1/2) e|
/ M'.

**One budget.** |D^(-1/2) e| <= tau M' holds for all moves, if for some theta, lam > 0
    sum_k max_t [e_k^2 / (2 theta D_k) - tau e_k - lam D_k t^2] + lam B^2 + theta / 2 - tau gamma M <= 0,
because |v| <= |v|^2 / (2 theta) + theta / 2, M' = gamma M + sum_k e_k and sum_k D_k t_k^2 <= B^2 = rho^2 |D^(1/2)
K|_op^2.
The maxima are over cells that cover all |t| <= |K_k| rho, where e_k lies between its values at the ends (`monotone`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention.attention_view import AttentionView
from wordsway.maps.attention.scores.base import PooledScore

_CELLS = 150_000  # over all tokens; each has 40 to 200 of them
_SLACK = 64 * torch.finfo(torch.float64).eps  # for rounding: of masses, relative; of logits, relative to 1 + |l_k|
_COARSEST, _FINEST = 0.4, 0.01  # the first and the last step of log(tau): the last is 1% of the bound
_WORTH_IT = 0.1  # a gain of less than 10% is not looked for
_FURTHEST = 6.0  # change of a logit beyond which exp has never been bounded better than by the hull
_GAMMAS = (0.0, 0.4, 0.8)  # gamma = 1 - part (1 - M- / M): any is valid, and which is best depends on the radius
_BUDGET_FACTORS = [0.0, *(10.0 ** torch.linspace(-3, 2, 21, dtype=torch.float64)).tolist()]


@dataclass(frozen=True)
class OwnRow:
    """The geometry of the moved token's row; vectors run over the tokens that it sees."""

    score: PooledScore
    place: int  # of the moved token itself
    logits: Float[Tensor, " k"]
    mass: Float[Tensor, " k"]
    weights: Float[Tensor, " k"]
    keys: Float[Tensor, "k d"]  # K_k
    offsets: Float[Tensor, "k d"]  # x_k - y
    bend: float

    @property
    def total(self) -> float:
        """M."""
        return float(self.mass.sum())

    def moved_mass(self, change: Tensor) -> Tensor:
        """Compute masses of the tokens after a change (k, ...) of their logits."""
        mass = self.score.mass(self.logits.reshape(-1, *[1] * (change.dim() - 1)) + change)
        assert mass is not None
        return mass

    def reach(self, radius: float) -> Float[Tensor, " k"]:
        """Bound the change of each logit."""
        reach = radius * self.keys.norm(dim=1)
        reach[self.place] += radius**2 * self.bend
        return reach


def own_row(view: AttentionView) -> OwnRow | None:
    """Describe the row; None where the score has no masses, or where the row has none."""
    text, token, logits = view.text, view.tokens[0], view.row_logits[0]
    seen = ~logits.isneginf()
    keys = text.keys.clone()
    keys[token] += text.queries[token]  # (W + W^T) x_i
    keys, logits, values = keys[seen], logits[seen], text.X[seen]
    if view.score.exponential:
        logits = logits - logits.logsumexp(0)
    mass = view.score.mass(logits)
    if mass is None or not float(mass.sum()) > 0:
        return None
    weights = mass / mass.sum()
    if view.score.exponential:
        keys = keys - weights @ keys
    place = int(seen[:token].sum())
    return OwnRow(view.score, place, logits, mass, weights, keys, values - weights @ values, text.bend)


def operator_norm(matrix: Float[Tensor, "r c"]) -> float:
    """Compute the largest singular value, from the smaller of the two Gram matrices."""
    if not len(matrix):
        return 0.0
    gram = matrix.T @ matrix if len(matrix) > matrix.shape[1] else matrix @ matrix.T
    return math.sqrt(max(0.0, float(torch.linalg.eigvalsh(gram)[-1])))


def own_row_bound(view: AttentionView, radius: float, hull: float) -> float:
    """Bound how far the row of the moved token moves: at most `hull`, which is known already."""
    furthest = radius * float(view.text.keys.norm(dim=1).amax())
    row = None if view.score.exponential and furthest > _FURTHEST else own_row(view)
    if row is None:
        return hull
    even = 0.2 if row.score.exponential else 0.8
    D = ((1 - even) * row.weights + even / len(row.weights))[:, None]
    cells = _Cells(row, radius, D)
    least = cells.least_total
    if not least > 0:
        return hull
    most_own = float(row.moved_mass(row.reach(radius))[row.place])
    own = radius * min(1.0, most_own / least)
    spread = operator_norm(D.sqrt() * row.offsets)
    tau = (hull - own) / spread if spread > 0 else 0.0
    if tau <= 0:
        return hull if spread > 0 else own
    fallen = 1 - min(1.0, least / row.total)
    tau = min(cells.smallest(tau, 1 - part * fallen) for part in _GAMMAS)
    return tau * spread + own


class _Cells:
    """Cells that cover all changes t of every logit, shape (k, cells), with bounds of the masses on them."""

    def __init__(self, row: OwnRow, radius: float, D: Float[Tensor, "k 1"]) -> None:
        self.row, self.D = row, D
        self.budget = (radius * operator_norm(D.sqrt() * row.keys)) ** 2 * (1 + 1e-9)  # B^2
        count = min(200, max(40, _CELLS // len(D)))
        t = radius * row.keys.norm(dim=1)[:, None] * torch.linspace(-1, 1, count, dtype=D.dtype, device=D.device)
        left, right = t[:, :-1], t[:, 1:]
        q = torch.zeros_like(D)
        q[row.place] = radius**2 * row.bend
        q = q + _SLACK * (1 + row.logits.abs()[:, None])
        self.least = row.moved_mass(left - q) / (1 + _SLACK)
        self.most = row.moved_mass(right + q) * (1 + _SLACK)
        nearest = torch.where((left < 0) & (right > 0), 0.0, torch.minimum(left.abs(), right.abs()))
        self.price = D * nearest.square()

    @property
    def least_total(self) -> float:
        """A lower bound of M', by the same budget."""
        scale = self.row.total / self.budget if self.budget > 0 else 0.0
        duals = [
            float((self.least + lam * self.price).amin(1).sum()) - lam * self.budget
            for lam in (scale * factor for factor in _BUDGET_FACTORS)
        ]
        return max(duals) * (1 - 1e-12)

    def smallest(self, tau: float, gamma: float) -> float:
        """Lower tau for as long as multipliers are found that prove it; the first one is taken as proven."""
        base = gamma * self.row.mass[:, None]
        low, high = self.least - base, self.most - base
        squares = torch.maximum(low.square(), high.square()) / self.D
        total = gamma * self.row.total

        def excess(theta: float, lam: float, tau: float) -> float:
            separate = float((squares / (2 * theta) - tau * low - lam * self.price).amax(1).sum())
            return separate + lam * self.budget + theta / 2 - tau * total

        theta, lam, step = tau * total, 0.5 * tau * total / max(self.budget, 1e-300), _COARSEST
        first = tau
        while step > (_FINEST if tau < first else _WORTH_IT):
            ratio = math.exp(-step)
            proof = _nonpositive(lambda a, b, to=tau * ratio: excess(a, b, to), theta * ratio, lam * ratio)
            if proof is None:
                step /= 2
            else:
                tau, (theta, lam) = tau * ratio, proof
        return tau


def _nonpositive(function: Callable[[float, float], float], theta: float, lam: float) -> tuple[float, float] | None:
    """Find arguments that make a function of log(theta) and log(lam) at most 0, by pattern search; None: none found."""
    best, step = function(theta, lam), 1.0
    while best > 0 and step > 0.05:
        improved = False
        for up, over in ((step, 0.0), (-step, 0.0), (0.0, step), (0.0, -step)):
            tried = theta * math.exp(up), lam * math.exp(over)
            value = function(*tried)
            if value < best:
                best, (theta, lam), improved = value, tried, True
        step = step if improved else step / 2
    return (theta, lam) if best <= 0 else None
