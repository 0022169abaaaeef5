"""Changes of every hidden state of a model under moves of some tokens: by search, by the proof's direction, by noise.

Index conventions: delta (b, m, d) moves m tokens of one text; a curve has a value for each hidden state, 0 first.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.ascents import DEEP
from wordsway.maps.base import View
from wordsway.models.moving.attention_weights import Attraction
from wordsway.models.moving.batches import Batches, joined
from wordsway.models.moving.map import PretrainedMap, add_rows
from wordsway.models.running.model import At, Transformer
from wordsway.search.ascent import maximize
from wordsway.search.finish import finish
from wordsway.search.regions import FROM_THE_EDGE, Ball, Sphere
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS
from wordsway.support.plain_checks import FEWEST

_GLIDE = replace(DEEP, budget=32)  # evaluations of each start: half of DEEP's, as every layer is searched on from there
_REFINE = replace(DEEP, first_angle=0.2)  # starts from the best move known, which larger first steps would lose


@dataclass(frozen=True, eq=False)
class LayerChanges:
    """Relative changes of all hidden states by moves of norm `reach`, at most. `searched` is the largest that was
    found, layer by layer; `noise` has a row for each random move, `guesses` for each move that was given."""

    searched: Float[Tensor, " layers"]
    attracting: Float[Tensor, " layers"]
    noise: Float[Tensor, "draws layers"]
    guesses: Float[Tensor, "guesses layers"]
    evaluations: int


def evaluations_of(budget: str) -> int:
    """Return the evaluations allowed for a search of one layer, before it starts again from the best move known."""
    return max(FEWEST, round(BUDGETS[budget] * DEEP.budget))


def layer_changes(
    model: Transformer,
    X: Float[Tensor, "n d"],
    tokens: Sequence[int],
    reach: float,
    *,
    at: At = "embeddings",
    head: int | None = None,
    noise_draws: int = 50,
    guesses: Sequence[Float[Tensor, "m d"]] = (),
    budget: str = "default",
    glides: int = 0,
    seed: int = 0,
    progress: Callable[[int], None] = lambda layer: None,
) -> LayerChanges:
    """Moves of `tokens`, special ones or not, of a text with rows X. `guesses` are moves within reach to begin with;
    `progress` is told each layer that is done.

    Each layer is searched on its own, from a start of its own and from the best move that is known. With `glides`, so
    many starts first climb for all layers at once, and a layer is then searched from the best move alone: on long texts
    that finds more for less, as one run of the model serves all layers."""
    ruler = Ruler(model, X, tokens, at)
    shape = (reach, len(tokens), X.shape[1])
    attracting = along(attracting_direction(Attraction(model, X, tokens, at=at), head), reach)
    noise = ruler(Sphere(*shape).sample(noise_draws, seed, "noise", *tokens))
    once = evaluations_of(budget)
    region, moves, evaluations = Ball(*shape), [attracting, *guesses], 0
    if glides:
        together = _AllLayers(model, X, tokens, at)
        ascent = replace(_GLIDE, budget=glides * _GLIDE.budget, starts=glides, survivors=glides)
        first = torch.stack(moves)[None].to(model.device, model.dtype)
        (result,) = maximize([together], together, region, seed, ascent, first)
        evaluations += result.evaluations
        moves += [region.project(move.to("cpu", torch.float64)) for move in together.moves]
    known = ruler(torch.stack(moves))
    for layer in range(1, model.layers + 1):
        view = PretrainedMap(model, f"layer:{layer}", at=at).view(X, tokens, dtype=torch.float32)
        # What `word_sensitivity` does, and once more from the best move that is known.
        ascent = DEEP.scaled(once)
        starts = ascent.starts + 1
        ascent = replace(ascent, budget=once + once // ascent.starts, starts=starts, survivors=starts)
        if glides:
            ascent = replace(_REFINE, budget=once)
        start = moves[int(known[:, layer].argmax())][None, None].to(view.device, view.dtype)
        (result,) = maximize([view], lambda delta, view=view: view.sq_norm(delta), region, seed, ascent, start)
        evaluations += result.evaluations
        delta = region.project(result.delta.to("cpu", torch.float64))
        moves, known = [*moves, delta], torch.cat([known, ruler(delta[None])])
        if layer == model.layers:
            break  # it is done after the finish
        progress(layer)
    for layer in range(1, model.layers + 1):  # what one layer found may be the better start for another
        view = PretrainedMap(model, f"layer:{layer}", at=at).view(X, tokens, dtype=torch.float64)
        delta, spent = _finished(view, region, moves[int(known[:, layer].argmax())], once)
        evaluations += spent
        moves, known = [*moves, delta], torch.cat([known, ruler(delta[None])])
    progress(model.layers)
    return LayerChanges(known.amax(0), known[0], noise, known[1 : 1 + len(guesses)], evaluations)


def _finished(view: View, region: Ball, move: Float[Tensor, "m d"], steps: int) -> tuple[Float[Tensor, "m d"], int]:
    """A move nearby that does at least as much, in full precision, and the number of evaluations."""
    e = region.unit(move[None, None].to(view.device, view.dtype), FROM_THE_EDGE)
    e, _, spent = finish(view.sq_norm, region, e, steps)
    return region.project(region.delta(e)[0, 0].to("cpu", torch.float64)), spent


class _AllLayers:
    """The sum over layers of the logarithm of the squared change, as an objective. It keeps the best move that it sees
    for each layer."""

    def __init__(self, model: Transformer, X: Float[Tensor, "n d"], tokens: Sequence[int], at: At) -> None:
        self.model, self.tokens = model, torch.tensor([tokens])
        self.at: At = at
        self.rows = X.to(model.device, model.dtype)
        self.batches = Batches(model, len(X))
        self.precision: Any = model.half or nullcontext()  # what is found is measured again in full
        with torch.no_grad(), self.precision:
            self.base = model.states(self.rows[None], at)[1:]
        self.best = torch.zeros(model.layers)
        self.moves = [torch.zeros(len(tokens), X.shape[1])] * model.layers

    def starts(self) -> Float[Tensor, "0 m d"]:
        return self.rows.new_zeros(0, self.tokens.shape[1], self.rows.shape[1])

    def __call__(self, delta: Float[Tensor, "g b m d"]) -> Float[Tensor, "g b"]:
        return self.batches.values(delta.flatten(0, 1), self._values).view(delta.shape[:2])

    def _values(self, part: slice, moves: Float[Tensor, "b m d"]) -> Float[Tensor, " b"]:
        rows = add_rows(self.rows, self.tokens.expand(len(moves), -1).to(self.rows.device), moves.to(self.rows))
        with self.precision:
            states = self.model.states(rows, self.at)[1:]
        gaps = [(new - old).flatten(1).square().sum(1) for new, old in zip(states, self.base, strict=True)]
        squares = torch.stack(gaps, 1)
        for layer, (value, which) in enumerate(
            zip(*(found.tolist() for found in squares.detach().max(0)), strict=True)
        ):
            if value > self.best[layer]:
                self.best[layer], self.moves[layer] = value, moves[which].detach().clone()
        return squares.clamp(min=1e-30).log().sum(1)


def attracting_direction(attraction: Attraction, head: int | None) -> Float[Tensor, "m d"]:
    """The closed form for one head (from 1), or for all of them together."""
    directions = attraction.directions().to("cpu", torch.float64)
    if head is None:
        return directions.sum(0)
    if not 1 <= head <= len(directions):
        raise InputError(
            f"head {head} is not there: a layer of {attraction.model.name} has heads 1 to {len(directions)}"
        )
    return directions[head - 1]


def along(direction: Tensor, reach: float) -> Tensor:
    """A move of norm `reach` in some direction."""
    return direction.double() * (reach / direction.double().norm().clamp(min=1e-300))


class Ruler:
    """Moves in, relative changes of all hidden states out, by plain runs of the whole model."""

    def __init__(self, model: Transformer, X: Float[Tensor, "n d"], tokens: Sequence[int], at: At) -> None:
        self.model, self.tokens = model, tokens
        self.at: At = at
        self.rows = X.to(model.device, model.dtype)
        self.batches = Batches(model, len(X), gradient=False)
        with torch.no_grad():
            self.base = model.states(self.rows[None], at)
        self.sizes = torch.stack([state.norm().cpu().double() for state in self.base])

    def __call__(self, delta: Float[Tensor, "b m d"]) -> Float[Tensor, "b layers"]:
        places = torch.tensor([self.tokens], device=self.rows.device)

        def run(part: slice) -> Tensor:
            moves = delta[part].to(self.rows)
            with torch.no_grad():
                states = self.model.states(add_rows(self.rows, places.expand(len(moves), -1), moves), self.at)
            gaps = [
                (new - old).flatten(1).norm(dim=1).cpu().double() for new, old in zip(states, self.base, strict=True)
            ]
            return torch.stack(gaps, 1) / self.sizes

        return joined(self.batches.run(run, len(delta)))
