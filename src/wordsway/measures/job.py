"""One measurement, checked and ready: what all of its moves share, and how one move is evaluated."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.base import Certificate
from wordsway.certificates.certify import certify
from wordsway.maps.base import FeatureMap, Prepared, View, moved
from wordsway.measures.checked import Check, Way
from wordsway.measures.several_tokens import Several
from wordsway.search.regions import Ball, Region, Sphere
from wordsway.support.errors import InputError, ZeroError
from wordsway.support.memory import fits
from wordsway.tokens import Tokens

# Radii relative to the longest token. Below the first, a difference of features in float64 has fewer than nine right
# digits; below the second, so has one of squared features in the float32 of a search. A lifted radius is far from both.
_DIFFERENCES, _SINGLE, _LIFTED = 1e-6, 1e-3, 1e-4
# Relative to phi(X): a difference of features in float64 may be wrong by so much, which counts only where it is small.
_ROUNDING, _SMALL = 1e-13, 1e-4


@dataclass(frozen=True)
class Job:
    """The checked arguments of one measurement, which all of its moves share. A move is the tokens that move together,
    within a common ball of the largest of their radii, or as `several` says; methods take its position in `moves`."""

    phi: FeatureMap
    text: Float[Tensor, "n d"]
    encoded: Tokens | None  # the text with its words, where it has some
    moves: tuple[tuple[int, ...], ...]
    seed: int
    draws: int
    radii: tuple[float, ...]  # of all tokens
    device: torch.device
    dtype: torch.dtype
    budget: int | str | None
    certificate: bool
    prepared: Prepared
    several: Several | None = None
    starts: Float[Tensor, "s m d"] | None = None  # moves of several tokens that are known beforehand
    # Where radii are tiny, `radii` and all deltas are this many times as large as the true ones, and changes are those
    # to first order, divided by it again.
    lift: float = 1.0

    def reach(self, position: int) -> float:
        """Return the largest radius of a move's tokens."""
        return max(self.radii[k] for k in self.moves[position])

    def region(self, position: int, shape: type[Region]) -> Region:
        """Make the region that the delta of a move may be in."""
        d, move = self.text.shape[1], self.moves[position]
        if self.several is not None:
            return self.several.region([self.radii[k] for k in move], d)
        return shape(self.reach(position), len(move), d)

    def searched_region(self, position: int, view: View) -> Region:
        """Make the region that is searched: the sphere where that is proven to be enough."""
        return self.region(position, Sphere if view.sphere_is_enough else Ball)

    def view(self, position: int, dtype: torch.dtype | None = None) -> View:
        """Make the view of a move, in the precision of the search unless given."""
        view = self.prepared.view(self.moves[position], dtype=dtype or self.dtype)
        if not view.base_norm > 0:
            raise ZeroError("phi(X) is zero, so a change relative to it is not defined")
        return view

    def groups(self, most: int | None = None) -> Iterator[list[int]]:
        """Group positions to search side by side; they move equally many tokens."""
        n, d = self.text.shape
        by_size: dict[int, list[int]] = {}
        for position, move in enumerate(self.moves):
            by_size.setdefault(len(move), []).append(position)
        for m, positions in by_size.items():
            size = self.phi.side_by_side(n, d, m)
            size = size if most is None else min(size, most)
            for start in range(0, len(positions), size):
                yield positions[start : start + size]

    @cached_property
    def check(self) -> Check:
        """The way in which a found delta is evaluated again: through the plain map where there is one and it fits."""
        if self.lift != 1.0:
            return Check(Way.DERIVATIVE, str(self.dtype).removeprefix("torch."))
        need = self.phi.plain_bytes(*self.text.shape)
        if need is not None and fits(need):
            return Check(Way.PLAIN, self.phi.plain_precision)
        if need is None and self.device.type != "mps":
            return Check(Way.REVEALED, "float64")
        return Check(Way.VIEW, str(self.dtype))

    @cached_property
    def base(self) -> Tensor:
        """phi(X) by its plain definition."""
        return self.phi(self.text)

    def relative_change(self, view: View, delta: Float[Tensor, "m d"]) -> float:
        """Evaluate a delta once more, whatever the search thought of it."""
        if self.lift != 1.0:
            reached = float(self._first_order(view, delta[None])[0])
        elif self.check.way is Way.PLAIN:
            after = self.phi(moved(self.text, view.tokens, delta))
            reached = float((after - self.base).norm() / self.base.norm())
        else:
            dtype = torch.float64 if self.check.way is Way.REVEALED else view.dtype
            reached = float(view.change(delta.to(view.device, dtype)).double().norm()) / view.base_norm
        if not math.isfinite(reached):
            raise InputError("phi gives features that are NaN or infinite where a token is moved within its ball")
        return float(self._without_rounding(torch.tensor(reached, dtype=torch.float64)))

    def _first_order(self, view: View, deltas: Float[Tensor, "k m d"]) -> Float[Tensor, " k"]:
        """Compute the relative changes under deltas as small as they really are, to first order."""
        size = max(1, 2**26 // view.bytes_per_evaluation)
        parts = deltas.to(view.device, view.dtype).split(size) if len(deltas) else ()
        norms = [view.derivative(part).to("cpu", torch.float64).norm(dim=-1) for part in parts]
        return torch.cat([torch.empty(0, dtype=torch.float64), *norms]) / view.base_norm / self.lift

    def _without_rounding(self, changes: Tensor) -> Tensor:
        """Take from small changes by what rounding may have raised them."""
        rounding = _ROUNDING / self.lift
        return torch.where(changes < _SMALL / self.lift, (changes - rounding).clamp(min=0.0), changes)

    def bound(self, view: View, region: Region) -> Certificate:
        """Bound the change over a region from above, if that was asked for."""
        return certify(view, region.reach / self.lift) if self.certificate else Certificate(None, 0.0, "not asked for")

    def random_deltas(self, view: View, position: int) -> Float[Tensor, "draws m d"]:
        """Draw this move's part of the random deltas."""
        draws = self.draws * (position + 1) // len(self.moves) - self.draws * position // len(self.moves)
        region = self.region(position, Sphere)
        return region.project(region.sample(draws, self.seed, "random", *view.tokens).double())

    def random_changes(self, view: View, deltas: Float[Tensor, "draws m d"]) -> Float[Tensor, " draws"]:
        """Compute the relative changes under random deltas."""
        changes = view.relative_changes(deltas) if self.lift == 1.0 else self._first_order(view, deltas)
        if not bool(torch.isfinite(changes).all()):
            raise InputError("phi gives features that are NaN or infinite where a token is moved within its ball")
        return self._without_rounding(changes)


def find_lift(radii: Sequence[float], text: Float[Tensor, "n d"]) -> float:
    """Choose the factor by which all radii are raised while a tiny ball is searched; 1 where they are not tiny."""
    largest, size = max(radii), float(text.norm(dim=1).amax())
    return _LIFTED * size / largest if largest < _DIFFERENCES * size else 1.0


def find_search_dtype(radii: Sequence[float], text: Float[Tensor, "n d"], dtype: torch.dtype) -> torch.dtype:
    """Choose the precision of the search: the one asked for, or float64 where the ball is small."""
    return torch.float64 if max(radii) < _SINGLE * float(text.norm(dim=1).amax()) else dtype
