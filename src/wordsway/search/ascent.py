"""Ascent along great circles: conjugate directions, an angle that a secant rule sets, many starts raced in one batch.

Index conventions: g runs over views that are searched side by side, b over the starts of each; e (g, b, size) are unit
vectors, which a region turns into deltas; t is the part of the gradient that is tangent to the sphere at e.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.constraints import Region
from wordsway.maps.base import View
from wordsway.seeds import normal

Objective = Callable[[Float[Tensor, "g b m d"]], Float[Tensor, "g b"]]


@dataclass(frozen=True)
class Ascent:
    """How to search. `budget` counts evaluations of single deltas, each with its gradient; all starts run a few steps,
    then only the best go on. Deterministic: the same view, region and seed give the same path."""

    budget: int = 432
    starts: int = 24
    survivors: int = 3
    race_steps: int = 8
    tolerance: float = 1e-5  # stop when the survivors together gain less than this share over `patience` steps
    patience: int = 4
    first_angle: float = 0.3

    def scaled(self, budget: int) -> "Ascent":
        """The same search with another budget; more budget buys more starts as well as more steps."""
        factor = (budget / self.budget) ** 0.5
        return replace(
            self,
            budget=budget,
            starts=max(1, round(self.starts * factor)),
            survivors=max(1, round(self.survivors * factor)),
        )


SMOOTH = Ascent(budget=240, starts=4, survivors=2, race_steps=6)  # for views that are not rugged
# Where every evaluation reveals weights that must be kept, the later ones cost more than the earlier ones.
SPARING = Ascent(budget=40, starts=2, survivors=1, race_steps=4, tolerance=1e-4)


def suited(view: View) -> Ascent:
    """The default search for a view: where there are many local maxima, small texts are cheap enough to race more starts."""
    if view.evaluations_left is not None:
        return SPARING
    if not view.rugged:
        return SMOOTH
    starts = min(96, max(36, 3_000_000 // view.X.numel()))
    return Ascent(budget=18 * starts, starts=starts, survivors=starts // 7)


@dataclass(frozen=True)
class Found:
    """The best delta that a search saw, what it was worth to the search, and what that cost."""

    delta: Tensor
    value: float
    evaluations: int
    converged: bool


@dataclass
class _State:
    """Where every start stands: unit vector, value, tangent gradient, search direction, next angle. Values never fall, so
    the best iterate is always among them."""

    e: Tensor
    value: Tensor
    t: Tensor
    direction: Tensor
    angle: Tensor

    def best(self, count: int) -> "_State":
        """The `count` best starts of each view."""
        index = self.value.topk(count, dim=1).indices
        rows = index[..., None].expand(-1, -1, self.e.shape[-1])
        parts = [part.gather(1, rows) for part in (self.e, self.t, self.direction)]
        return _State(parts[0], self.value.gather(1, index), parts[1], parts[2], self.angle.gather(1, index))


def maximize(
    views: Sequence[View], objective: Objective, region: Region, seed: int, ascent: Ascent | None = None
) -> list[Found]:
    """For each view, the largest `objective` over the region that the ascent finds: a lower bound of the supremum, never
    more. The objective takes deltas of all views at once; views do not influence each other's path, only how long it is."""
    ascent = ascent or suited(views[0])
    left = views[0].evaluations_left
    if left is not None and left < ascent.budget:
        ascent = ascent.scaled(max(1, left))
    count = min(ascent.starts, max(1, ascent.budget // 3))
    points, evaluations = start_points(views, objective, region, seed, count)

    def evaluate(e: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal evaluations
        evaluations += e.shape[1]
        return value_and_tangent(objective, region, e)

    value, t = evaluate(points)
    state = _State(points, value, t, t, torch.full_like(value, ascent.first_angle))
    history: list[Tensor] = []
    converged = torch.zeros(len(views), dtype=torch.bool)
    step = 0
    while evaluations + state.e.shape[1] <= ascent.budget and not converged.all():
        if step == ascent.race_steps and state.e.shape[1] > ascent.survivors:
            state = state.best(ascent.survivors)
            history.clear()
        state = _advance(state, evaluate)
        step += 1
        history.append(state.value.sum(1).cpu())
        if step > ascent.race_steps and len(history) > ascent.patience:
            gained = history[-1] - history[-1 - ascent.patience]
            converged = gained <= ascent.tolerance * history[-1].abs()
    top = state.best(1)
    deltas = region.delta(top.e[:, 0])
    return [
        Found(delta, value, evaluations, done)
        for delta, value, done in zip(deltas, top.value[:, 0].tolist(), converged.tolist(), strict=True)
    ]


def start_points(
    views: Sequence[View], objective: Objective, region: Region, seed: int, count: int
) -> tuple[Float[Tensor, "g b size"], int]:
    """The maps' own directions first, then gradients at tiny random deltas, with both signs; every third start lies inside
    a ball. Also the number of evaluations that this took for each view."""
    own = torch.stack([view.starts()[:count] for view in views])
    missing = (count - own.shape[1] + 1) // 2
    if missing > 0:
        tiny = normal((missing, region.m, region.d), seed, "starts").to(own)
        tiny = tiny * (0.01 * region.radius / tiny.flatten(1).norm(dim=1))[:, None, None]
        tiny = tiny.expand(len(views), *tiny.shape).clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(objective(tiny).sum(), tiny)
        own = torch.cat([own, gradient, -gradient], 1)[:, :count]
    inside = (torch.arange(count, device=own.device) % 3 == 2).expand(len(views), -1)
    return region.point(own.detach(), inside), max(0, missing)


def value_and_tangent(objective: Objective, region: Region, e: Tensor) -> tuple[Tensor, Tensor]:
    """The objective and its gradient along the sphere, at unit vectors e."""
    e = e.detach().requires_grad_(True)
    value = objective(region.delta(e))
    (gradient,) = torch.autograd.grad(value.sum(), e)
    e = e.detach()
    return value.detach(), _tangent(_tangent(gradient, e), e)  # twice: the radial part is the larger by far


def _advance(state: _State, evaluate: Callable[[Tensor], tuple[Tensor, Tensor]]) -> _State:
    """One trial for every start: go `angle` along the great circle, keep it if it is better, set the next angle where
    the slope along the circle would vanish (by the secant through both ends)."""
    along = _unit(_tangent(state.direction, state.e))
    cos, sin = state.angle.cos()[..., None], state.angle.sin()[..., None]
    e = _unit(cos * state.e + sin * along)
    heading = cos * along - sin * state.e  # the direction of travel on arrival
    value, t = evaluate(e)
    better = value > state.value
    slope, new_slope = _dot(state.t, along), _dot(t, heading)
    secant = torch.where(slope > new_slope, slope / (slope - new_slope).clamp(min=1e-30), 3.0)
    growth = torch.where(better, secant.clamp(0.4, 3.0), secant.clamp(0.1, 0.5))
    angle = (state.angle * growth).clamp(max=1.5)

    turn = _dot(t, t - _tangent(state.t, e)) / _dot(state.t, state.t).clamp(min=1e-30)
    direction = t + turn.clamp(min=0.0)[..., None] * _tangent(state.direction, e)
    uphill = _dot(direction, t) > 0
    direction = torch.where(uphill[..., None], direction, t)
    # After a failure near the end of the road, forget the conjugate direction.
    stay = torch.where((state.angle < 0.1)[..., None], state.t, state.direction)
    keep = better[..., None]
    return _State(
        torch.where(keep, e, state.e),
        torch.where(better, value, state.value),
        torch.where(keep, t, state.t),
        torch.where(keep, direction, stay),
        angle,
    )


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1)


def _tangent(vectors: Tensor, e: Tensor) -> Tensor:
    return vectors - (vectors * e).sum(-1, keepdim=True) * e


def _unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=1e-30)
