"""The embedding layer of the bundled encoder, from its files alone: no model is built and `transformers` not imported.

It gives what hidden state 0 of the whole encoder is, to the last bit, in a fraction of the time that loading takes.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch

from wordsway.models.loading.locate import Location
from wordsway.models.running.encoder import Encoder, tokenized
from wordsway.models.running.pieces import read_pieces
from wordsway.support.errors import InputError, one_line
from wordsway.tokens import Tokens

_PARTS = ("word_embeddings.weight", "token_type_embeddings.weight", "position_embeddings.weight")
_NORM = ("LayerNorm.weight", "LayerNorm.bias")


@lru_cache(maxsize=1)
def bundled_embeddings(location: Location) -> "BundledEmbeddings":
    """Read the embedding layer."""
    return BundledEmbeddings(location)


class BundledEmbeddings(Encoder):
    """Hidden state 0 of the bundled encoder, a BERT: rows of words, of the first segment and of places, normalised."""

    layers = 0

    def __init__(self, location: Location) -> None:
        from safetensors import safe_open
        from tokenizers import Tokenizer

        self.name, self.revision = location.name, location.revision
        try:
            with safe_open(location.folder / "model.safetensors", "pt") as file:
                self._words, self._segments, self._positions, self._gamma, self._beta = (
                    file.get_tensor(f"embeddings.{part}").float() for part in (*_PARTS, *_NORM)
                )
            config: dict[str, Any] = json.loads((location.folder / "config.json").read_text(encoding="utf-8"))
            self._epsilon = float(config["layer_norm_eps"])
            self._tokenizer = Tokenizer.from_file(str(location.folder / "tokenizer.json"))
        except Exception as error:  # damaged files raise many kinds of errors
            why = f"cannot read the bundled encoder: {one_line(error)}"
            raise InputError(f"{why}; install it again") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # what looks like a special token in a text is text
        self._unknown = self._tokenizer.token_to_id("[UNK]")

    def embed(self, texts: Sequence[str], layer: int, max_tokens: int | None) -> Iterator[tuple[int, Tokens]]:
        source = {"encoder": self.name, "revision": self.revision, "layer": layer}
        limit = len(self._positions)
        encodings = tokenized(texts, max_tokens or limit, self._tokenizer.encode_batch)
        for index, pieces in enumerate(read_pieces(texts, encodings, self.name, limit, self._unknown, max_tokens)):
            rows = self._words[list(pieces.ids)] + self._segments[0] + self._positions[: len(pieces.ids)]
            X = torch.nn.functional.layer_norm(rows, rows.shape[-1:], self._gamma, self._beta, self._epsilon)
            yield index, pieces.with_rows(X, dict(source))
