"""One measurement: a search, a bound and random moves for each of its moves."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.base import Certificate
from wordsway.certificates.certify import certify
from wordsway.maps.base import FeatureMap, View, moved
from wordsway.measures.results import TokenSensitivity
from wordsway.measures.several_tokens import Several
from wordsway.search.ascent import BUDGETS, FEWEST, Ascent, Found, maximize
from wordsway.search.effort import Effort
from wordsway.search.finish import finish
from wordsway.search.landmarks import landmarks_of
from wordsway.search.places import WORTH_IT, Landmarks, PlaceSearch
from wordsway.search.regions import FROM_THE_EDGE, Ball, Region, Sphere
from wordsway.support.errors import InputError, TooLargeError, ZeroError
from wordsway.support.memory import fits

_BATCH_BYTES = 2**28  # what a batch of random deltas may need at once
_LAST_STEPS = 32  # of a finish in float64: enough to agree with long searches to nine digits


@dataclass(frozen=True)
class Job:
    """One measurement: what is the same for all of its moves. A move is the tokens that move together, within a common
    ball of the largest of their radii, or as `several` says; methods take its position in `moves`."""

    phi: FeatureMap
    text: Float[Tensor, "n d"]
    radii: tuple[float, ...]  # of all tokens
    seed: int
    budget: int | str | None
    certificate: bool
    draws: int
    dtype: torch.dtype
    device: torch.device
    moves: tuple[tuple[int, ...], ...]
    several: Several | None = None
    starts: Float[Tensor, "s m d"] | None = None  # moves of several tokens that are known beforehand
    progress: Callable[[int, int], None] | None = None

    def reach(self, position: int) -> float:
        return max(self.radii[k] for k in self.moves[position])

    def region(self, position: int, shape: type[Region]) -> Region:
        """Where the delta of a move may be."""
        d, move = self.text.shape[1], self.moves[position]
        if self.several is not None:
            return self.several.region([self.radii[k] for k in move], d)
        return shape(self.reach(position), len(move), d)

    def view(self, position: int, dtype: torch.dtype | None = None) -> View:
        view = self.phi.view(self.text, self.moves[position], dtype=dtype or self.dtype, device=self.device)
        if not view.base_norm > 0:
            raise ZeroError("phi(X) is zero, so a change relative to it is not defined")
        return view

    def groups(self, most: int | None = None) -> Iterator[list[int]]:
        """Positions to search side by side; they move equally many tokens."""
        n, d = self.text.shape
        by_size: dict[int, list[int]] = {}
        for position, move in enumerate(self.moves):
            by_size.setdefault(len(move), []).append(position)
        for m, positions in by_size.items():
            size = self.phi.side_by_side(n, d, m)
            size = size if most is None else min(size, most)
            for start in range(0, len(positions), size):
                yield positions[start : start + size]

    def measure(
        self, positions: list[int], known: dict[tuple[int, ...], Tensor]
    ) -> Iterator[tuple[TokenSensitivity, Tensor, Tensor]]:
        """For each of some moves: its bounds, the delta that was found, and what random deltas do. `known` are deltas
        that were found for other moves."""
        views = [self.view(position) for position in positions]
        radii = [self.reach(position) for position in positions]
        shape = Sphere if views[0].sphere_is_enough else Ball
        if self.shares_places(views[0]):
            found = self.places.search([view.tokens[0] for view in views])
        else:
            found = self.search(positions, views, self.region(positions[0], shape), known)
        for position, view, radius, best in zip(positions, views, radii, found, strict=True):
            allowed = self.region(position, shape)
            delta = allowed.project(best.delta.to("cpu", torch.float64))
            lower = self.relative_change(view, delta)
            for known_move in () if self.starts is None else allowed.project(self.starts):
                reached = self.relative_change(view, known_move)
                lower, delta = (reached, known_move) if reached > lower else (lower, delta)
            bound = certify(view, allowed.reach) if self.certificate else Certificate(None, 0.0, "not asked for")
            entry = TokenSensitivity(
                view.tokens[0],
                view.tokens,
                radius,
                lower,
                bound.upper,
                bound.failure,
                bound.reason,
                best.evaluations,
            )
            yield entry, delta, torch.empty(0) if self.phi.remembers else self.random_changes(view, position)

    def search(
        self, positions: list[int], views: list[View], region: Region, known: dict[tuple[int, ...], Tensor]
    ) -> list[Found]:
        """Search some moves side by side, in `dtype` and then, where the map allows, for the last digits in float64.
        The region is the first one's: every other view sees deltas in units of its own radius."""
        scale = torch.tensor([self.reach(position) / self.reach(positions[0]) for position in positions])
        scale = scale.to(views[0].device, views[0].dtype)[:, None, None, None]
        plain = self.phi.sq_norms(views)
        ascent, guesses = self.ascent(views[0], positions[0]), self.guesses(positions, known)
        found = maximize(views, lambda delta: plain(delta * scale), region, self.seed, ascent, guesses)
        if views[0].evaluations_left is not None or self.phi.remembers or self.device.type == "mps":
            return [
                Found(best.delta * by[0], best.value, best.evaluations) for best, by in zip(found, scale, strict=True)
            ]
        exact, scale = self.phi.sq_norms([self.view(k, torch.float64) for k in positions]), scale.double()
        e = region.unit(torch.stack([best.delta for best in found])[:, None].double(), FROM_THE_EDGE)
        e, values, steps = finish(lambda delta: exact(delta * scale), region, e, _LAST_STEPS)
        deltas = (region.delta(e) * scale)[:, 0]
        before = torch.stack([best.delta for best in found]).double() * scale[:, 0]
        better = values[:, 0] > torch.tensor([best.value for best in found], dtype=values.dtype, device=values.device)
        deltas = torch.where(better[:, None, None], deltas, before)
        return [
            Found(delta, max(best.value, value), best.evaluations + steps)
            for delta, best, value in zip(deltas, found, values[:, 0].tolist(), strict=True)
        ]

    def guesses(self, positions: list[int], known: dict[tuple[int, ...], Tensor]) -> Tensor | None:
        """Where to begin when several tokens move together: with what each does alone, and with all of that at once."""
        if self.starts is not None:
            return self.starts[None]
        m = len(self.moves[positions[0]])
        if m == 1 or not all((token,) in known for k in positions for token in self.moves[k]):
            return None
        alone = torch.stack([torch.cat([known[token,] for token in self.moves[k]]) for k in positions])
        one_by_one = alone[:, None] * torch.eye(m, dtype=alone.dtype)[None, :, :, None]  # shape: (g, m, m, d)
        return torch.cat([alone[:, None], one_by_one], 1)

    def shares_places(self, view: View) -> bool:
        """Whether tokens are searched one after the other, each from the places of others."""
        return view.shares_places and len(view.tokens) == 1 and self.several is None

    @cached_property
    def places(self) -> PlaceSearch:
        """The common search of all tokens, with its first places."""
        tokens = [move[0] for move in self.moves if len(move) == 1]
        effort = Effort().for_few(len(tokens))
        if isinstance(self.budget, str):
            effort = effort.scaled(BUDGETS[self.budget])
        elif self.budget is not None:
            effort = effort.within(self.budget, len(tokens))
        asked = min(len(tokens), effort.core)

        def told(share: float) -> None:
            if self.progress:
                self.progress(int(share * asked), len(self.moves))

        landmarks: Landmarks | None = None
        if not isinstance(self.budget, int) and effort.rounds >= WORTH_IT and len(tokens) >= effort.core:
            landmarks = landmarks_of(self.phi, self.text, self.radii, self.device, told)
        search = PlaceSearch(self.phi, self.text, self.radii, effort, self.seed, self.device, landmarks)
        search.scout(tokens, told)
        return search

    @property
    def scouted(self) -> int:
        """Evaluations that served all tokens together."""
        return math.ceil(self.places.scouted) if "places" in self.__dict__ else 0

    def ascent(self, view: View, position: int) -> Ascent:
        """The search for one token, with its part of what a lazy map may still be asked."""
        ascent = view.ascent()
        if isinstance(self.budget, str):
            ascent = ascent.scaled(max(FEWEST, round(BUDGETS[self.budget] * ascent.budget)))
        elif self.budget is not None:
            ascent = ascent.scaled(self.budget)
        if view.evaluations_left is None:
            return ascent
        tokens_left = len(self.moves) - position
        left = (view.evaluations_left - self.draws) // tokens_left
        if left < FEWEST:
            raise TooLargeError(
                f"searching {tokens_left} tokens of a lazy map would reveal more weights than it may keep; "
                f"sample it with a larger memory_limit=, or ask for fewer tokens or random_draws"
            )
        return ascent if ascent.budget <= left else ascent.scaled(left)

    @cached_property
    def how(self) -> str:
        """How `lower` is evaluated: through the plain map where there is one and it fits."""
        need = self.phi.plain_bytes(*self.text.shape)
        if need is not None and fits(need):
            return f"plain map, {self.phi.plain_precision}"
        has_float64 = self.device.type != "mps"
        return "revealed weights, float64" if need is None and has_float64 else f"view, {self.dtype}"

    @cached_property
    def base(self) -> Tensor:
        return self.phi(self.text)

    def relative_change(self, view: View, delta: Float[Tensor, "m d"]) -> float:
        """What a search found, evaluated once more."""
        if self.how.startswith("plain"):
            after = self.phi(moved(self.text, view.tokens, delta))
            found = float((after - self.base).norm() / self.base.norm())
        else:
            dtype = torch.float64 if self.how.endswith(" float64") else view.dtype
            found = float(view.change(delta.to(view.device, dtype)).double().norm()) / view.base_norm
        if not math.isfinite(found):
            raise InputError("phi gives features that are NaN or infinite where a token is moved within its ball")
        return found

    def random_changes(self, view: View, position: int) -> Float[Tensor, " draws"]:
        """The relative changes under this token's part of the random deltas."""
        draws = self.draws * (position + 1) // len(self.moves) - self.draws * position // len(self.moves)
        region = self.region(position, Sphere)
        deltas = region.sample(draws, self.seed, "random", *view.tokens).to(view.device, view.dtype)
        size = max(1, _BATCH_BYTES // view.bytes_per_evaluation)
        with torch.no_grad():
            parts = [view.sq_norm(part).to("cpu", torch.float64) for part in deltas.split(size)] if draws else []
        found = torch.cat([*parts, torch.empty(0, dtype=torch.float64)]).sqrt() / view.base_norm
        if not bool(torch.isfinite(found).all()):
            raise InputError("phi gives features that are NaN or infinite where a token is moved within its ball")
        return found
