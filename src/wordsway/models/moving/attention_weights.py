"""Attention weights of a model, and moves of a token that draw them to it.

Index conventions: weights (b, heads, n, n), row j of which says where token j looks; mass (b, heads) of some tokens is
the mean over the rows that can see them of the weight that these give them.

The library's faster attention never forms the weights, and returns none without a word; so while weights are looked
at, the model computes attention the plain ("eager") way, and afterwards again as before.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsway.models.moving.batches import Batches, joined
from wordsway.models.moving.map import add_rows
from wordsway.models.running.model import At, Transformer
from wordsway.search.ascent import Ascent, maximize
from wordsway.search.regions import Ball
from wordsway.support.errors import InputError

# One layer runs for each evaluation, and the closed form is already near.
ATTRACT = Ascent(budget=60, starts=3, survivors=1, race_steps=6, first_angle=0.3, last_angle=0.02)


@contextmanager
def eager(model: Transformer) -> Iterator[None]:
    """Attention that shows its weights, for a while."""
    before = model.base.config._attn_implementation
    model.base.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.base.set_attn_implementation(before)


def attention_weights(
    model: Transformer, rows: Float[Tensor, "b n d"], layer: int, at: At = "embeddings"
) -> Float[Tensor, "b h n n"]:
    """The weights of one layer (1 is the first); later layers do not run. To be called within `eager`."""
    blocks = model.encoder.blocks
    if blocks is None:
        found = model.run(model.base, rows, at, None, output_attentions=True).attentions
        return _checked(found[layer - 1] if found else None, model, rows)
    seen: list[Tensor] = []

    def record(module: Any, arguments: Any, output: Any) -> None:
        for part in output if isinstance(output, tuple) else ():
            if isinstance(part, Tensor) and part.dim() == 4 and part.shape[-2:] == (rows.shape[1],) * 2:
                seen.append(part)

    hooks = [part.register_forward_hook(record) for part in blocks[layer - 1].modules()]
    try:
        model.state(rows, layer, at, output_attentions=True)
    finally:
        for hook in hooks:
            hook.remove()
    return _checked(seen[0] if seen else None, model, rows)


def _checked(weights: Tensor | None, model: Transformer, rows: Tensor) -> Tensor:
    if weights is None:
        raise InputError(f"{model.name} gave no attention weights, though it was asked to compute them the plain way")
    sums = weights.detach().sum(-1)
    if len(weights) != len(rows) or float((sums - 1).abs().max()) > 1e-3:
        raise InputError(f"what {model.name} gives as attention weights does not add up to one in each row")
    return weights


def all_weights(model: Transformer, rows: Float[Tensor, "n d"], at: At = "embeddings") -> Float[Tensor, "l h n n"]:
    """The weights of every layer for one text."""
    with eager(model), torch.no_grad():
        found = [attention_weights(model, rows[None], layer, at)[0].cpu() for layer in range(1, model.layers + 1)]
    return torch.stack(found)


def seers(model: Transformer, n: int, tokens: Sequence[int]) -> Bool[Tensor, " n"]:
    """The rows that can see all of some tokens: every one, or in a causal model those from the last of them on."""
    return torch.arange(n) >= (max(tokens) if model.causal else 0)


def mass(weights: Float[Tensor, "*b n n"], tokens: Sequence[int], rows: Bool[Tensor, " n"]) -> Float[Tensor, "*b"]:
    """The mean over `rows` of the weight that they give to `tokens`."""
    return weights[..., rows.to(weights.device), :][..., list(tokens)].sum(-1).mean(-1)


class Attraction:
    """One text and the tokens of it that move to draw attention in one layer: what closed form and ascent share."""

    def __init__(
        self,
        model: Transformer,
        X: Float[Tensor, "n d"],
        tokens: Sequence[int],
        layer: int = 1,
        at: At = "embeddings",
    ) -> None:
        self.model, self.tokens, self.layer = model, tuple(tokens), layer
        self.at: At = at
        self.rows = X.to(model.device, model.dtype)
        self.seen_by = seers(model, len(X), tokens)
        self.batches = Batches(model, len(X))

    def weights(self, delta: Float[Tensor, "b m d"]) -> Float[Tensor, "b h n n"]:
        """The layer's weights under some moves; within `eager`."""
        places = torch.tensor([self.tokens], device=self.rows.device).expand(len(delta), -1)
        return attention_weights(self.model, add_rows(self.rows, places, delta.to(self.rows)), self.layer, self.at)

    def masses(self, delta: Float[Tensor, "b m d"]) -> Float[Tensor, "b h"]:
        """The mass in every head, batch by batch, without a gradient."""
        with eager(self.model), torch.no_grad():
            run = lambda part: mass(self.weights(delta[part]), self.tokens, self.seen_by)  # noqa: E731
            return joined(self.batches.run(run, len(delta)))

    def directions(self) -> Float[Tensor, "h m d"]:
        """The proof's direction for every head: the gradient at no move of the sum over rows j of the score that j
        gives the token; in the first layer of a model without normalisation in front, W_K^T sum_j q_j.

        Scores are not shown, but weights are: log(weight on the token) - log(weight on another) is a difference of
        two scores, of which only the first moves. A token's own row is left out, unless no other sees it.
        """
        others = self.seen_by.clone()
        others[list(self.tokens)] = False
        others = others if bool(others.any()) else self.seen_by
        zero = torch.zeros(1, len(self.tokens), self.rows.shape[1]).to(self.rows)
        with eager(self.model), torch.enable_grad():
            delta = zero.requires_grad_(True)
            logs = self.weights(delta)[0].clamp(min=1e-30).log()  # shape: (h, n, n)
            logs = logs[:, others.to(logs.device)]
            still = torch.ones(logs.shape[-1], dtype=torch.bool, device=logs.device)
            still[list(self.tokens)] = False
            base = logs[..., still]
            seen = base.detach() > -60
            reference = (base * seen).sum(-1) / seen.sum(-1).clamp(min=1)
            scores = logs[..., list(self.tokens)].sum(-1) - len(self.tokens) * reference
            parts = [torch.autograd.grad(part, delta, retain_graph=True)[0][0] for part in scores.sum(-1)]
        return torch.stack(parts).detach()


