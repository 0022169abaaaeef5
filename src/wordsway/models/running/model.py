"""A transformer that runs with its first hidden state moved, to any depth, with or without its head.

Index conventions: rows (b, n, d) are the hidden state 0 of b texts of one length, or their word embeddings; state k is
what block k gets, (b, n, d), and the last one is what the model gives.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.running.checks import difference
from wordsway.models.running.entry import find_site
from wordsway.models.running.hidden_states import PretrainedEncoder, Reached, stop_here
from wordsway.models.running.precision import HalfLinear, half_is_faster
from wordsway.support.errors import InputError

At = Literal["embeddings", "word-embeddings"]
_PROBE = "One word can move a model, and we would like to know how far."
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8}  # of a row's norm, for rounding; half precision gets 0.05


@dataclass(frozen=True)
class Prefix:
    """The first tokens of a text, run once through a causal model: what every later token needs to know of them."""

    keys: tuple[tuple[Tensor, Tensor], ...]  # of each layer: (1, heads, length, size) keys and values
    states: tuple[Tensor, ...]  # all hidden states, (1, length, d)

    @property
    def length(self) -> int:
        return self.states[0].shape[1]

    def cache(self, count: int) -> Any:
        """A cache of the library's own for `count` texts, which a run may extend."""
        from transformers import DynamicCache

        return DynamicCache(
            ddp_cache_data=[
                (keys.expand(count, *keys.shape[1:]), values.expand(count, *values.shape[1:]))
                for keys, values in self.keys
            ]
        )


