"""The last per cents of a search: a quasi-Newton ascent (L-BFGS), many points side by side.

Index conventions: e (g, b, size) as in `ascent`; a pair of the history is a step s and the fall y of the gradient
along it, both (g, b, size). A point whose step did not rise stays and tries a shorter one, so no value ever falls.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.search.ascent import Objective, value_and_tangent
from wordsway.search.metric import Metric
from wordsway.search.regions import Region

_PAIRS = 40  # of the history: 12 reach 1% less in as many steps
_FIRST = 0.05  # length of the first step, in radii: short, as there is no curvature yet to choose a length by
_LONGEST = 0.5  # of any step, in radii; longer ones did not help (docs/search.md)
_SHORTER = 0.35  # after a step that did not rise: the point stays, and tries so much of the next one
_CHECKED = 16  # steps between two checks of the gain: a single step may fail to rise, and must not end a climb


@dataclass
class _History:
    """Curvature along past steps, moved along as e moves."""

    pairs: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)  # s, y, 1 / (s . y), or 0 for no news

    def newton(self, gradient: Tensor, scale: Tensor, metric: Metric | None, e: Tensor, region: Region) -> Tensor:
        """The inverse Hessian, as far as it is known, times a gradient: the usual two loops."""
        q, weights = gradient, []
        for s, y, r in reversed(self.pairs):
            weights.append(r * _dot(s, q))
            q = q - weights[-1] * y
        q = scale * (q if metric is None else metric.bend(q, e, region))
        for (s, y, r), weight in zip(self.pairs, reversed(weights), strict=True):
            q = q + (weight - r * _dot(y, q)) * s
        return region.tangent(q, e)

    def add(self, s: Tensor, y: Tensor, useful: Tensor) -> None:
        r = torch.where(useful, 1 / _dot(s, y).clamp(min=1e-30), 0.0)
        self.pairs = [*self.pairs[-_PAIRS + 1 :], (s * useful, y * useful, r)]

    def carry(self, moved: Tensor, e: Tensor, region: Region) -> None:
        self.pairs = [
            (torch.where(moved, region.tangent(s, e), s), torch.where(moved, region.tangent(y, e), y), r)
            for s, y, r in self.pairs
        ]


def finish(
    objective: Objective,
    region: Region,
    e: Float[Tensor, "g b size"],
    steps: int,
    metric: Metric | None = None,
    least_gain: float | None = None,
) -> tuple[Float[Tensor, "g b size"], Float[Tensor, "g b"], int]:
    """Climb from the given points. Returns points at least as high, their values, and the evaluations of each point.
    With `least_gain`, end early once 16 steps have raised the square root of the values by less than that share on
    average."""
    value, gradient = value_and_tangent(objective, region, e)
    checked = value
    history, share = _History(), torch.ones_like(value)[..., None]
    bent = gradient if metric is None else metric.bend(gradient, e, region)
    scale = _FIRST / _length(bent)
    for done in range(1, steps):
        if least_gain is not None and done % _CHECKED == 0:
            if float((value / checked.clamp(min=1e-30)).sqrt().mean()) < 1 + least_gain:
                return e, value, done
            checked = value
        step = history.newton(gradient, scale, metric, e, region)
        plain = scale * (gradient if metric is None else metric.bend(gradient, e, region))
        step = torch.where(_dot(step, gradient) > 0, step, plain)
        step = step * (share * (_LONGEST / _length(step)).clamp(max=1.0))
        ahead = region.normed(e + step)
        new_value, new_gradient = value_and_tangent(objective, region, ahead)
        rises = (new_value > value)[..., None]
        s, y = region.tangent(ahead - e, ahead), region.tangent(gradient, ahead) - new_gradient
        useful = _dot(s, y) > 1e-10 * _length(s) * _length(y)  # also of a step that is not taken
        history.carry(rises, ahead, region)
        history.add(s, y, useful)
        bent = y if metric is None else metric.bend(y, ahead, region)
        scale = torch.where(useful, _dot(s, y) / _dot(y, bent).clamp(min=1e-30), scale)
        share = torch.where(rises, 1.0, share * _SHORTER)
        e, gradient = torch.where(rises, ahead, e), torch.where(rises, new_gradient, gradient)
        value = torch.where(rises[..., 0], new_value, value)
    return e, value, max(1, steps)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def _length(a: Tensor) -> Tensor:
    return a.norm(dim=-1, keepdim=True).clamp(min=1e-30)
