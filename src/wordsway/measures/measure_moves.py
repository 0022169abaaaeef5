"""The measurement of every move of a job: search it, evaluate it again, bound it, and try random deltas."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import View
from wordsway.measures.job import Job
from wordsway.measures.listener import Listener
from wordsway.measures.move_search import MoveSearch
from wordsway.measures.results import TokenSensitivity
from wordsway.search.ascent import Found

_WATCHED = 4  # searches side by side when someone waits for each: few, so that they come one after the other


@dataclass(frozen=True, eq=False)
class Measured:
    """One move: its bounds, the delta of its lower bound, and the relative changes under random deltas."""

    bounds: TokenSensitivity
    delta: Float[Tensor, "m d"]
    changes: Float[Tensor, " draws"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """All measured moves of a job, and the evaluations that served them together."""

    moves: list[Measured]
    scouted: int

    @property
    def evaluations(self) -> int:
        """All evaluations that the searches used."""
        return self.scouted + sum(move.bounds.evaluations for move in self.moves)


def measure_moves(job: Job, listener: Listener) -> Outcome:
    """Measure every move of a job."""
    search = MoveSearch(job, listener)
    measured: dict[int, Measured] = {}
    for group in job.groups(_WATCHED if listener.each else None):
        best_deltas = {job.moves[k]: move.delta for k, move in measured.items()}
        views = [job.view(position) for position in group]
        for position, view, best in zip(group, views, search.best(group, views, best_deltas), strict=True):
            listener.ask()
            measured[position] = _measure(job, position, view, best)
            listener.hand_over(measured[position].bounds)
            listener.tell(len(measured), len(job.moves))
    moves = [measured[k] for k in range(len(job.moves))]
    if job.phi.remembers:  # asked for random deltas last, so that they do not change what was found
        moves = [_try_random(job, k, job.view(k), move) for k, move in enumerate(moves)]
    return Outcome(moves, search.scouted)


def _measure(job: Job, position: int, view: View, best: Found) -> Measured:
    """Evaluate again what was found for a move, bound it from above, and try random deltas."""
    region = job.searched_region(position, view)
    delta = region.project(best.delta.to("cpu", torch.float64))
    lower = job.relative_change(view, delta)
    for start in () if job.starts is None else region.project(job.starts):
        reached = job.relative_change(view, start)
        lower, delta = (reached, start) if reached > lower else (lower, delta)
    bound = job.bound(view, region)
    bounds = TokenSensitivity(
        token=view.tokens[0],
        tokens=view.tokens,
        radius=job.reach(position) / job.lift,
        lower=lower,
        upper=bound.upper,
        upper_failure=bound.failure,
        upper_reason=bound.reason,
        evaluations=best.evaluations,
    )
    measured = Measured(bounds, delta, torch.empty(0))
    return measured if job.phi.remembers else _try_random(job, position, view, measured)


def _try_random(job: Job, position: int, view: View, move: Measured) -> Measured:
    """Add the changes under random deltas; one that is larger than what the search found takes its place."""
    deltas = job.random_deltas(view, position)
    changes = job.random_changes(view, deltas)
    if len(changes) and float(changes.max()) > move.bounds.lower:
        best = deltas[int(changes.argmax())]
        lower = job.relative_change(view, best)
        if lower > move.bounds.lower:
            return Measured(replace(move.bounds, lower=lower), best, changes)
    return replace(move, changes=changes)
