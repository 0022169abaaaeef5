"""A text after its tokenizer: pieces, the words that they belong to, and what was cropped or is unknown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.running.encoder import beginning, crop
from wordsway.models.running.word_ids import group_words
from wordsway.support.errors import InputError
from wordsway.tokens import Tokens


@dataclass(frozen=True)
class Pieces:
    """A text after its tokenizer."""

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    word_ids: tuple[int | None, ...]
    special: tuple[bool, ...]
    offsets: tuple[tuple[int, int], ...]
    full_length: int | None  # before it was cropped, where it was
    unknown: tuple[str, ...]

    def with_rows(self, X: Float[Tensor, "n d"], source: dict[str, Any]) -> Tokens:
        """Make tokens with these raw rows."""
        return Tokens(
            X=X,
            tokens=self.tokens,
            word_ids=self.word_ids,
            special=torch.tensor(self.special, dtype=torch.bool),
            offsets=self.offsets,
            text=self.text,
            normalized=False,
            ids=self.ids,
            source=source,
            full_length=self.full_length,
            unknown=self.unknown,
        )


def read_pieces(
    texts: Sequence[str],
    encodings: Sequence[Any],
    name: str,
    limit: int | None,
    unknown_id: int | None,
    max_tokens: int | None,
) -> list[Pieces]:
    """Read the encodings that a fast tokenizer made of some texts. `limit` is the longest text that the model takes."""
    found = []
    for index, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
        # The library makes a new list whenever one of these is asked for.
        ids, tokens, offsets, own = encoding.ids, encoding.tokens, encoding.offsets, encoding.word_ids
        special = [bool(mark) for mark in encoding.special_tokens_mask]
        which = "the text" if len(texts) == 1 else f"text {index}"
        if all(special):
            raise InputError(f"{which} has no words: the tokenizer of {name} leaves nothing of it")
        kept = crop(len(special), special, max_tokens)
        if limit is not None and len(kept) > limit:
            more = " or more" if len(beginning(text, limit)) < len(text) else ""  # the rest was not counted
            raise InputError(
                f"{which} has {len(special)}{more} tokens, but {name} takes at most {limit}; give --max-tokens "
                f"{limit} (in Python max_tokens={limit}) to keep only its beginning"
            )
        words = group_words(text, own, offsets, special)
        cropped = len(kept) < len(ids)
        if cropped:
            ids, tokens, offsets = [ids[k] for k in kept], [tokens[k] for k in kept], [offsets[k] for k in kept]
            words, special = [words[k] for k in kept], [special[k] for k in kept]
        unknown = [
            text[start:end]
            for token, (start, end), added in zip(ids, offsets, special, strict=True)
            if token == unknown_id and not added
        ]
        found.append(
            Pieces(
                text=text,
                ids=tuple(ids),
                tokens=tuple(tokens),
                word_ids=tuple(words),
                special=tuple(special),
                offsets=tuple(offsets),
                full_length=len(own) if cropped else None,
                unknown=tuple(unknown),
            )
        )
    return found
