"""A transformer of the Hugging Face library as an encoder: any hidden state of any text, and no layer more than that.

Index conventions: a batch is (b, n) ids with a mask; a hidden state is (b, n, d). Hidden state k is what block k gets
as its input, so for k below the last one the model is stopped there.
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsway.models.running.encoder import Encoder, tokenized
from wordsway.models.running.pieces import Pieces, read_pieces
from wordsway.support.errors import InputError
from wordsway.tokens import Tokens

# Of a batch, padding included, through the embedding layer; half through whole blocks, which need more for a token.
_BATCH_TOKENS = 4096


class Reached(Exception):
    """The hidden state that was asked for: there is no need to go on."""


class PretrainedEncoder(Encoder):
    """A live model with its fast tokenizer. `first_position` is how position ids are made when texts are padded: None
    leaves them to the model, a number is the position of a text's first token."""

    def __init__(self, model: Any, tokenizer: Any, name: str | None = None, revision: str | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(f"{type(tokenizer).__name__} is not a fast tokenizer, and only those know a text's words")
        if model.training:
            raise InputError("the model is in training mode, where dropout makes embeddings random; call model.eval()")
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model.base_model
        self.tokenizer, self.revision = tokenizer, revision
        self.name = name or getattr(model.config, "name_or_path", "") or type(model).__name__
        self.device = next(self.model.parameters()).device
        self.blocks = find_blocks(self.model)
        self.layers = _depth(self.model)
        self.first_position: int | None = None
        self.batch_tokens = _BATCH_TOKENS
        self.pad = next((k for k in (tokenizer.pad_token_id, tokenizer.eos_token_id) if k is not None), 0)
        self.accepts = inspect.signature(self.model.forward).parameters
        self.limit = self._limit()

    def embed(self, texts: Sequence[str], layer: int, max_tokens: int | None) -> Iterator[tuple[int, Tokens]]:
        pieces = self.tokenize(texts, max_tokens)
        for batch in self._batches([len(part.ids) for part in pieces], layer):
            rows = self.states([pieces[k].ids for k in batch], layer)
            for index, X in zip(batch, rows, strict=True):
                yield index, self.as_tokens(pieces[index], X, {"layer": layer})

    def padded(self, texts: Sequence[str], length: int) -> Iterator[Tokens]:
        """Hidden state 0 of texts with padding tokens after their end up to `length`, raw rows. A padding token is
        special and has the row that the model gives it at its place."""
        name = self.tokenizer.pad_token
        if name is None:
            raise InputError(f"the tokenizer of {self.name} has no padding token, so its texts cannot be padded")
        pieces = self.tokenize(texts)
        longest = max((len(part.ids) for part in pieces), default=0)
        if longest > length:
            raise InputError(f"a text has {longest} tokens, more than the {length} it is padded to")
        size = max(1, self.batch_tokens // length)
        for start in range(0, len(pieces), size):
            group = [_with_padding(part, length, self.pad, name) for part in pieces[start : start + size]]
            mask = torch.zeros(len(group), length, dtype=torch.int64)
            for row, part in zip(mask, pieces[start : start + size], strict=True):
                row[: len(part.ids)] = 1
            ids = torch.tensor([part.ids for part in group], device=self.device)
            rows = self.hidden(0, mask.to(self.device), own_positions=True, input_ids=ids)
            for part, X in zip(group, rows, strict=True):
                yield self.as_tokens(part, X.to("cpu", torch.float32), {"layer": 0, "padded_to": length})

    def as_tokens(self, pieces: Pieces, X: Float[Tensor, "n d"], place: dict[str, Any]) -> Tokens:
        """Raw rows with their words; `place` says which rows of the model they are."""
        return pieces.with_rows(X, {"encoder": self.name, "revision": self.revision, **place})

    def tokenize(self, texts: Sequence[str], max_tokens: int | None = None) -> list[Pieces]:
        """Pieces, words and special tokens; what looks like a special token in a text is text."""
        options = {"return_attention_mask": False, "return_token_type_ids": False, "split_special_tokens": True}

        def tokenize(some: list[str]) -> list[Any]:
            encoded = self.tokenizer(some, verbose=False, **options)
            return [encoded[index] for index in range(len(some))]

        encodings = tokenized(texts, max_tokens or self.limit, tokenize)
        return read_pieces(texts, encodings, self.name, self.limit, self.tokenizer.unk_token_id, max_tokens)

    def states(self, ids: Sequence[Sequence[int]], layer: int) -> list[Float[Tensor, "_ d"]]:
        """The hidden state `layer` of each text in one padded batch, float32 on the CPU."""
        self.check_layer(layer)
        rows, highest = self.model.get_input_embeddings().num_embeddings, max(max(part) for part in ids)
        if highest >= rows:
            raise InputError(
                f"the tokenizer gives the id {highest}, but {self.name} has only {rows} embeddings: they do not match"
            )
        batch, mask = self.pad_batch(ids, self.tokenizer.padding_side)
        hidden = self.hidden(layer, mask, input_ids=batch)
        return [rows[keep].to("cpu", torch.float32) for rows, keep in zip(hidden, mask.bool(), strict=True)]

    def pad_batch(self, ids: Sequence[Sequence[int]], side: str) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]:
        """Ids of one length, padded on the left or right, and the mask of what is text."""
        longest = max(len(part) for part in ids)
        batch = torch.full((len(ids), longest), self.pad)
        mask = torch.zeros_like(batch)
        for row, part in enumerate(ids):
            place = slice(longest - len(part), longest) if side == "left" else slice(0, len(part))
            batch[row, place] = torch.tensor(part)
            mask[row, place] = 1
        return batch.to(self.device), mask.to(self.device)

    def hidden(
        self, layer: int, mask: Int[Tensor, "b n"], own_positions: bool = False, **inputs: Tensor
    ) -> Float[Tensor, "b n d"]:
        """One hidden state from `input_ids` or `inputs_embeds`; blocks from `layer` on do not run. With `own_positions`
        the model counts positions as it does by itself, also those of padding."""
        arguments = self._arguments(mask, own_positions)
        if self.blocks is None or layer == self.layers:
            with torch.no_grad():
                return self.model(**inputs, **arguments, output_hidden_states=True).hidden_states[layer]
        stop = self.blocks[layer].register_forward_pre_hook(stop_here, with_kwargs=True)
        try:
            with torch.no_grad():
                self.model(**inputs, **arguments)
        except Reached as reached:
            return reached.args[0]
        finally:
            stop.remove()
        raise InputError(f"{self.name} does not run its block {layer}, so its hidden state {layer} is not there")

    def all_hidden(self, mask: Int[Tensor, "b n"], **inputs: Tensor) -> tuple[Tensor, ...]:
        """Every hidden state, by a run of the whole model."""
        with torch.no_grad():
            return self.model(**inputs, **self._arguments(mask), output_hidden_states=True).hidden_states

    def _arguments(self, mask: Tensor, own_positions: bool = False) -> dict[str, Any]:
        arguments: dict[str, Any] = {"attention_mask": mask}
        if "use_cache" in self.accepts:
            arguments["use_cache"] = False
        if self.first_position is not None and not own_positions:
            arguments["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0) + self.first_position
        return arguments

    def _batches(self, lengths: Sequence[int], layer: int) -> Iterator[list[int]]:
        """Indices of texts of about one length, so that there is little padding."""
        most = self.batch_tokens if layer == 0 else self.batch_tokens // 2
        batch: list[int] = []
        for index in sorted(range(len(lengths)), key=lambda k: lengths[k]):
            if batch and (len(batch) + 1) * lengths[index] > most:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def _limit(self) -> int | None:
        """The longest text that the model takes; None where it has no limit."""
        limits = []
        if self.tokenizer.model_max_length < 10**9:  # the library writes "none" as a huge number
            limits.append(self.tokenizer.model_max_length)
        positions = getattr(self.model.config, "max_position_embeddings", None)
        if isinstance(positions, int) and positions > 0:
            limits.append(positions)
        for name, module in self.model.named_modules():
            if isinstance(module, torch.nn.Embedding) and "position" in name and module.padding_idx is not None:
                limits.append(module.num_embeddings - module.padding_idx - 1)  # positions start after the padding's
        return min(limits, default=None)


def _with_padding(pieces: Pieces, length: int, pad: int, name: str) -> Pieces:
    more = length - len(pieces.ids)
    return replace(
        pieces,
        ids=pieces.ids + (pad,) * more,
        tokens=pieces.tokens + (name,) * more,
        word_ids=pieces.word_ids + (None,) * more,
        special=pieces.special + (True,) * more,
        offsets=pieces.offsets + ((0, 0),) * more,
    )


def stop_here(module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """A hook before a block: what it would get is what was asked for."""
    raise Reached(arguments[0] if arguments else keywords["hidden_states"])


def _depth(model: Any) -> int:
    names = ("num_hidden_layers", "n_layer", "num_layers")
    return next(getattr(model.config, name) for name in names if getattr(model.config, name, None) is not None)


def find_blocks(model: Any) -> Any:
    """The list of the model's blocks; None where it has none of the right length."""
    depth = _depth(model)
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module) == depth]
    return lists[0] if lists else None
