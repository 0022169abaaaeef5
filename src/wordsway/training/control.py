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

from wordsway.errors import InputError
from wordsway.seeds import generator
from wordsway.tokens import check_size
from wordsway.training.states import changed_input, unwrapped, without_dropout

OUTPUTS = ("last", "pooled", "pooled:first", "pooled:last", "logits")
_TINY = 0.01  # of the radius: where the search begins, as at no move at all the change has no gradient


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
    for an effect of the word. Give another `seed` at every step, such as the step's number. Takes `steps + 1` runs
    with a gradient, and one more for the weights.
    """
    live = unwrapped(model)
    if output not in OUTPUTS:
        raise InputError(f"output={output!r} is not known; use {', '.join(OUTPUTS)}")
    _check_positive(radius, "radius")
    check_size(steps, "steps")
    check_size(seed, "seed", least=0)
    batch = {name: value for name, value in inputs.items() if name not in ("labels", "label", "label_ids")}
    mask = _mask(batch)
    draw = generator(seed, "sensitivity_penalty")
    tokens = _one_word_each(batch["input_ids"], mask, tokenizer, draw)

    def features(change: Any = lambda rows: rows) -> Float[Tensor, "b f"]:
        with changed_input(live, change):
            return _features(live, batch, mask, output)

    with torch.enable_grad(), without_dropout(live):
        seen: list[Tensor] = []
        base = features(lambda rows: (seen.append(rows.detach()), rows)[1])
        rows, at = seen[0], torch.arange(len(tokens), device=tokens.device)
        reach = radius * rows[at, tokens].norm(dim=1, keepdim=True)

        def change(delta: Float[Tensor, "b d"]) -> Float[Tensor, " b"]:
            moved = features(lambda rows: rows.index_put((at, tokens), delta.to(rows), accumulate=True))
            return (moved - (base if not delta.requires_grad else base.detach())).norm(dim=1)

        e = torch.randn(rows[:, 0].shape, generator=draw).to(rows)
        for step in range(steps + 1):
            size = _TINY if step == 0 else 1.0
            delta = (size * reach * _unit(e)).requires_grad_(True)
            (gradient,) = torch.autograd.grad(change(delta).sum(), delta)
            e = _unit(gradient) if step == 0 else _unit(e) + _unit(gradient)
        relative = change((reach * _unit(e)).detach()) / base.norm(dim=1).clamp(min=1e-12)
    return (relative / (1 + relative)).mean()


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


def _mask(batch: Mapping[str, Any]) -> Int[Tensor, "b n"]:
    ids = batch.get("input_ids")
    if not isinstance(ids, Tensor) or ids.dim() != 2:
        raise InputError('inputs needs "input_ids", a tensor of texts by tokens, as a tokenizer makes it')
    mask = batch.get("attention_mask")
    return torch.ones_like(ids) if mask is None else mask


def _one_word_each(
    ids: Int[Tensor, "b n"], mask: Int[Tensor, "b n"], tokenizer: Any, draw: torch.Generator
) -> Int[Tensor, " b"]:
    """A random token of each text that is neither padding nor special."""
    special = torch.tensor(sorted(tokenizer.all_special_ids), device=ids.device)
    may: Bool[Tensor, "b n"] = (mask != 0) & ~torch.isin(ids, special)
    if not bool(may.any(dim=1).all()):
        raise InputError(f"text {int((~may.any(dim=1)).nonzero()[0])} of the batch has no word to move")
    return torch.rand(ids.shape, generator=draw).to(ids.device).masked_fill(~may, -1).argmax(dim=1)


def _features(live: Any, batch: Mapping[str, Any], mask: Int[Tensor, "b n"], output: str) -> Float[Tensor, "b f"]:
    """An output of padded texts; padding does not count."""
    if output == "logits":
        logits = live(**batch).logits
        if logits.dim() != 2:
            raise InputError(f"output='logits' is for classifiers, which {type(live).__name__} is not; use pooled")
        return logits
    states = live.base_model(**batch).last_hidden_state
    kept = (mask != 0).to(states)[..., None]
    if output == "last":
        return (states * kept).flatten(1)
    if output == "pooled":
        return (states * kept).sum(1) / kept.sum(1)
    place = torch.arange(mask.shape[1], device=mask.device) * (mask != 0)
    first = (mask != 0).to(torch.int64).argmax(1)
    return states[torch.arange(len(states), device=mask.device), first if output == "pooled:first" else place.argmax(1)]


def _unit(vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-30)


def _check_positive(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"{name} must be a positive number, got {value!r}")
