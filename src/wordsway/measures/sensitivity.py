"""The public functions: how far can one token move the features of a text?"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from wordsway import __version__
from wordsway.maps.base import FeatureMap
from wordsway.maps.from_callable import as_map
from wordsway.measures.job import Job
from wordsway.measures.results import Sensitivity, TokenSensitivity, summarize
from wordsway.measures.several_tokens import Several, choose_tokens
from wordsway.measures.words import describe, moves_of, radii_of, rank_words
from wordsway.search.ascent import BUDGETS, FEWEST
from wordsway.support.devices import find_device, find_dtype
from wordsway.support.errors import InputError, ZeroError
from wordsway.tokens import Tokens, as_text, check_size

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
    moves = moves_of(token, len(text), encoded, joint, special)
    seed = check_size(seed, "seed", least=0)
    random_draws = check_size(random_draws, "random_draws", least=0)
    radii = radii_of(radius, text, own_norms=encoded is not None and not encoded.normalized)
    device, dtype = find_device(device), find_dtype(dtype)
    _check_budget(budget)

    several, chosen, spent = None, None, 0
    if tokens_at_once is None:
        if choose is not None or ball != "each":
            raise InputError("choose= and ball= are about tokens that move together; say how many with tokens_at_once=")
    else:
        if joint:
            raise InputError("joint= moves the pieces of a word together; it does not go with tokens_at_once=")
        several = Several.of(tokens_at_once, choose, ball, len(moves))
        singles = Job(phi, text, radii, seed, budget, False, 0, dtype, device, moves)
        alone = _Alone(singles, len(moves), progress)
        candidates = [move[0] for move in moves]
        chosen = choose_tokens(several, phi, text, candidates, radii, seed, dtype, device, alone)
        moves, spent = (chosen.tokens,), alone.spent
    tell = _never_back(progress)
    starts = chosen.starts if chosen else None
    job = Job(phi, text, radii, seed, budget, certificate, random_draws, dtype, device, moves, several, starts, tell)
    table, deltas, changes = _measure_all(job, moves, each, tell)
    result = _packed(job, table, deltas, encoded if several is None else None)
    return replace(
        result,
        random=summarize(torch.cat(changes)) if random_draws else None,
        evaluations=result.evaluations + spent,
        together=None if several is None or chosen is None else {"by": chosen.by, "ball": several.ball},
        text=None if encoded is None else describe(encoded),
        seconds=time.perf_counter() - began,
    )


def _check_budget(budget: int | str | None) -> None:
    if isinstance(budget, str) and budget not in BUDGETS:
        raise InputError(f"budget={budget!r} is not known; use a number, or {', '.join(BUDGETS)}")
    if budget is not None and not isinstance(budget, str):
        check_size(budget, "budget", least=FEWEST)


class _Alone:
    """The search of every token alone, done only when a choice of tokens asks for it; `spent` counts evaluations."""

    def __init__(self, job: Job, count: int, progress: Callable[[int, int], None] | None) -> None:
        self.job, self.count, self.progress, self.spent = job, count, progress, 0

    def __call__(self) -> list[tuple[float, Tensor]]:
        best: dict[int, tuple[float, Tensor]] = {}
        for part in self.job.groups():
            for k, (entry, delta, _) in zip(part, self.job.measure(part, {}), strict=True):
                best[k] = (entry.lower, delta)
                self.spent += entry.evaluations
                if self.progress:
                    self.progress(len(best), self.count + 1)
        self.spent += self.job.scouted
        return [best[k] for k in range(self.count)]


def _measure_all(
    job: Job,
    moves: Sequence[tuple[int, ...]],
    each: Callable[[TokenSensitivity], None] | None,
    tell: Callable[[int, int], None] | None,
) -> tuple[list[TokenSensitivity], list[Tensor], list[Tensor]]:
    """Measure every move: its bounds, the delta of its lower bound, and what random deltas change."""
    measured: dict[int, tuple[TokenSensitivity, Tensor, Tensor]] = {}
    for group in job.groups(_WATCHED if each else None):
        known = {moves[k]: found[1] for k, found in measured.items()}
        for position, found in zip(group, job.measure(group, known), strict=True):
            measured[position] = found
            if each:
                each(found[0])
            if tell:
                tell(len(measured), len(moves))
    table, deltas, changes = map(list, zip(*(measured[k] for k in range(len(moves))), strict=True))
    if job.phi.remembers:  # asked for random deltas last, so that they do not change what was found
        changes = [job.random_changes(job.view(k), k) for k in range(len(moves))]
    return table, deltas, changes


def _packed(job: Job, table: list[TokenSensitivity], deltas: list[Tensor], ranked: Tokens | None) -> Sensitivity:
    """Pack the moves of a measurement as its result, with the words of `ranked`, a text whose tokens moved alone."""
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
        random=None,
        evaluations=job.scouted + sum(entry.evaluations for entry in table),
        checked=job.how,
        map=job.phi.config(),
        n=job.text.shape[0],
        d=job.text.shape[1],
        seed=job.seed,
        seconds=0.0,
        version=__version__,
        tokens=table[top].tokens,
        deltas=tuple(deltas),
        words=None if ranked is None else rank_words(ranked, table, job.phi.search_spread),
        spread=job.phi.search_spread,
    )


def _never_back(progress: Callable[[int, int], None] | None) -> Callable[[int, int], None] | None:
    """Wrap a callback so that what it is told is done never shrinks: a search counts tokens that it has begun with."""
    if progress is None:
        return None
    furthest = [0]

    def tell(done: int, total: int) -> None:
        furthest[0] = max(furthest[0], done)
        progress(furthest[0], total)

    return tell


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
