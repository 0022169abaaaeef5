"""Search many tokens of one deep model's text: tokens share places.

A place is what a token became, x_i + delta_i. In a trained model most tokens of a text can do the most at nearly the
same places, while a search from a token's own gradients ends in one of many lower maxima. So a few tokens are searched
widely (scouts: the better half goes on, for longer and longer), and every token then begins where others ended:
delta_i = x_j + delta_j - x_i, cut to its own ball. All of them share a metric, too. Races may run in half precision;
the finish is in full.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.constraints import Ball
from wordsway.maps.base import FeatureMap, View
from wordsway.search.ascent import Found, Objective, glide, start_points
from wordsway.search.finish import finish
from wordsway.search.metric import Metric
from wordsway.seeds import generator

_SCOUTS = ((16, 48), (6, 96), (2, 256))  # tracks and steps: first gliding, then finishing, then finishing to the end
_SCOUTING = sum(tracks * steps for tracks, steps in _SCOUTS)
_WIDE = (0.3, 0.05)  # angles of the first steps, when nothing is known
_ALIKE = 0.5  # cosine: changes of the features that point the same way
_NEAR = (0.06, 0.03)  # and from a place: larger ones would lose what is good about it


@dataclass(frozen=True)
class Effort:
    """What a search may spend: `scouting` evaluations on a text, then for each token `tracks` races of `race` steps
    and one finish."""

    scouting: float = _SCOUTING
    tracks: int = 4
    race: int = 16
    finish: int = 48

    @property
    def own(self) -> int:
        """Evaluations of each token."""
        return self.tracks * self.race + self.finish

    def scaled(self, factor: float) -> "Effort":
        """More of everything, or less: half of it (in logarithms) goes into more tracks, half into longer ones."""
        root = math.sqrt(factor)
        tracks = max(1, round(self.tracks * root))
        race = max(1, round(self.tracks * self.race * factor / tracks))
        return Effort(self.scouting * factor, tracks, race, max(1, round(self.finish * factor)))

    def within(self, budget: int, tokens: int) -> "Effort":
        """The effort that spends `budget` evaluations on each of so many tokens, scouting included."""
        return self.scaled(budget / (self.own + self.scouting / tokens))

    def for_few(self, tokens: int) -> "Effort":
        """Less scouting where few tokens will profit from it."""
        return replace(self, scouting=min(self.scouting, self.own * tokens))


@dataclass(frozen=True, eq=False)
class _Place:
    row: Float[Tensor, " d"]
    value: float


class PlaceSearch:
    """The search for the tokens of one text. Later calls begin with what earlier ones found."""

    def __init__(
        self,
        phi: FeatureMap,
        X: Float[Tensor, "n d"],
        radii: Sequence[float],
        effort: Effort,
        view: Callable[[tuple[int, ...], torch.dtype], View],
        seed: int,
    ) -> None:
        self.phi, self.X, self.radii, self.effort, self.view, self.seed = phi, X, radii, effort, view, seed
        self.places: dict[int, _Place] = {}
        self.metric: Metric | None = None
        self.scouted = 0  # evaluations
        self.first: list[int] = []  # the scouts that went to the end, the best one first

    def scout(self, tokens: Sequence[int]) -> None:
        """Find first places. `tokens` are those that will be asked for; others help out where they are few."""
        root = math.sqrt(self.effort.scouting / _SCOUTING)
        stages = [(max(1, round(count * root)), max(1, round(steps * root))) for count, steps in _SCOUTS]
        chosen = self._choose(tokens, stages[0][0])
        views, region, objective = self._open(chosen, torch.float32)
        turns = [chosen[:k].count(token) for k, token in enumerate(chosen)]  # the same token starts elsewhere each time
        starts, spent = start_points(views, objective, region, self.seed, max(turns) + 1)
        e = starts[torch.arange(len(chosen)), turns][:, None]
        e, values = glide(objective, region, e, stages[0][1], _WIDE, self._metric(views[0]))
        self.scouted += (spent + stages[0][1]) * len(chosen)
        for count, steps in stages[1:]:
            kept = self._select(chosen, e, values[:, 0], count)
            chosen = [chosen[k] for k in kept]
            e, values = self._finish(chosen, e[kept], steps)
            self.scouted += steps * len(chosen)
        order = values[:, 0].argsort()  # the best last, where a token was scouted twice
        self._keep([chosen[k] for k in order.tolist()], e[order, 0], values[order, 0])
        self.first = sorted(self.places, key=lambda token: -self.places[token].value)

    def _choose(self, tokens: Sequence[int], count: int) -> list[int]:
        """The tokens that scout: those that will be asked for or, where they are few, each of them several times and
        others of the text."""
        order = torch.randperm(len(self.X), generator=generator(self.seed, "scouts")).tolist()
        wanted, others = ([k for k in order if (k in set(tokens)) is asked] for asked in (True, False))
        own = max(min(len(wanted), count), math.ceil(count / 2), count - len(others))
        return [wanted[k % len(wanted)] for k in range(own)] + others[: count - own]

    def _select(self, tokens: Sequence[int], e: Float[Tensor, "g 1 size"], values: Tensor, count: int) -> list[int]:
        """Which scouts go on: the best half of `count`, then the best of those that change the features in another
        direction than the best one does. A classifier can be pushed towards either class, and the one that is easier at
        first need not be the one that ends higher."""
        views, region, _ = self._open(tokens, torch.float32)
        with torch.no_grad():
            deltas = region.delta(e) * torch.tensor([self.radii[k] for k in tokens]).to(e)[:, None, None, None]
            changes = [view.change(delta[0]).flatten() for view, delta in zip(views, deltas, strict=True)]
        order = values.argsort(descending=True).tolist()
        alike = {k: float(torch.cosine_similarity(changes[k], changes[order[0]], dim=0)) for k in order}
        half = order[: math.ceil(count / 2)]
        others = sorted(order[len(half) :], key=lambda k: alike[k] > _ALIKE)  # stable: by value within each part
        return [*half, *others][:count]

    def search(self, tokens: Sequence[int]) -> list[Found]:
        """The best delta for each of some tokens, each moved alone."""
        views, region, objective = self._open(tokens, torch.float32)
        e = values = None
        used: list[set[int]] = [set() for _ in tokens]
        for _ in range(self.effort.tracks):
            start = torch.stack([self._start(token, seen) for token, seen in zip(tokens, used, strict=True)])
            start = region.unit(start[:, None, None].to(views[0].device, views[0].dtype), 0.0)
            reached, best = glide(objective, region, start, self.effort.race, _NEAR, self._metric(views[0]))
            if e is None or values is None:
                e, values = reached, best
            else:
                better = best > values
                e, values = torch.where(better[..., None], reached, e), torch.where(better, best, values)
            self._keep(tokens, e[:, 0], values[:, 0])
        assert e is not None
        e, values = self._finish(tokens, e, self.effort.finish)
        self._keep(tokens, e[:, 0], values[:, 0])
        deltas = region.delta(e)[:, 0] * torch.tensor([self.radii[k] for k in tokens]).to(e)[:, None, None]
        return [
            Found(delta, value, self.effort.own) for delta, value in zip(deltas, values[:, 0].tolist(), strict=True)
        ]

    def _finish(self, tokens: Sequence[int], e: Float[Tensor, "g 1 size"], steps: int) -> tuple[Tensor, Tensor]:
        """In full precision."""
        views, region, objective = self._open(tokens, torch.float64)
        e, values, _ = finish(objective, region, e.to(views[0].dtype), steps, self.metric)
        return e, values

    def _open(self, tokens: Sequence[int], dtype: torch.dtype) -> tuple[list[View], Ball, Objective]:
        """Views of some tokens, and the objective in units of each token's radius."""
        views = [self.view((token,), dtype) for token in tokens]
        radii = torch.tensor([self.radii[k] for k in tokens]).to(views[0].device, views[0].dtype)[:, None, None, None]
        objective = self.phi.sq_norms(views)
        return views, Ball(1.0, 1, self.X.shape[1]), lambda delta: objective(delta * radii)

    def _metric(self, view: View) -> Metric:
        self.metric = self.metric or Metric(self.X.shape[1], view.device)
        return self.metric

    def _start(self, token: int, used: set[int]) -> Float[Tensor, " d"]:
        """Where a token begins, in units of its radius: where it was before, then where the scouts ended, then the best
        places of others."""
        by_value = sorted(self.places, key=lambda k: -self.places[k].value)
        source = next((k for k in [token, *self.first, *by_value] if k in self.places and k not in used), token)
        used |= {token, source}
        delta = (self.places[source].row - self.X[token]) / self.radii[token]
        return delta / delta.norm().clamp(min=1.0)

    def _keep(self, tokens: Sequence[int], e: Float[Tensor, "g size"], values: Float[Tensor, " g"]) -> None:
        for token, point, value in zip(tokens, e.to("cpu", torch.float64), values.tolist(), strict=True):
            self.places[token] = _Place(self.X[token] + self.radii[token] * point[:-1], value)
