"""The interface of an encoder: texts in, tokens with their rows out."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from wordsway.support.errors import InputError, TextWarning
from wordsway.tokens import Tokens


class Encoder(ABC):
    """Texts to embeddings. `layers` is the last hidden state that can be asked for; 0 is the embedding layer's
    output."""

    name: str
    layers: int = 0

    @abstractmethod
    def embed(self, texts: Sequence[str], layer: int, max_tokens: int | None) -> Iterator[tuple[int, Tokens]]:
        """Each text's index and its tokens, with raw rows (not normalised), in any order."""

    def check_layer(self, layer: int) -> None:
        """Raise an InputError unless there is such a hidden state."""
        if not 0 <= layer <= self.layers:
            raise InputError(f"layer {layer} is not there: {self.name} has the hidden states 0 to {self.layers}")


def check_text(text: Any, name: str) -> str:
    """A text that can be encoded: a str of valid Unicode with something in it."""
    if not isinstance(text, str):
        raise InputError(f"{name} must be a str, got {type(text).__name__}", argument=name)
    if not text.strip():
        raise InputError(f"{name} is empty; give some words", argument=name)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} is not valid Unicode: a lone surrogate at character {error.start}; was its encoding another?"
        ) from None
    return text


def crop(count: int, special: Sequence[bool], max_tokens: int | None) -> list[int]:
    """The indices that are left of `count` tokens: all special ones, and the first of the others that fit."""
    if max_tokens is None or count <= max_tokens:
        return list(range(count))
    room = max_tokens - sum(special)
    if room < 1:
        raise InputError(
            f"max_tokens={max_tokens} leaves no room for words beside {sum(special)} special tokens; "
            f"use at least {sum(special) + 1}",
            argument="max_tokens",
        )
    kept = [k for k in range(count) if not special[k]][:room]
    return sorted([*kept, *(k for k in range(count) if special[k])])


def beginning(text: str, most: int | None) -> str:
    """Cut a text that has far more characters than so many tokens can take, at white space; others stay whole. Who
    needs the first tokens of a long text need not tokenize all of it."""
    limit = None if most is None else 100 * most + 10_000
    if limit is None or len(text) <= limit:
        return text
    place = max(text.rfind(space, 0, limit) for space in (" ", "\n"))
    return text[:place] if place > limit // 2 else text


def tokenized(texts: Sequence[str], most: int | None, tokenize: Callable[[list[str]], Sequence[Any]]) -> list[Any]:
    """Tokenize the beginnings of some texts; a text whose beginning has no more than `most` tokens, as a whole."""
    parts = [beginning(text, most) for text in texts]
    found = list(tokenize(parts))
    for index, (text, part) in enumerate(zip(texts, parts, strict=True)):
        if len(part) < len(text) and len(found[index].ids) <= (most or 0):
            found[index] = tokenize([text])[0]
    return found


def warn_of(texts: Sequence[Tokens], name: str) -> None:
    """Say loudly what of some texts was cropped, or is unknown to the encoder; from the cache as well."""
    cropped = [tokens for tokens in texts if tokens.full_length is not None]
    longest = max((tokens.full_length or 0 for tokens in cropped), default=0)
    if len(texts) == 1 and cropped:
        part = len(beginning(cropped[0].text, len(cropped[0]))) < len(cropped[0].text)  # the rest was not counted
        count = f"more than {longest}" if part else longest
        message = f"kept only {len(cropped[0])} of the text's {count} tokens, as asked for; the rest is ignored"
        warnings.warn(message, TextWarning, stacklevel=3)
    elif cropped:
        message = f"cropped {len(cropped)} of {len(texts)} texts to {len(cropped[0])} tokens, as asked for; "
        warnings.warn(f"{message}the longest had {longest}", TextWarning, stacklevel=3)
    unknown = list(dict.fromkeys(word for tokens in texts for word in tokens.unknown))
    if unknown:
        shown = ", ".join(repr(word if len(word) < 20 else word[:17] + "...") for word in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        message = f"{name} does not know {shown}{more}: unknown words all look alike to it"
        warnings.warn(message, TextWarning, stacklevel=3)


def plain_tokens(
    text: str,
    X: torch.Tensor,
    tokens: Sequence[str],
    offsets: Sequence[tuple[int, int]],
    source: dict[str, Any],
    full_length: int | None = None,
) -> Tokens:
    """Tokens that are words: no pieces, none special."""
    return Tokens(
        X=X,
        tokens=tuple(tokens),
        word_ids=tuple(range(len(tokens))),
        special=torch.zeros(len(tokens), dtype=torch.bool),
        offsets=tuple(offsets),
        text=text,
        normalized=False,
        source=source,
        full_length=full_length,
    )
