"""Search the largest change of many tokens at one radius after another, from small to large.

Each token goes on from where it was best at the radius before, stretched to the new one, and tries what other tokens
found: at small radii their moves, at large ones the places where they ended. Index conventions: g runs over tokens that
are searched side by side, b over tracks; deltas are in units of each token's own ball, of radius 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap, View
from wordsway.search.ascent import Objective, glide, maximize, start_points
from wordsway.search.boundary import pick
from wordsway.search.effort import LOOK
from wordsway.search.finish import finish
from wordsway.search.regions import FROM_THE_EDGE, Ball
from wordsway.support.plain_checks import FEWEST

_WIDE = (0.5, 0.03)  # angles of first steps, when nothing is known
_NEAR = (0.15, 0.03)  # and from the best of a smaller radius, or of another token
_OWN = 2  # starts that are a token's own: its best move, as it is and stretched
_SHARED = 0.1  # of a token's norm: from this radius on, tokens also try what others found at the same radius


@dataclass(frozen=True)
class Widening:
    """Limits of a search, in evaluations with a gradient for each token: `starts` tracks of `wide` steps at the first
    radius; at each radius `tracks` of `near` steps, and a climb of at most `climb` steps from the best."""

    starts: int = 3
    wide: int = 24
    tracks: int = 2
    near: int = 10
    climb: int = 28
    looked_at: int = 8
    factor: float = 1.0  # of the evaluations that suit a map, for maps that are no deep models

    def scaled(self, factor: float) -> "Widening":
        """So many times the evaluations, roughly."""
        root = factor**0.5
        return Widening(
            starts=max(1, round(self.starts * root)),
            wide=max(4, round(self.wide * root)),
            tracks=max(1, round(self.tracks * root)),
            near=max(2, round(self.near * root)),
            climb=max(4, round(self.climb * root)),
            looked_at=self.looked_at,
            factor=self.factor * factor,
        )


class WideningSearch:
    """The search of some tokens of one text; `at` is called with radii that grow, as shares of each token's norm."""

    def __init__(
        self,
        phi: FeatureMap,
        X: Float[Tensor, "n d"],
        tokens: Sequence[int],
        view: Callable[[int], View],
        effort: Widening,
        seed: int,
    ) -> None:
        self.phi, self.X, self.tokens, self.effort, self.seed = phi, X, list(tokens), effort, seed
        self.norms = X.norm(dim=1)
        self.deltas: dict[int, Tensor] = {}
        self.values: dict[int, float] = {}
        self.evaluations = 0.0
        self._view = view
        size = phi.side_by_side(X.shape[0], X.shape[1], 1)
        self._groups = [self.tokens[k : k + size] for k in range(0, len(self.tokens), size)]

    def at(self, share: float) -> dict[int, Float[Tensor, " d"]]:
        """The best move of each token within this radius; at least as good as those of smaller radii."""
        for group in self._groups:
            self._climb(group, share, dict(self.deltas))
        deep = self._view(self.tokens[0]).shares_places
        if deep and share >= _SHARED and len(self.tokens) > 1:
            for group in self._groups:
                self._climb(group, share, dict(self.deltas), others_only=True)
        return dict(self.deltas)

    def offer(self, token: int, delta: Float[Tensor, " d"], value: float) -> None:
        """Take a move that was found elsewhere, with its squared change, if it is better than what the token has."""
        if value > self.values.get(token, -1.0):
            self.deltas[token], self.values[token] = delta, value

    def _climb(self, group: list[int], share: float, known: dict[int, Tensor], others_only: bool = False) -> None:
        """Search some tokens side by side, and keep what is better than what they had."""
        views = [self._view(token) for token in group]
        region = Ball(1.0, 1, self.X.shape[1])
        reach = share * self.norms[group]
        scale = reach.to(views[0].device, views[0].dtype)[:, None, None, None]
        run = self.phi.sq_norms(views)
        starts = self._starts(group, known, reach, others_only).to(scale) if group[0] in known else None

        def objective(delta: Tensor) -> Tensor:
            return run(delta * scale)

        race = self._glide if views[0].shares_places else self._maximize
        e, spent = race(views, objective, region, starts)
        steps = self.effort.climb if views[0].evaluations_left is None else 1  # a lazy map would reveal too much
        e, values, taken = finish(objective, region, region.unit(region.delta(e), FROM_THE_EDGE), steps)
        self.evaluations += (spent + taken) * len(group)
        moves = (region.delta(e) * scale)[:, 0, 0].to("cpu", torch.float64)
        for token, move, value in zip(group, moves, values[:, 0].tolist(), strict=True):
            self.offer(token, move, value)

    def _glide(
        self, views: Sequence[View], objective: Objective, region: Ball, starts: Tensor | None
    ) -> tuple[Float[Tensor, "g 1 size"], float]:
        """Glide from the best of some starts; without any, from the gradients at tiny moves. For deep models."""
        effort, angles, steps = self.effort, _NEAR, self.effort.near
        if starts is None:
            e, spent = start_points(views, objective, region, self.seed, effort.starts)
            angles, steps = _WIDE, effort.wide
        else:
            e = region.unit(starts, 0.0)
            with torch.no_grad():
                worth = objective(region.delta(e))
            spent = LOOK * e.shape[1]
            e = pick(e, worth.topk(min(effort.tracks, e.shape[1]), 1).indices)
        spent += e.shape[1] * steps
        e, values = glide(objective, region, e, steps, angles)
        return pick(e, values.argmax(1, keepdim=True)), spent

    def _maximize(
        self, views: Sequence[View], objective: Objective, region: Ball, starts: Tensor | None
    ) -> tuple[Float[Tensor, "g 1 size"], float]:
        """Race as many starts as suit the map, the given ones among them."""
        ascent = views[0].ascent()
        ascent = ascent.scaled(max(FEWEST, round(self.effort.factor * ascent.budget)))
        if starts is not None:  # in addition to those that suit the map
            starts = starts[:, :_OWN]
            count = ascent.starts + starts.shape[1]
            ascent = replace(ascent, starts=count, budget=ascent.budget + ascent.race_steps * starts.shape[1])
        best = maximize(views, objective, region, self.seed, ascent, starts)
        deltas = torch.stack([found.delta for found in best])[:, None]
        return region.unit(deltas, 0.0), best[0].evaluations

    def _starts(
        self, group: list[int], known: dict[int, Tensor], reach: Tensor, others_only: bool
    ) -> Float[Tensor, "g s 1 d"]:
        """Moves to begin with, in units of each token's ball: its own, stretched, and those of other tokens, as moves
        and as places."""
        best = sorted(known, key=lambda token: -self.values[token])
        made = []
        for token, radius in zip(group, reach, strict=True):
            others = [other for other in best if other != token][: self.effort.looked_at]
            rows = [] if others_only else [known[token] / known[token].norm().clamp(min=1e-300), known[token] / radius]
            for other in others:
                move = known[other]
                rows += [move / move.norm().clamp(min=1e-300), (self.X[other] + move - self.X[token]) / radius]
            made.append(torch.stack(rows))
        return torch.stack(made)[:, :, None]
