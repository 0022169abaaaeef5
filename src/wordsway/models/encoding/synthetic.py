"""Encoders without a model: a Gaussian row for every distinct word, or any function of a text."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from wordsway.models.running.encoder import Encoder, crop, plain_tokens
from wordsway.models.running.word_ids import split_words
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public
from wordsway.support.seeds import normal
from wordsway.tokens import Tokens, as_text, share_direction


@public
@dataclass(frozen=True)
class SyntheticEncoder(Encoder):
    """A word is a Gaussian row of its own, the same wherever it stands; with `correlation`, all words share a mean
    direction, so that two of them have about that cosine."""

    d: int = 768
    correlation: float = 0.0
    seed: int = 0

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "correlated" if self.correlation else "synthetic"

    def embed(self, texts: Sequence[str], layer: int, max_tokens: int | None) -> Iterator[tuple[int, Tokens]]:
        check_size(self.d, "d")
        source = {"encoder": self.name, "d": self.d, "correlation": self.correlation, "seed": self.seed}
        for index, text in enumerate(texts):
            found = split_words(text)
            kept = [found[k] for k in crop(len(found), [False] * len(found), max_tokens)]
            words = [text[start:end] for start, end in kept]
            if not words:
                raise InputError(f"text {index} has no words")
            rows = {word: normal((self.d,), self.seed, "word", word, dtype=torch.float64) for word in set(words)}
            X = share_direction(torch.stack([rows[word] for word in words]), self.correlation, self.seed)
            cropped = len(found) if len(kept) < len(found) else None
            yield index, plain_tokens(text, X, words, kept, source, cropped)


class FunctionEncoder(Encoder):
    """Any function of a text. It returns `Tokens`, or a list of token strings with an (n, d) array, or the array
    alone; the rows of a bare array are the text's words where there are as many, else they are numbered."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def embed(self, texts: Sequence[str], layer: int, max_tokens: int | None) -> Iterator[tuple[int, Tokens]]:
        for index, text in enumerate(texts):
            tokens = self._tokens(text)
            if max_tokens is not None and len(tokens) > max_tokens:
                tokens = replace(tokens[:max_tokens], full_length=len(tokens))
            yield index, tokens

    def _tokens(self, text: str) -> Tokens:
        made = self.function(text)
        if isinstance(made, Tokens):
            return made
        names, X = made if isinstance(made, tuple) and len(made) == 2 else (None, made)
        X = as_text(X, f"what {self.name} returned")
        source = {"encoder": self.name}
        if names is None:
            spans = split_words(text)
            if len(spans) != len(X):
                return plain_tokens(text, X, [f"row {k}" for k in range(len(X))], [(0, 0)] * len(X), source)
            return plain_tokens(text, X, [text[start:end] for start, end in spans], spans, source)
        if len(names) != len(X):
            raise InputError(f"{self.name} returned {len(names)} tokens but {len(X)} rows")
        offsets, position = [], 0
        for name in names:
            start = text.find(name, position)
            offsets.append((start, start + len(name)) if start >= 0 and name else (0, 0))
            position = offsets[-1][1] or position
        return plain_tokens(text, X, [str(name) for name in names], offsets, source)
