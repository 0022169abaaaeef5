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

from wordsway.constraints import Region
from wordsway.errors import InputError
from wordsway.maps.base import View
from wordsway.seeds import normal


@runtime_checkable
class Suggests(Protocol):
    """Whatever has directions to start from: a view does."""

    def starts(self) -> Tensor: ...


Objective = Callable[[Float[Tensor, "g b m d"]], Float[Tensor, "g b"]]


@dataclass(frozen=True)
class Ascent:
    """How to search. `budget` counts evaluations of single deltas, each with its gradient: all starts run
    `race_steps`, then only the best `survivors` go on. Deterministic: the same view, region and seed give the same
    path."""

    budget: int
    starts: int
    survivors: int
    race_steps: int
    first_angle: float
    last_angle: float
    momentum: float = 0.6

    def scaled(self, budget: int) -> "Ascent":
        """The same search with another budget; more budget buys more starts as well as more steps. Where all starts go
        to the end, it buys starts only."""
        factor = (budget / self.budget) ** (1.0 if self.survivors == self.starts else 0.5)
        starts, survivors = max(1, round(self.starts * factor)), max(1, round(self.survivors * factor))
        return replace(self, budget=budget, starts=starts, survivors=min(starts, survivors))

    def shortened(self) -> "Ascent":
        """The same race with a quarter of the steps after it, for when a descent will finish what it finds."""
        race = min(self.budget, self.race_steps * self.starts)
        return replace(self, budget=race + (self.budget - race) // 4)

    def steps(self, spent: int) -> tuple[int, int]:
        """Steps of the race, and of the survivors after it, when `spent` evaluations are gone."""
        race = max(1, min(self.race_steps, (self.budget - spent) // self.starts))
        return race, max(0, (self.budget - spent - race * self.starts) // self.survivors)


FEWEST = 8  # evaluations below which a search is not worth its name
BUDGETS = {"quick": 0.25, "default": 1.0, "thorough": 4.0}  # of the evaluations that suit a view
# Every evaluation is a run of a whole model; one long glide finds more than several short ones, and more budget is best
# spent on more of them.
DEEP = Ascent(budget=64, starts=1, survivors=1, race_steps=6, first_angle=0.5, last_angle=0.03)


def check_budget(name: str) -> None:
    """Raise an InputError unless a budget has that name."""
    if name not in BUDGETS:
        raise InputError(f"budget={name!r} is not known; use {', '.join(BUDGETS)}")


def suited(view: View) -> Ascent:
    """The default search for a view."""
    if view.evaluations_left is not None:
        # Every evaluation reveals weights that must be kept, so that later ones cost more than earlier ones.
        return Ascent(budget=24, starts=2, survivors=1, race_steps=4, first_angle=0.8, last_angle=0.05)
    if view.terrain == "deep":
        return DEEP
    if view.terrain == "layered":  # a single glide may end at half of what others find
        return Ascent(budget=288, starts=12, survivors=4, race_steps=8, first_angle=0.5, last_angle=0.02)
    if view.terrain == "smooth":
        return Ascent(budget=96, starts=4, survivors=2, race_steps=8, first_angle=0.8, last_angle=0.02)
    # Where there are many local maxima, small texts are cheap enough to race more starts; ridges take a long glide.
    starts = 24 if view.costly else min(96, max(24, 2_000_000 // view.X.numel()))
    survivors = starts // 8
    steps = 32 if view.terrain == "rugged" else 80
    return Ascent(8 * starts + steps * survivors, starts, survivors, race_steps=8, first_angle=0.3, last_angle=0.004)


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
    ascent = ascent or suited(cast(View, views[0]))
    count = min(ascent.starts, max(1, ascent.budget // 3))
    e, evaluations = start_points(views, objective, region, seed, count, guesses)
    ascent = replace(ascent, starts=e.shape[1], survivors=min(ascent.survivors, e.shape[1]))
    race, rest = ascent.steps(evaluations)
    mean = torch.zeros_like(e)
    best_e, best = e, torch.full(e.shape[:2], -torch.inf, dtype=e.dtype, device=e.device)
    for step in range(race + rest):
        if step == race and ascent.survivors < e.shape[1]:
            kept = best.topk(ascent.survivors, dim=1).indices
            best = best.gather(1, kept)
            e, mean, best_e = (
                part.gather(1, kept[..., None].expand(-1, -1, e.shape[-1])) for part in (e, mean, best_e)
            )
        value, tangent = value_and_tangent(objective, region, e)
        evaluations += e.shape[1]
        better = value > best
        best, best_e = torch.where(better, value, best), torch.where(better[..., None], e, best_e)
        if enough is not None and bool((best.amax(1) >= enough).all()):
            break
        mean = ascent.momentum * region.tangent(mean, e) + region.normed(tangent)
        angle = ascent.first_angle * (ascent.last_angle / ascent.first_angle) ** (step / max(1, race + rest - 1))
        turn = torch.tensor(angle, dtype=e.dtype)
        e = region.normed(turn.cos() * e + turn.sin() * region.normed(mean))
    top = best.argmax(1)
    deltas = region.delta(best_e[torch.arange(len(views)), top])
    return [Found(delta, value, evaluations) for delta, value in zip(deltas, best.amax(1).tolist(), strict=True)]


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
