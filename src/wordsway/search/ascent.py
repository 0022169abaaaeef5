"""Ascent along great circles: many starts raced in one batch, with momentum and an angle that shrinks on a schedule.

Index conventions: g runs over views that are searched side by side, b over the starts of each; e (g, b, size) are unit
vectors, which a region turns into deltas.

A step turns every e by the same angle towards a running mean of its unit gradients. There is no line search: the
features have kinks (a unit switches, a row falls silent), where steps that must improve come to a halt, while steps
of a given size glide along; the mean cancels what jumps from side to side. The best iterate ever seen is what
counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.ascents import Ascent
from wordsway.maps.base import View
from wordsway.search.metric import Metric
from wordsway.search.regions import Region
from wordsway.support.seeds import normal


@runtime_checkable
class Suggests(Protocol):
    """Whatever has directions to start from: a view does."""

    def starts(self) -> Tensor: ...


Objective = Callable[[Float[Tensor, "g b m d"]], Float[Tensor, "g b"]]


@dataclass(frozen=True)
class Found:
    """The best delta that a search saw, what it was worth to the search, and what that cost."""

    delta: Tensor
    value: float
    evaluations: int


def maximize(
    views: Sequence[Suggests],
    objective: Objective,
    region: Region,
    seed: int,
    ascent: Ascent | None = None,
    guesses: Float[Tensor, "g s m d"] | None = None,
    enough: float | None = None,
) -> list[Found]:
    """For each view, the largest `objective` over the region that the ascent finds: a lower bound of the supremum,
    never more. The objective takes deltas of all views at once; views do not influence each other. `guesses` are
    directions to start from before all others. The search ends when every view has reached `enough`, if given."""
    ascent = ascent or cast(View, views[0]).ascent()
    count = min(ascent.starts, max(1, ascent.budget // 3))
    e, evaluations = start_points(views, objective, region, seed, count, guesses)
    ascent = replace(ascent, starts=e.shape[1], survivors=min(ascent.survivors, e.shape[1]))
    race, rest = ascent.steps(evaluations)
    tracks = Tracks(objective, region, e, ascent.momentum)
    for step in range(race + rest):
        if step == race and ascent.survivors < tracks.e.shape[1]:
            tracks.keep(ascent.survivors)
        evaluations += tracks.e.shape[1]
        tracks.look()
        if enough is not None and bool((tracks.best.amax(1) >= enough).all()):
            break
        angle = ascent.first_angle * (ascent.last_angle / ascent.first_angle) ** (step / max(1, race + rest - 1))
        tracks.turn(angle)
    deltas = region.delta(tracks.top())
    values = tracks.best.amax(1).tolist()
    return [Found(delta, value, evaluations) for delta, value in zip(deltas, values, strict=True)]


class Tracks:
    """Points that turn side by side, each towards a running mean of its unit gradients, and the best that each has
    seen. With a `metric`, gradients are bent by it, and it learns from them."""

    def __init__(
        self,
        objective: Objective,
        region: Region,
        e: Float[Tensor, "g b size"],
        momentum: float,
        metric: Metric | None = None,
    ) -> None:
        self.objective, self.region, self.momentum, self.metric = objective, region, momentum, metric
        self.e, self.mean = e, torch.zeros_like(e)
        self.best_e, self.best = e, torch.full(e.shape[:2], -torch.inf, dtype=e.dtype, device=e.device)
        self.gradient = self.mean

    def look(self) -> None:
        """Evaluate where the points are."""
        value, self.gradient = value_and_tangent(self.objective, self.region, self.e)
        better = value > self.best
        self.best = torch.where(better, value, self.best)
        self.best_e = torch.where(better[..., None], self.e, self.best_e)

    def turn(self, angle: float) -> None:
        """Turn every point by one angle."""
        region, gradient = self.region, self.region.normed(self.gradient)
        if self.metric is not None:
            self.metric.learn((region.delta(gradient) / region.radius).flatten(0, -2))
            gradient = region.normed(self.metric.bend(gradient, self.e, region))
        self.mean = self.momentum * region.tangent(self.mean, self.e) + gradient
        turn = torch.tensor(angle, dtype=self.e.dtype)
        self.e = region.normed(turn.cos() * self.e + turn.sin() * region.normed(self.mean))

    def keep(self, count: int) -> None:
        """Go on with the best few of each view."""
        kept = self.best.topk(count, dim=1).indices
        self.best = self.best.gather(1, kept)
        self.e, self.mean, self.best_e = (
            part.gather(1, kept[..., None].expand(-1, -1, part.shape[-1])) for part in (self.e, self.mean, self.best_e)
        )

    def top(self) -> Float[Tensor, "g size"]:
        """The best point of each view."""
        return self.best_e[torch.arange(len(self.best)), self.best.argmax(1)]


def glide(
    objective: Objective,
    region: Region,
    e: Float[Tensor, "g b size"],
    steps: int,
    angles: tuple[float, float],
    metric: Metric | None = None,
    momentum: float = 0.85,
) -> tuple[Float[Tensor, "g b size"], Float[Tensor, "g b"]]:
    """The best points on tracks of so many steps, whose angle shrinks from the first to the last, and their values."""
    tracks = Tracks(objective, region, e, momentum, metric)
    first, last = angles
    for step in range(steps):
        tracks.look()
        tracks.turn(first * (last / first) ** (step / max(1, steps - 1)))
    return tracks.best_e, tracks.best


def start_points(
    views: Sequence[Suggests],
    objective: Objective,
    region: Region,
    seed: int,
    count: int,
    guesses: Float[Tensor, "g s m d"] | None = None,
) -> tuple[Float[Tensor, "g b size"], int]:
    """Guesses, then the maps' own directions, then gradients at tiny random deltas, with both signs; of the last two,
    every third lies inside a ball. Also the number of evaluations that this took for each view."""
    own = torch.stack([view.starts() for view in views])
    own = (own if guesses is None else torch.cat([guesses.to(own), own], 1))[:, :count]
    missing = (count - own.shape[1] + 1) // 2
    if missing > 0:
        tiny = normal((missing, region.m, region.d), seed, "starts").to(own)
        tiny = tiny * (0.01 * region.radius / tiny.flatten(1).norm(dim=1))[:, None, None]
        tiny = tiny.expand(len(views), *tiny.shape).clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(objective(tiny).sum(), tiny)
        own = torch.cat([own, gradient, -gradient], 1)[:, :count]
    guessed = 0 if guesses is None else guesses.shape[1]
    order = torch.arange(count, device=own.device)
    inside = ((order % 3 == 2) & (order >= guessed)).expand(len(views), -1)
    return region.point(own.detach(), inside), max(0, missing)


def value_and_tangent(objective: Objective, region: Region, e: Tensor) -> tuple[Tensor, Tensor]:
    """The objective at unit vectors e, and the direction of its gradient along the sphere."""
    delta = region.delta(e).detach().requires_grad_(True)
    value = objective(delta)
    (gradient,) = torch.autograd.grad(value.sum(), delta)
    return value.detach(), region.tangent(region.pull_back(gradient), e)
