"""Word sensitivity as something to train for or against: a term of the loss, and noise on the embeddings.

Index conventions: a batch has b texts, padded to n tokens of d coordinates; features are (b, f), one row a text.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsway.learning.borrowed import changed_input, unwrapped, without_dropout
from wordsway.models.moving.outputs.base import Output, load_output, trained
from wordsway.models.running.hidden_states import Reached
from wordsway.support.errors import InputError
from wordsway.support.names import OUTPUTS
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public
from wordsway.support.seeds import generator

_TINY = 0.01  # of the radius: where the search begins, as at no move at all the change has no gradient


@public
def sensitivity_penalty(
    model: Any,
    inputs: Mapping[str, Any],
    tokenizer: Any,
    *,
    output: str = "pooled",
    radius: float = 1.0,
    steps: int = 2,
    seed: int = 0,
) -> Float[Tensor, ""]:
    """A term for the loss of any PyTorch loop, differentiable in the weights: how far one word moves this batch.

    One random word of each text is moved by `radius` norms of its own row of hidden state 0, the way that a few
    `steps` of ascent find; the move is then held fixed. With r the relative change of `output` that it makes, the term
    is the batch's mean of r / (1 + r): between 0 and 1, so that the loss stays bounded when its weight is negative.
    A positive weight is a penalty on word sensitivity, a negative one a bonus.

    `inputs` are what the tokenizer made of the texts (labels are ignored). Dropout is off meanwhile: it would be taken
    for an effect of the word. Give another `seed` at every step, such as the step's number. Takes `steps + 2` runs
    forward and back, each with all texts twice.
    """
    live = unwrapped(model)
    looked_at = trained_output(output)
    _check_positive(radius, "radius")
    check_size(steps, "steps")
    check_size(seed, "seed", least=0)
    draw = generator(seed, "sensitivity_penalty")
    batch = Batch(live, inputs, looked_at)
    tokens = batch.random_words(tokenizer, draw)
    with torch.enable_grad(), without_dropout(live):
        relative = batch.relative_change(tokens, batch.find_moves(tokens, radius, steps, draw))
    return (relative / (1 + relative)).mean()


def trained_output(name: str) -> Output:
    """Find an output of which a loss can have a term; an InputError lists them."""
    kind = load_output(name) if name in trained() or OUTPUTS.is_own(name) else None
    if kind is None or not kind.trains:
        raise InputError(f"output={name!r} is not known; use {', '.join(trained())}", argument="output")
    return kind(name, -1)  # of the last hidden state, which the model gives without a number


@public
def embedding_noise(model: Any, size: float, *, seed: int = 0) -> AbstractContextManager[None]:
    """`with embedding_noise(model, 0.5, seed=step): loss = model(**batch).loss` trains on noisy embeddings: Gaussian
    noise on every row of hidden state 0, of an expected norm of `size` times the row's own."""
    live = unwrapped(model)
    _check_positive(size, "size")
    check_size(seed, "seed", least=0)
    return _noisy(live, float(size), generator(seed, "embedding_noise"))


@contextmanager
def _noisy(live: Any, size: float, draw: torch.Generator) -> Iterator[None]:
    def add(rows: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        noise = torch.randn(rows.shape, generator=draw).to(rows)
        return rows + noise * (size / math.sqrt(rows.shape[-1])) * rows.detach().norm(dim=-1, keepdim=True)

    with changed_input(live, add):
        yield


class Batch:
    """Texts as their tokenizer gave them, through a model of which one output is looked at."""

    def __init__(self, live: Any, inputs: Mapping[str, Any], output: Output) -> None:
        self.live, self.output = live, output
        if not isinstance(inputs, Mapping):
            raise InputError(
                f"inputs must be what the tokenizer made of the texts, got {type(inputs).__name__}", argument="inputs"
            )
        kept = {name: value for name, value in inputs.items() if name not in ("labels", "label", "label_ids")}
        ids = kept.get("input_ids")
        if not isinstance(ids, Tensor) or ids.dim() != 2:
            raise InputError('inputs needs "input_ids", a tensor of texts by tokens, as a tokenizer makes it')
        mask = kept.get("attention_mask")
        self.ids = ids
        self.is_text: Bool[Tensor, "b n"] = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask != 0
        # Every text is in a run twice, still and moved: one run of twice the texts is faster than two.
        per_text = {k: v for k, v in kept.items() if isinstance(v, Tensor) and v.shape[:1] == ids.shape[:1]}
        self.twice = {**kept, **{name: torch.cat([value, value]) for name, value in per_text.items()}}

    def random_words(self, tokenizer: Any, draw: torch.Generator) -> Int[Tensor, " b"]:
        """A random token of each text that is neither padding nor special."""
        if not hasattr(tokenizer, "all_special_ids"):
            raise InputError(f"tokenizer must be the model's, got {type(tokenizer).__name__}", argument="tokenizer")
        special = torch.tensor(sorted(tokenizer.all_special_ids), device=self.ids.device)
        may = self.is_text & ~torch.isin(self.ids, special)
        if not bool(may.any(dim=1).all()):
            raise InputError(f"text {int((~may.any(dim=1)).nonzero()[0]) + 1} of the batch has no word to move")
        return torch.rand(may.shape, generator=draw).to(may.device).masked_fill(~may, -1).argmax(dim=1)

    def find_moves(
        self, tokens: Int[Tensor, " b"], radius: float, steps: int, draw: torch.Generator
    ) -> Float[Tensor, "b d"]:
        """A move of one token of each text, `radius` of its row's norms long, by `steps` of ascent; a constant."""
        rows = self.rows_of(tokens)
        reach = radius * rows.norm(dim=1, keepdim=True)
        e = _unit(torch.randn(rows.shape, generator=draw).to(rows))
        for step in range(steps + 1):
            delta = (e * reach * (_TINY if step == 0 else 1.0)).requires_grad_(True)
            (gradient,) = torch.autograd.grad(self.relative_change(tokens, delta).sum(), delta)
            e = _unit(gradient) if step == 0 else _unit(e + _unit(gradient))
        return (e * reach).detach()

    def relative_change(self, tokens: Int[Tensor, " b"], delta: Float[Tensor, "b d"]) -> Float[Tensor, " b"]:
        """Return the change of the output under moves, as a share of its norm; differentiable in the weights."""
        places = (torch.arange(len(tokens), 2 * len(tokens), device=tokens.device), tokens)
        with changed_input(self.live, lambda states: states.index_put(places, delta.to(states), accumulate=True)):
            still, moved = self._features().chunk(2)
        return (moved - still).norm(dim=1) / still.norm(dim=1).clamp(min=1e-12)

    def rows_of(self, tokens: Int[Tensor, " b"]) -> Float[Tensor, "b d"]:
        """The rows of some tokens where moves enter, constants."""

        def stop(states: Tensor) -> Tensor:
            raise Reached(states)

        try:
            with torch.no_grad(), changed_input(self.live, stop):
                self.live.base_model(**self.twice)
        except Reached as reached:
            return reached.args[0][torch.arange(len(tokens), device=tokens.device), tokens]
        raise InputError(f"{type(self.live).__name__} does not run its first block")

    def _features(self) -> Float[Tensor, "b2 f"]:
        """Compute the output of all texts, twice."""
        return self.output.of_batch(self.live, self.twice, torch.cat([self.is_text, self.is_text]))


def _unit(vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-30)


def _check_positive(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"{name} must be a positive number, got {value!r}", argument=name)
