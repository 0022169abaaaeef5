"""The public functions: how far can one token move the features of a text?"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway import __version__
from wordsway.certificates import Certificate, certify
from wordsway.choices import Several, choose_tokens
from wordsway.constraints import Ball, Region, Sphere
from wordsway.devices import find_device, find_dtype
from wordsway.errors import InputError, TooLargeError, ZeroError
from wordsway.maps.base import FeatureMap, View, moved
from wordsway.maps.own import as_map
from wordsway.memory import fits
from wordsway.result import Sensitivity, TokenSensitivity, summarize
from wordsway.search.ascent import BUDGETS, FEWEST, Ascent, maximize, suited
from wordsway.tokens import Tokens, as_text, check_size
from wordsway.words import describe, moves_of, radii_of, rank_words

_BATCH_BYTES = 2**28  # what a batch of random deltas may need at once
_WATCHED = 4  # searches side by side when someone waits for each: few, so that they come one after the other


def word_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: Any,
    token: int | Sequence[int] | Literal["all"] = "all",
    *,
    seed: int = 0,
    radius: float | Sequence[float] | None = None,
    budget: int | str | None = None,
    joint: bool = False,
    special: bool = False,
    tokens_at_once: int | None = None,
    choose: str | None = None,
    ball: str = "each",
    certificate: bool = True,
    random_draws: int = 100,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str = torch.float32,
    progress: Callable[[int, int], None] | None = None,
    each: Callable[[TokenSensitivity], None] | None = None,
) -> Sensitivity:
    """The largest relative change norm(phi(X^i(delta)) - phi(X)) / norm(phi(X)) over norm(delta) <= radius.

    `token` is one index, a list of them, or "all" for the supremum over every token: each is moved alone, and all
    are measured on one and the same map. `radius` is one for all or one for each token of the text; unless given it is
    sqrt(d), or a token's own norm for `Tokens` that were not normalised. `budget` is the number of evaluations
    that a token's search may use, or "quick", "default" or "thorough"; more can only help. The search runs in `dtype`
    on `device`; what it found is evaluated again in float64 (a pre-trained model: in its own precision).
    `certificate=False` and `random_draws=0` leave out the upper bound and the average case. `progress` is called with
    (searches done, searches in all), `each` with the bounds of every move as soon as they are known; what either
    raises ends the measurement.

    When X is an encoded text (`Tokens`), "all" means the tokens of its words, and `special=True` the others too; the
    result has `words`. A word's sensitivity is that of its best token; with `joint=True`, all of its tokens move
    together within one ball of the largest of their radii.

    With `tokens_at_once`, so many of the tokens move together, each in a ball of its own or (`ball="shared"`) all in
    one of the largest of their radii. `choose` says which: "greedy" (unless given), "random" (unless given, of a lazy
    map) or "given": all that `token` names. The result is then about that one move.
    """
    began = time.perf_counter()
    phi = as_map(phi)
    encoded = X if isinstance(X, Tokens) else None
    text = as_text(X)
    phi.check(text)
    if encoded is not None:
        phi.check_tokens(encoded)
    n, d = text.shape
    moves = moves_of(token, n, encoded, joint, special)
    seed = check_size(seed, "seed", least=0)
    random_draws = check_size(random_draws, "random_draws", least=0)
    radii = radii_of(radius, text, own_norms=encoded is not None and not encoded.normalized)
    device, dtype = find_device(device), find_dtype(dtype)
    if isinstance(budget, str) and budget not in BUDGETS:
        raise InputError(f"budget={budget!r} is not known; use a number, or {', '.join(BUDGETS)}")
    if budget is not None and not isinstance(budget, str):
        check_size(budget, "budget", least=FEWEST)

    common = (phi, text, radii, seed, budget, certificate, random_draws, dtype, device)
    several, chosen, spent = None, None, 0
    if tokens_at_once is None:
        if choose is not None or ball != "each":
            raise InputError("choose= and ball= are about tokens that move together; say how many with tokens_at_once=")
    else:
        if joint:
            raise InputError("joint= moves the pieces of a word together; it does not go with tokens_at_once=")
        several = Several.of(tokens_at_once, choose, ball, len(moves))
        candidates = [move[0] for move in moves]

        def alone() -> list[tuple[float, Tensor]]:
            nonlocal spent
            singles, found = _Job(phi, text, radii, seed, budget, False, 0, dtype, device, moves), {}
            for part in singles.groups():
                for k, (entry, delta, _) in zip(part, singles.measure(part, {}), strict=True):
                    found[k] = (entry.lower, delta)
                    spent += entry.evaluations
                    if progress:
                        progress(len(found), len(moves) + 1)
            return [found[k] for k in range(len(moves))]

        chosen = choose_tokens(several, phi, text, candidates, radii, seed, dtype, device, alone)
        moves = (chosen.tokens,)
    job = _Job(*common, moves, several, chosen.starts if chosen else None)
    measured: dict[int, tuple[TokenSensitivity, Tensor, Tensor]] = {}
    for group in job.groups(_WATCHED if each else None):
        known = {moves[k]: found[1] for k, found in measured.items()}
        for position, found in zip(group, job.measure(group, known), strict=True):
            measured[position] = found
            if each:
                each(found[0])
            if progress:
                progress(len(measured), len(moves))
    table, deltas, changes = map(list, zip(*(measured[k] for k in range(len(moves))), strict=True))
    if phi.remembers:  # asked for random deltas last, so that they do not change what was found
        changes = [job.random_changes(job.view(k), k) for k in range(len(moves))]

    top = max(range(len(table)), key=lambda k: table[k].lower)
    uppers = [entry.upper for entry in table]
    missing = next((entry.upper_reason for entry in table if entry.upper is None), None)
    return Sensitivity(
        lower=table[top].lower,
        upper=None if missing is not None else max(u for u in uppers if u is not None),
        upper_failure=min(1.0, sum(entry.upper_failure for entry in table)),
        upper_reason=missing,
        token=table[top].token,
        delta=deltas[top][0] if len(deltas[top]) == 1 else deltas[top],
        radius=table[top].radius,
        per_token=tuple(table),
        random=summarize(torch.cat(changes)) if random_draws else None,
        evaluations=spent + sum(entry.evaluations for entry in table),
        checked=job.how,
        map=phi.config(),
        n=n,
        d=d,
        seed=seed,
        seconds=time.perf_counter() - began,
        version=__version__,
        tokens=table[top].tokens,
        deltas=tuple(deltas),
        together=None if several is None or chosen is None else {"by": chosen.by, "ball": several.ball},
        words=None if encoded is None or several is not None else rank_words(encoded, table),
        text=None if encoded is None else describe(encoded),
    )


def change(phi: FeatureMap | Callable[[Tensor], Tensor], X: Any, X2: Any) -> float:
    """norm(phi(X2) - phi(X)) / norm(phi(X)): how much a given substitution changes the features."""
    phi = as_map(phi)
    before, after = as_text(X), as_text(X2, "X2")
    if before.shape != after.shape:
        raise InputError(f"X and X2 must have one shape, got {tuple(before.shape)} and {tuple(after.shape)}")
    phi.check(before)
    base = phi(before)
    size = float(base.norm())
    if not size > 0:
        raise ZeroError("phi(X) is zero, so a change relative to it is not defined")
    return float((phi(after) - base).norm()) / size


@dataclass(frozen=True)
class _Job:
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

    def reach(self, position: int) -> float:
        return max(self.radii[k] for k in self.moves[position])

    def region(self, position: int, shape: type[Region]) -> Region:
        """Where the delta of a move may be."""
        d, move = self.text.shape[1], self.moves[position]
        if self.several is not None:
            return self.several.region([self.radii[k] for k in move], d)
        return shape(self.reach(position), len(move), d)

    def view(self, position: int) -> View:
        view = self.phi.view(self.text, self.moves[position], dtype=self.dtype, device=self.device)
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
        region = self.region(positions[0], shape)
        ascent = self.ascent(views[0], positions[0])
        objective, scale = self.phi.sq_norms(views), [radius / radii[0] for radius in radii]
        if any(factor != 1 for factor in scale):  # one region for all: each view sees deltas in units of its own radius
            factors = torch.tensor(scale, dtype=views[0].dtype, device=views[0].device)[:, None, None, None]
            plain = objective
            objective = lambda delta: plain(delta * factors)  # noqa: E731
        found = maximize(views, objective, region, self.seed, ascent, self.guesses(positions, known))
        for position, view, radius, factor, best in zip(positions, views, radii, scale, found, strict=True):
            allowed = self.region(position, shape)
            delta = allowed.project(best.delta.to("cpu", torch.float64) * factor)
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

    def ascent(self, view: View, position: int) -> Ascent:
        """The search for one token, with its part of what a lazy map may still be asked."""
        ascent = suited(view)
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
