"""Which tokens to move when several move together: given, at random, or greedily.

Greedy: the first token is the one that does most alone. Then, with the tokens so far where they were moved to, the
gradient of the squared change in every other token's move says which of them would add most, to first order; it joins,
one radius along its gradient. At most one evaluation a token, but over all tokens at once, so a lazy map would have to
reveal all of its weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from wordsway.measures.job import Job
from wordsway.measures.listener import Listener
from wordsway.measures.measure_moves import Measured, Outcome, measure_moves
from wordsway.support.cancelling import Cancel
from wordsway.support.errors import InputError
from wordsway.support.seeds import generator

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Choice:
    """A job with the moves to measure. Where several tokens move together, `by` is the rule that chose them, and
    `spent` the evaluations that this took."""

    job: Job
    by: str | None = None
    spent: int = 0


def choose_moves(job: Job, progress: Progress | None = None, cancel: Cancel | None = None) -> Choice:
    """Choose the tokens that move together, if some do; else every move of the job is measured as it is."""
    if job.several is None:
        return Choice(job)
    candidates = [move[0] for move in job.moves]
    by = job.several.by or ("random" if job.phi.remembers else "greedy")
    if job.several.count == len(candidates) > 1:
        return Choice(replace(job, moves=(tuple(candidates),)), "given")
    if by == "random":
        order = torch.randperm(len(candidates), generator=generator(job.seed, "tokens_at_once")).tolist()
        tokens = sorted(candidates[k] for k in order[: job.several.count])
        return Choice(replace(job, moves=(tuple(tokens),)), by)
    if job.phi.remembers:
        raise InputError(
            "choose='greedy' looks at all tokens at once, which would reveal all weights of a lazy map; use "
            "choose='random', or its to_dense()"
        )
    alone = _measure_alone(job, progress, cancel)
    return Choice(_greedy(job, candidates, alone.moves), by, alone.evaluations)


def _measure_alone(job: Job, progress: Progress | None, cancel: Cancel | None) -> Outcome:
    """Measure what each candidate does by itself."""
    # The tokens together are one more move, which is still to come.
    tell = None if progress is None else lambda done, total: progress(done, total + 1)
    return measure_moves(replace(job, several=None, certificate=False, draws=0), Listener(tell, cancel=cancel))


def _greedy(job: Job, candidates: Sequence[int], alone: Sequence[Measured]) -> Job:
    """Return the job of the tokens that are chosen one after the other, with two starts: all of them moved, and the
    first one only."""
    assert job.several is not None
    best = max(range(len(candidates)), key=lambda k: alone[k].bounds.lower)
    view = job.prepared.view(candidates, dtype=job.dtype)
    delta = torch.zeros(len(candidates), job.text.shape[1], dtype=view.dtype, device=view.device)
    delta[best] = alone[best].delta[0].to(delta)
    alone_delta, taken = delta.clone(), [best]
    for _ in range(job.several.count - 1):
        free = delta.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(view.sq_norm(free), free)
        gain = gradient.norm(dim=-1) * torch.tensor([job.radii[k] for k in candidates]).to(gradient)
        gain[taken] = -1.0
        best = int(gain.argmax())
        size = float(gradient[best].norm())
        delta[best] = gradient[best] * (job.radii[candidates[best]] / size if size > 0 else 0.0)
        taken.append(best)
    order = sorted(taken)
    starts = torch.stack([delta[order], alone_delta[order]]).to("cpu", torch.float64)
    return replace(job, moves=(tuple(candidates[k] for k in order),), starts=starts)