@dataclass(frozen=True, eq=False)
class _Start:
    """A search for one head begins with its closed form."""

    direction: Float[Tensor, "m d"]

    def starts(self) -> Float[Tensor, "1 m d"]:
        return self.direction[None]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Attention mass that moves of one norm draw to a token, by target: each head, and last the mean over all heads.

    `plain`, `closed` and `found` are masses without a move, by the closed form, and by ascent on the mass itself
    (a lower bound of the largest), each under the move that was made for its own target.
    """

    plain: Float[Tensor, " targets"]
    closed: Float[Tensor, " targets"]
    found: Float[Tensor, " targets"]
    deltas: Float[Tensor, "targets m d"]
    evaluations: int


def draw_attention(
    attraction: Attraction,
    radius: float,
    seed: int = 0,
    factor: float = 1.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Drawn:
    """Search all targets side by side, within the ball of a radius. `factor` scales the effort; `progress` is called
    with (steps done, steps in all)."""
    directions = attraction.directions()
    directions = torch.cat([directions, directions.sum(0, keepdim=True)])
    targets, m, d = directions.shape
    heads = targets - 1
    ascent = ATTRACT.scaled(max(8, round(factor * ATTRACT.budget)))
    steps, done = sum(ascent.steps(1)) + 1, 0

    def chosen(masses: Float[Tensor, "b h"], target: Int[Tensor, " b"]) -> Float[Tensor, " b"]:
        every = torch.cat([masses, masses.mean(1, keepdim=True)], 1)
        return every.gather(1, target[:, None].to(every.device))[:, 0]

    def objective(delta: Float[Tensor, "g b m d"]) -> Float[Tensor, "g b"]:
        nonlocal done
        target = torch.arange(targets).repeat_interleave(delta.shape[1])
        run = lambda part, moves: chosen(  # noqa: E731
            mass(attraction.weights(moves), attraction.tokens, attraction.seen_by), target[part]
        )
        values = attraction.batches.values(delta.flatten(0, 1), run).view(delta.shape[:2])
        done += 1
        progress(min(done, steps), steps)
        return values

    region = Ball(radius, m, d)
    with eager(attraction.model):
        views = [_Start(direction) for direction in directions]
        found = maximize(views, objective, region, seed, ascent)
    deltas = torch.stack([region.project(best.delta) for best in found])
    size = directions.flatten(1).norm(dim=1).clamp(min=1e-30)[:, None, None]
    every = torch.arange(targets)
    straight = radius * directions / size
    closed = chosen(attraction.masses(straight), every)
    reached = chosen(attraction.masses(deltas), every)
    better = reached >= closed  # the closed form is a start of the search, but its value is only as good as rounding
    plain = attraction.masses(torch.zeros_like(deltas[:1]))[0]
    return Drawn(
        plain=torch.cat([plain, plain.mean(0, keepdim=True)]).cpu(),
        closed=closed.cpu(),
        found=torch.where(better, reached, closed).cpu(),
        deltas=torch.where(better[:, None, None], deltas, straight).cpu().double(),
        evaluations=sum(best.evaluations for best in found) + heads,
    )
