"""Which tokens to move when several move together: given, at random, or greedily.

Greedy: the first token is the one that does most alone. Then, with the tokens so far where they were moved to, the
gradient of the squared change in every other token's move says which of them would add most, to first order; it joins,
one radius along its gradient. At most one evaluation a token, but over all tokens at once, so a lazy map would have to
reveal all of its weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap
from wordsway.search.regions import Ball, Balls, Region
from wordsway.support.errors import InputError
from wordsway.support.names import BALLS, CHOICES
from wordsway.support.seeds import generator
from wordsway.tokens import check_size


@dataclass(frozen=True)
class Several:
    """How several tokens move together: `count` of them, chosen by `by` (None: greedily, of a lazy map at random), each
    in a ball of its own ("each") or all in one ("shared", of the largest of their radii)."""

    count: int
    by: str | None
    ball: str

    @staticmethod
    def of(count: Any, by: Any, ball: Any, candidates: int) -> "Several":
        """Checked; `candidates` are how many tokens there are to choose from."""
        check_size(count, "tokens_at_once")
        if count > candidates:
            raise InputError(
                f"tokens_at_once={count} is more than the {candidates} tokens that may move; use at most {candidates}"
            )
        if by is not None and by not in CHOICES:
            raise InputError(f"choose={by!r} is not known; use one of: {', '.join(CHOICES)}")
        if ball not in BALLS:
            raise InputError(f"ball={ball!r} is not known; use one of: {', '.join(BALLS)}")
        if by == "given" and count != candidates:
            raise InputError(f"choose='given' moves all tokens that are named, {candidates}, not {count} of them")
        return Several(count, by, ball)

    def region(self, radii: Sequence[float], d: int) -> Region:
        return Balls.of(radii, d) if self.ball == "each" else Ball(max(radii), len(radii), d)


@dataclass(frozen=True)
class Chosen:
    """The tokens, by which rule, and moves of them that the rule knows (None where it has no idea)."""

    tokens: tuple[int, ...]
    by: str
    starts: Float[Tensor, "s m d"] | None = None


def choose_tokens(
    several: Several,
    phi: FeatureMap,
    text: Float[Tensor, "n d"],
    candidates: Sequence[int],
    radii: Sequence[float],
    seed: int,
    dtype: torch.dtype,
    device: torch.device,
    alone: Callable[[], Sequence[tuple[float, Tensor]]],
) -> Chosen:
    """`alone` measures what each candidate does by itself: its sensitivity and its delta (1, d)."""
    by = several.by or ("random" if phi.remembers else "greedy")
    if several.count == len(candidates) > 1:
        return Chosen(tuple(candidates), "given")
    if by == "random":
        order = torch.randperm(len(candidates), generator=generator(seed, "tokens_at_once")).tolist()
        return Chosen(tuple(sorted(candidates[k] for k in order[: several.count])), by)
    if phi.remembers:
        raise InputError(
            "choose='greedy' looks at all tokens at once, which would reveal all weights of a lazy map; use "
            "choose='random', or its to_dense()"
        )
    known = alone()
    best = max(range(len(candidates)), key=lambda k: known[k][0])
    view = phi.view(text, candidates, dtype=dtype, device=device)
    delta = torch.zeros(len(candidates), text.shape[1], dtype=view.dtype, device=view.device)
    delta[best] = known[best][1][0].to(delta)
    alone_delta, taken = delta.clone(), [best]
    for _ in range(several.count - 1):
        free = delta.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(view.sq_norm(free), free)
        gain = gradient.norm(dim=-1) * torch.tensor([radii[k] for k in candidates]).to(gradient)
        gain[taken] = -1.0
        best = int(gain.argmax())
        size = float(gradient[best].norm())
        delta[best] = gradient[best] * (radii[candidates[best]] / size if size > 0 else 0.0)
        taken.append(best)
    order = sorted(taken)
    starts = torch.stack([delta[order], alone_delta[order]]).to("cpu", torch.float64)
    return Chosen(tuple(candidates[k] for k in order), by, starts)
