"""A pre-trained model as a feature map: from hidden state 0 (or word embeddings) to one of its outputs.

Index conventions: as everywhere, X (n, d) is the text and delta (*batch, m, d) moves m tokens of it. A causal model
runs what comes before the first of them only once.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsway.maps.ascents import DEEP, Ascent
from wordsway.maps.base import TRAINED_SPREAD, FeatureMap, InnerProducts, Prepared, View
from wordsway.models.loading.load import open_model
from wordsway.models.moving.batches import Batches, bytes_of_a_text, joined
from wordsway.models.moving.endings import Ending, find_ending
from wordsway.models.moving.outputs.base import Output, find_output, find_prefix, usual_output
from wordsway.models.running.encoder import check_text, warn_of
from wordsway.models.running.model import At, Transformer, find_at
from wordsway.support.cancelling import Cancel, asked_by_modules
from wordsway.support.errors import InputError
from wordsway.support.public_gate import public
from wordsway.tokens import Tokens

_EXCERPT = 12  # tokens: with fewer, hardly anything is left of a text
# Short, since a run costs what its tokens cost; one of praise and one of blame, since a classifier that is sure of one
# class is best pushed towards the other.
_LANDMARK_TEXTS = (
    "The soup was wonderful and our waiter smiled all evening.",
    "I waited an hour for a dull film with a poor plot.",
)


@public
class PretrainedMap(FeatureMap):
    """phi(X) is `output` of a model whose hidden state 0 is X: "last" (every token's last state), "pooled" (their mean;
    "pooled:first" and "pooled:last" are one token's), "logits" (of a classifier, or of the next token), "layer:K",
    "all-layers" (layers 1 to the last, one after the other), "norm" (of each row of the last state), or one of your
    own, MODULE:NAME; None is for "logits" where the model has them, else "last". With `at="word-embeddings"`, X is what
    enters before positions and normalisation.

    `model` is a name, a folder, a hub id, or a live model with its `tokenizer`. `encode` makes the X of a text.
    """

    search_spread = TRAINED_SPREAD

    def __init__(
        self,
        model: Any = "minilm",
        output: str | None = None,
        *,
        tokenizer: Any = None,
        at: str = "embeddings",
        device: torch.device | str = "cpu",
    ) -> None:
        self.at: At = find_at(at)
        self.model: Transformer = open_model(model, tokenizer, device)
        self.output: Output = find_output(output or usual_output(self.model), self.model)
        self.search_spread = self.output.spread
        self.n = self.d = None

    def __repr__(self) -> str:
        return f"PretrainedMap({self.model.name!r}, output={self.output.name!r}, at={self.at!r})"

    def encode(self, text: str, max_tokens: int | None = None) -> Tokens:
        """A text as this map takes it: raw rows, with words and special tokens."""
        tokens = self._encode(check_text(text, "the text"), max_tokens)
        warn_of([tokens], self.model.name)
        return tokens

    def _encode(self, text: str, max_tokens: int | None = None) -> Tokens:
        encoder = self.model.encoder
        (pieces,) = encoder.tokenize([text], max_tokens)
        return encoder.as_tokens(pieces, rows_of(self.model, [pieces.ids], self.at)[0], place_of(self.at))

    def check(self, X: Float[Tensor, "n d"]) -> None:
        """Raise an InputError unless rows are as wide as the model's are where words move."""
        if X.shape[-1] != (width := rows_of(self.model, [[0]], self.at)[0].shape[-1]):
            raise InputError(f"X has d={X.shape[-1]}, but {self.model.name} has {width}; make rows by phi.encode(text)")

    def __call__(self, X: Float[Tensor, "n d"]) -> Tensor:
        with torch.no_grad():
            return self.output.features(self.model, X[None], self.at)[0].cpu().double()

    def features(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
        with torch.no_grad():
            batches = Batches(self.model, texts.shape[1], gradient=False)
            run = lambda part: self.output.features(self.model, texts[part], self.at).cpu().double()  # noqa: E731
            return joined(batches.run(run, len(texts)))

    def make_prepared(self, X: Tensor, device: torch.device) -> "PretrainedText":
        """Prepare a text on the model's device, whichever was asked for."""
        return PretrainedText(self, X)

    def sq_norms(self, views: Sequence[View]) -> Callable[[Tensor], Tensor]:
        return self.scored(views, None, _squares)

    def scored(
        self, views: Sequence[View], targets: Float[Tensor, "q features"] | None, score: Callable[[Tensor], Tensor]
    ) -> Callable[[Tensor], Tensor]:
        """Views of one text in common batches; of a causal model each has a prefix of its own."""
        alike = [view for view in views if isinstance(view, PretrainedView)]
        fixed = None if targets is None else targets.to(self.model.device, self.model.dtype)
        value = score if fixed is None else lambda change: score(change @ fixed.T)

        def together(group: Sequence[PretrainedView], delta: Tensor) -> Tensor:
            count = delta.shape[1:-2].numel()
            places = torch.tensor([view.tokens for view in group]).repeat_interleave(count, 0)
            return group[0].values_at(delta.flatten(0, -3), places, value).view(delta.shape[:-2])

        if all(view.prefix is None for view in alike):
            return lambda delta: together(alike, delta)
        return lambda delta: torch.cat([together([view], delta[[k]]) for k, view in enumerate(alike)])

    def cancellable(self, cancel: Cancel | None) -> AbstractContextManager[None]:
        return asked_by_modules(self.model.whole, cancel)

    def excerpt(self, n: int) -> Sequence[int] | None:
        """The beginning of the text, and its last token: the one that many models end a text with."""
        size = max(_EXCERPT, n // 4)
        return [*range(size - 1), n - 1] if n >= 2 * size else None

    def landmark_texts(self) -> tuple[str, Sequence[Tokens]] | None:
        """Two sentences. A live model has no revision, and so no name that no other has."""
        if self.model.encoder.revision is None:
            return None
        return json.dumps(self.config(), sort_keys=True), [self._encode(text) for text in _LANDMARK_TEXTS]

    def side_by_side(self, n: int, d: int, m: int) -> int:
        """Enough for a batch; more would only put off the first sign of progress."""
        return max(1, min(32, 1408 // n))

    def config(self) -> dict[str, Any]:
        name, revision = self.model.name, self.model.encoder.revision
        return {"map": "pretrained", "model": name, "revision": revision, "output": self.output.name, "at": self.at}

    def attention_to(self, X: Float[Tensor, "n d"], tokens: Sequence[int]) -> Float[Tensor, " n"]:
        from wordsway.models.moving.attention_weights import attention_weights, eager  # which needs this module

        rows = X.to(self.model.device, self.model.dtype)
        with eager(self.model), torch.no_grad():
            weights = attention_weights(self.model, rows[None], 1, self.at)[0]
        return weights[..., list(tokens)].sum(-1).mean(0).cpu().double()

    def states_of(self, X: Float[Tensor, "n d"]) -> list[Float[Tensor, "n d2"]]:
        rows = X.to(self.model.device, self.model.dtype)
        with torch.no_grad():
            return [state[0].cpu().double() for state in self.model.states(rows[None], self.at)]

    def plain_bytes(self, n: int, d: int) -> float | None:
        return bytes_of_a_text(self.model, n, gradient=False)

    @property
    def plain_precision(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")

    def check_tokens(self, tokens: Tokens) -> None:
        """Rows that were rescaled, or come from another layer or model, are not what this model would see."""
        made = {key: tokens.source.get(key) for key in ("layer", "at")}
        wanted = {**{"layer": None, "at": None}, **place_of(self.at)}
        if tokens.normalized or made != wanted or tokens.source.get("encoder") != self.model.encoder.name:
            raise InputError(
                f"the text was encoded for something else ({tokens.source}); encode it with this map: phi.encode(text)"
            )


class PretrainedText(Prepared):
    """A text that was run through the model as it is, in the model's precision and on its device."""

    def __init__(self, phi: PretrainedMap, X: Float[Tensor, "n d"]) -> None:
        super().__init__(phi, X, phi.model.device)
        self.model, self.output = phi.model, phi.output
        self.at: At = phi.at
        self.rows = X.to(self.model.device, self.model.dtype)
        with torch.no_grad():
            self.base = self.output.features(self.model, self.rows[None], self.at)[0]
        self.base_norm = float(self.base.cpu().double().norm())
        self.bounds: dict[int, float] = {}  # on the change, by how many first rows no move changes

    @cached_property
    def half_base(self) -> Tensor | None:
        """The features by a run in half precision; None where the model has none. Only fast views need it."""
        if self.model.half is None:
            return None
        with torch.no_grad(), self.model.half:
            return self.output.features(self.model, self.rows[None], self.at)[0]

    @cached_property
    def ending(self) -> Ending | str:
        """The rows of a norm that the output ends in, or the reason why there are none. Only upper bounds need it."""
        return find_ending(self.model, self.output, self.rows, self.at)

    def make_view(self, tokens: tuple[int, ...], dtype: torch.dtype) -> "PretrainedView":
        """Make a view that computes as the model does; asked for in float32, gradients and the values beside them may
        come in half precision, where the processor is faster at that."""
        return PretrainedView(self, tokens, fast=dtype == torch.float32)


class PretrainedView(View):
    """One text through the model. Values and gradients are computed a batch at a time, however much is asked for."""

    costly = True
    shares_places = True

    def __init__(self, text: PretrainedText, tokens: tuple[int, ...], fast: bool = False) -> None:
        self.text, self.model, self.output = text, text.model, text.output
        self.at: At = text.at
        self.X, self.rows, self.tokens = text.X, text.rows, tokens
        self.dtype, self.device = self.model.dtype, self.model.device
        self.half = self.model.half if fast else None
        with torch.no_grad():
            self.prefix = find_prefix(self.model, self.output, self.rows, min(tokens), self.at, text.base)
            if self.prefix is None:
                self.base, self.half_base = text.base, text.half_base if fast else None
            else:  # so that no move at all is no change at all
                self.base = self.output.features(self.model, self.suffix[None], self.at, self.prefix)[0]
                self.half_base = self._run_half()
        self.base_norm = text.base_norm
        self.batches = Batches(self.model, len(self.suffix))

    def _run_half(self) -> Tensor | None:
        if self.half is None:
            return None
        with self.half:
            return self.output.features(self.model, self.suffix[None], self.at, self.prefix)[0]

    @property
    def suffix(self) -> Float[Tensor, "s d"]:
        """The rows that are run for every delta."""
        return self.rows if self.prefix is None else self.rows[self.prefix.length :]

    def ascent(self) -> Ascent:
        return DEEP

    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        flat = delta.reshape(-1, *delta.shape[-2:])
        places = torch.tensor([self.tokens]).expand(len(flat), -1)
        return self.values_at(flat, places, _squares).view(delta.shape[:-2])

    def values_at(
        self, delta: Float[Tensor, "b m d"], places: Int[Tensor, "b m"], score: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, " b"]:
        """Compute a number of each change, where every delta moves tokens of its own, at `places`."""
        half = self.half is not None and delta.requires_grad
        return self.batches.values(delta, lambda part, moves: score(self._change(moves, places[part], half)))

    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        fixed = targets.to(self.device, self.dtype)
        return lambda delta: self.change(delta) @ fixed.T

    def change(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch features"]:
        flat = delta.reshape(-1, *delta.shape[-2:])
        places = torch.tensor([self.tokens]).expand(len(flat), -1)
        parts = self.batches.run(lambda part: self._change(flat[part], places[part]), len(flat))
        return joined(parts).view(*delta.shape[:-2], -1)

    @property
    def bytes_per_evaluation(self) -> int:
        return int(bytes_of_a_text(self.model, len(self.X), gradient=False))

    def _change(
        self, delta: Float[Tensor, "b m d"], places: Int[Tensor, "b m"], half: bool = False
    ) -> Float[Tensor, "b features"]:
        before = 0 if self.prefix is None else self.prefix.length
        rows = add_rows(self.suffix, places.to(self.device) - before, delta.to(self.device, self.dtype))
        if half and self.half is not None and self.half_base is not None:
            with self.half:
                return self.output.features(self.model, rows, self.at, self.prefix) - self.half_base
        return self.output.features(self.model, rows, self.at, self.prefix) - self.base


def _squares(change: Float[Tensor, "b features"]) -> Float[Tensor, " b"]:
    return change.square().sum(1)


def add_rows(
    rows: Float[Tensor, "n d"], places: Int[Tensor, "b m"], delta: Float[Tensor, "b m d"]
) -> Float[Tensor, "b n d"]:
    """b copies of a text, each with moves of its own at places of its own."""
    which = torch.arange(len(delta), device=delta.device)[:, None].expand_as(places)
    return rows.expand(len(delta), *rows.shape).index_put((which, places), delta, accumulate=True)


def place_of(at: At) -> dict[str, Any]:
    """Return the entries of `Tokens.source` for rows that enter at `at`."""
    return {"layer": 0} if at == "embeddings" else {"at": at}


def rows_of(model: Transformer, ids: Sequence[Sequence[int]], at: At) -> list[Tensor]:
    """The rows of some texts of one length, where moves enter; float32 on the CPU."""
    if at == "embeddings":
        return model.encoder.states(ids, 0)
    with torch.no_grad():
        found = model.base.get_input_embeddings()(torch.tensor(ids, device=model.device))
    return list(found.to("cpu", torch.float32))