@dataclass(frozen=True, eq=False)
class Head:
    """z = weight . (mean over tokens of the last hidden state) + bias; logits (-z/2, z/2), so P(second) = sigmoid(z).

    `about` says what it was trained on, and how often it was right on other texts.
    """

    weight: Float[Tensor, " d"]
    bias: Float[Tensor, " 1"]
    about: dict[str, str]
    labels: tuple[str, str] = ("negative", "positive")

    def logits(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b 2"]:
        weight, bias = self.weight.to(states), self.bias.to(states)
        z = states.mean(1) @ weight + bias
        return torch.stack([-z / 2, z / 2], 1)


class Transformer:
    """An encoder with the whole model that it belongs to. `causal` is found by trying: a token does not change what
    comes before it. `labels` are a classifier's classes."""

    def __init__(
        self, encoder: PretrainedEncoder, whole: Any, head: Head | None = None, name: str | None = None
    ) -> None:
        self.encoder, self.whole, self.head = encoder, whole, head
        self.base, self.name, self.device = encoder.model, name or encoder.name, encoder.device
        self.layers: int = encoder.layers
        self.dtype: torch.dtype = self.base.dtype
        self._parameters = [part for part in whole.parameters() if part.requires_grad]
        pad = getattr(whole.config, "pad_token_id", None)
        self._any_id = next(k for k in range(2) if k != pad)
        self.classifies = head is not None or "ForSequenceClassification" in type(whole).__name__
        self.most_texts = 1 if self.classifies and head is None and pad is None else None  # the library's own limit
        ids, mask = encoder.pad_batch([encoder.tokenize([_PROBE])[0].ids], "right")
        self._half = HalfLinear()
        self.site = find_site(encoder, ids, mask)
        self._check(ids, mask)

    @property
    def half(self) -> HalfLinear | None:
        """The mode in which searches run, or None where they run in full precision. Asked anew for every search, since
        a loaded model is kept and WORDSWAY_HALF may change."""
        return self._half if half_is_faster(self.device) and self.dtype == torch.float32 else None

    @property
    def labels(self) -> tuple[str, ...] | None:
        if self.head is not None:
            return self.head.labels
        if not self.classifies:
            return None
        names = self.whole.config.id2label or {}
        return tuple(str(names.get(k, k)) for k in range(self.whole.config.num_labels))

    @property
    def predicts_tokens(self) -> bool:
        """Whether it has logits for the next token."""
        return self.causal and not self.classifies and self.whole.get_output_embeddings() is not None

    def state(
        self,
        rows: Float[Tensor, "b n d"],
        layer: int,
        at: At = "embeddings",
        prefix: Prefix | None = None,
        **more: Any,
    ) -> Float[Tensor, "b n d2"]:
        """Hidden state `layer`; blocks from there on do not run. `more` goes to the model as it is."""
        if self.encoder.blocks is None:
            return self.states(rows, at, prefix)[layer]
        if layer == self.layers:
            return self.run(self.base, rows, at, prefix, **more).last_hidden_state
        stop = self.encoder.blocks[layer].register_forward_pre_hook(stop_here, with_kwargs=True)
        try:
            self.run(self.base, rows, at, prefix, **more)
        except Reached as reached:
            return reached.args[0]
        finally:
            stop.remove()
        raise InputError(f"{self.name} does not run its block {layer}, so its hidden state {layer} is not there")

    def states(self, rows: Float[Tensor, "b n d"], at: At = "embeddings", prefix: Prefix | None = None) -> Any:
        """All hidden states."""
        return self.run(self.base, rows, at, prefix, output_hidden_states=True).hidden_states

    def logits(
        self, rows: Float[Tensor, "b n d"], at: At = "embeddings", prefix: Prefix | None = None
    ) -> Float[Tensor, "b classes"]:
        """A classifier's logits, or those of the next token."""
        if self.head is not None:
            last = self.state(rows, self.layers, at, prefix)
            return self.head.logits(last if prefix is None else torch.cat([_grown(prefix.states[-1], last), last], 1))
        if self.classifies:
            return self.run(self.whole, rows, at, prefix).logits
        if not self.predicts_tokens:
            raise InputError(
                f"{self.name} has no logits: it neither classifies texts nor predicts the next token; use another "
                "output, such as last"
            )
        keep = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(self.whole.forward).parameters else {}
        return self.run(self.whole, rows, at, prefix, **keep).logits[:, -1]

    def prefix(self, rows: Float[Tensor, "1 n d"], at: At = "embeddings") -> Prefix | None:
        """The first tokens of a text, run once; None where the model keeps no cache that is understood here."""
        if not self.causal or "past_key_values" not in inspect.signature(self.base.forward).parameters:
            return None
        with torch.no_grad():
            ran = self.run(self.base, rows, at, None, output_hidden_states=True, use_cache=True)
        keys = tuple((layer.keys, layer.values) for layer in getattr(ran.past_key_values, "layers", ()))
        return Prefix(keys, tuple(ran.hidden_states)) if len(keys) == self.layers else None

    def run(self, module: Any, rows: Tensor, at: At, prefix: Prefix | None, **more: Any) -> Any:
        """The model on given rows, differentiable in them; its weights are constants."""
        count, length = rows.shape[:2]
        before = 0 if prefix is None else prefix.length
        accepts = inspect.signature(module.forward).parameters
        first = self.encoder.first_position
        options: dict[str, Any] = {
            "attention_mask": torch.ones(count, before + length, dtype=torch.long, device=self.device)
        }
        if "use_cache" in accepts:
            options["use_cache"] = prefix is not None
        if prefix is not None:
            options["past_key_values"] = prefix.cache(count)
        if "position_ids" in accepts and (prefix is not None or first is not None):
            places = torch.arange(before, before + length, device=self.device) + (first or 0)
            options["position_ids"] = places.expand(count, length)
        rows = rows.to(self.device, self.dtype)
        with _constant(self._parameters):
            if at == "word-embeddings":
                return module(inputs_embeds=rows, **{**options, **more})
            ids = torch.full((1, 1), self._any_id, device=self.device).expand(count, length)
            with self.site.giving(rows):
                return module(input_ids=ids, **{**options, **more})

    def _check(self, ids: Tensor, mask: Tensor) -> None:
        """Unmoved rows give what the model gives; moved ones move hidden state 0 by just that, and the last one too."""
        plain = self.encoder.all_hidden(mask, input_ids=ids)
        row = plain[0]
        with torch.no_grad():
            still = self.states(row)
            delta = torch.zeros_like(row)
            delta[:, -1] = -1.5 * row[:, -1].roll(1, -1)
            moved = self.states(row + delta)
        limit = _TOLERANCE.get(self.dtype, 0.05)
        if not all(difference(a, b) <= limit for a, b in zip(still, plain, strict=True)):
            raise InputError(f"{self.name} gives other hidden states when its own hidden state 0 is handed to it")
        if not torch.equal(moved[0], row + delta) or difference(moved[-1], plain[-1]) <= limit:
            raise InputError(f"a move of hidden state 0 of {self.name} does not arrive in the model")
        self.causal = bool(difference(moved[-1][:, :-1], plain[-1][:, :-1]) <= limit)


def find_at(name: str) -> At:
    """Check the name of the place where moves enter."""
    if name not in get_args(At):
        raise InputError(f"at={name!r} is not known; use {' or '.join(get_args(At))}", argument="at")
    return cast(At, name)


def _grown(state: Tensor, like: Tensor) -> Tensor:
    return state.expand(len(like), *state.shape[1:])


@contextmanager
def _constant(parameters: list[Any]) -> Iterator[None]:
    """A user's own weights may want gradients; not from us."""
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)
