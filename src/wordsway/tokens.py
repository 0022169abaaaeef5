"""Texts as n x d embeddings: `Tokens`, checking, the paper's row normalisation, synthetic rows.

Index conventions: n tokens, d coordinates; a text is X of shape (n, d), a row is a token.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsway.support.errors import InputError
from wordsway.support.memory import require
from wordsway.support.plain_checks import STRUCTURES, check_correlation, check_size
from wordsway.support.public_gate import check_whole, public
from wordsway.support.seeds import normal


@public
@dataclass(frozen=True, eq=False)
class Tokens:
    """A text that was embedded: one row of X a token, and which word of the text each token belongs to.

    `special` marks what the tokenizer added by itself ([CLS], [SEP], BOS): context, but no word of the text. A token
    outside of every word (a special one, or white space) has the word id None, others the index of their word in
    `words`, from 0 as in all sequences here; results and `word=` count words from 1. `offsets` are the characters of
    `text` that a token stands for, (0, 0) where there are none. `source` says which encoder, layer and preparation made
    X.
    """

    X: Float[Tensor, "n d"]
    tokens: tuple[str, ...]
    word_ids: tuple[int | None, ...]
    special: Bool[Tensor, " n"]
    offsets: tuple[tuple[int, int], ...]
    text: str
    normalized: bool
    ids: tuple[int, ...] | None = None  # in the tokenizer's vocabulary, where there is one
    source: dict[str, Any] = field(default_factory=dict)
    full_length: int | None = None  # tokens before it was cropped, where it was
    unknown: tuple[str, ...] = ()  # words that the tokenizer does not know

    def __post_init__(self) -> None:
        n = len(self.X)
        lengths = {
            len(part) for part in (self.tokens, self.word_ids, self.special, self.offsets, self.ids or self.tokens)
        }
        if lengths != {n}:
            raise InputError(f"X has {n} rows, but tokens, word ids, special mask and offsets have {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Tokens({n} x {d}, {len(self.words)} word{'s' * (len(self.words) != 1)}: {_clip(self.text)!r})"

    @cached_property
    def pieces(self) -> tuple[tuple[int, ...], ...]:
        """For each word, the indices of its tokens."""
        found: dict[int, list[int]] = {}
        for token, word in enumerate(self.word_ids):
            if word is not None:
                found.setdefault(word, []).append(token)
        return tuple(tuple(found[word]) for word in sorted(found))

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """For each word, the characters of `text` that it takes, without white space around it."""
        found = []
        for tokens in self.pieces:
            start, end = min(self.offsets[k][0] for k in tokens), max(self.offsets[k][1] for k in tokens)
            part = self.text[start:end]
            found.append((start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())))
        return tuple(found)

    @property
    def words(self) -> tuple[str, ...]:
        """The words, as the text spells them; by their tokens where these do not say where they stand in the text."""
        return tuple(
            self.text[start:end] or "".join(self.tokens[k] for k in tokens)
            for (start, end), tokens in zip(self.spans, self.pieces, strict=True)
        )

    def __getitem__(self, rows: slice) -> "Tokens":
        """The first n tokens as `tokens[:n]`, or any run of them. A word that is cut keeps the pieces that are left."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise InputError(f"Tokens take a plain slice, such as tokens[:100], got {rows!r}")
        ids = self.word_ids[rows]
        if not ids:
            raise InputError(f"tokens[{rows.start}:{rows.stop}] of {len(self)} tokens is empty", argument="tokens")
        order = {word: k for k, word in enumerate(sorted({word for word in ids if word is not None}))}
        return replace(
            self,
            X=self.X[rows],
            tokens=self.tokens[rows],
            word_ids=tuple(None if word is None else order[word] for word in ids),
            special=self.special[rows],
            offsets=self.offsets[rows],
            ids=None if self.ids is None else self.ids[rows],
        )

    def first_dims(self, d: int) -> "Tokens":
        """The first d coordinates of every row, rescaled to norm sqrt(d) where X was: the paper's cropping."""
        if check_size(d, "d") > self.X.shape[1]:
            raise InputError(
                f"d={d} is more than the {self.X.shape[1]} coordinates that a token has; use at most {self.X.shape[1]}",
                argument="d",
            )
        X = self.X[:, :d]
        return replace(self, X=normalize_rows(X) if self.normalized else X)

    def centered(self) -> "Tokens":
        """Rows without their mean over the text, rescaled to norm sqrt(d) where X was."""
        X = self.X - self.X.mean(0)
        return replace(self, X=normalize_rows(X) if self.normalized else X, source={**self.source, "centered": True})


def _clip(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def as_text(X: Any, name: str = "X") -> Float[Tensor, "n d"]:
    """X as a float64 tensor on the CPU, or an InputError that says what is wrong with it."""
    X = X.X if isinstance(X, Tokens) else X
    try:
        tensor = torch.as_tensor(X)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name} must be an (n, d) array of numbers, got {type(X).__name__}: {error}", argument=name
        ) from None
    if tensor.dim() != 2:
        raise InputError(f"{name} must have shape (n, d), got shape {tuple(tensor.shape)}", argument=name)
    if tensor.shape[0] < 1 or tensor.shape[1] < 1:
        raise InputError(
            f"{name} is empty: shape {tuple(tensor.shape)}; it needs at least one row and one column", argument=name
        )
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(f"{name} must hold real numbers, got dtype {tensor.dtype}", argument=name)
    require(24.0 * tensor.numel(), f"{name} of {tensor.shape[0]} x {tensor.shape[1]}", "give fewer rows")
    tensor = tensor.detach().to("cpu", torch.float64)
    bad = ~torch.isfinite(tensor)
    if bad.any():
        row, column = (int(k) for k in bad.nonzero()[0])
        raise InputError(
            f"{name} has {int(bad.sum())} entries that are NaN or infinite, the first at row {row}, column {column}",
            argument=name,
        )
    zero = (tensor == 0).all(1)
    if zero.any():
        raise InputError(
            f"{name} has a zero row (row {int(zero.nonzero()[0])}); every token needs a direction", argument=name
        )
    return tensor


@public
def normalize_rows(X: Any) -> Float[Tensor, "n d"]:
    """Rescale every row to norm sqrt(d), as the paper assumes; keeps a tensor's dtype and device."""
    if isinstance(X, Tensor) and X.is_floating_point() and X.dim() == 2 and X.numel() and X.device.type == "cpu":
        require(24.0 * X.numel(), f"X of {X.shape[0]} x {X.shape[1]}", "give fewer rows")
        size = torch.linalg.vector_norm(X, dim=1, keepdim=True, dtype=torch.float64)
        if bool(((size > 1e-100) & (size < 1e100)).all()):  # so no entry is out of order either
            return (X.detach() * (math.sqrt(X.shape[1]) / size)).to(X.dtype)
    text = as_text(X)
    # Rows are scaled by their largest entry first: the norm of a row of tiny numbers must not underflow.
    text = text / text.abs().amax(1, keepdim=True)
    text = text * (math.sqrt(text.shape[1]) / text.norm(dim=1, keepdim=True))
    if isinstance(X, Tensor) and X.is_floating_point():
        return text.to(X.device, X.dtype)
    return text


@public
def synthetic_tokens(
    n: int, d: int, seed: int = 0, correlation: float = 0.0, structure: str = "mean"
) -> Float[Tensor, "n d"]:
    """n Gaussian rows, each rescaled to norm sqrt(d); float64.

    The rows are independent, or two of them have a cosine of about `correlation`: any two, as all share a mean
    direction (`structure` "mean"), or neighbours, and its k-th power for rows k apart ("ar1").
    """
    if structure not in STRUCTURES:
        raise InputError(
            f"structure={structure!r} is not known; use one of: {', '.join(STRUCTURES)}", argument="structure"
        )
    check_size(n, "n")
    check_size(d, "d")
    require(32.0 * n * d, f"a synthetic text of {n} x {d}", "use fewer tokens or coordinates")
    rows = normal((n, d), seed, "synthetic_tokens", dtype=torch.float64)
    return normalize_rows((share_direction if structure == "mean" else share_neighbours)(rows, correlation, seed))


def share_direction(rows: Float[Tensor, "n d"], correlation: float, seed: int) -> Float[Tensor, "n d"]:
    """sqrt(1 - correlation) row + sqrt(correlation) g, with one Gaussian g for all rows."""
    if check_correlation(correlation) == 0:
        return rows
    shared = normal((1, rows.shape[1]), seed, "shared_direction", dtype=torch.float64)
    return math.sqrt(1 - correlation) * rows + math.sqrt(correlation) * shared


def share_neighbours(rows: Float[Tensor, "n d"], correlation: float, seed: int) -> Float[Tensor, "n d"]:
    """Each row is `correlation` times the one before it and sqrt(1 - correlation^2) of its own: AR(1)."""
    new = math.sqrt(1 - check_correlation(correlation) ** 2)
    found = [rows[0]]
    for row in rows[1:]:
        found.append(correlation * found[-1] + new * row)
    return torch.stack(found)


def find_words(tokens: Tokens, word: str | int) -> list[int]:
    """The places of a word in a text: itself, in any case where no other is found, or its number from 1 ("#3", "3")."""
    if isinstance(word, int):
        check_whole(word, "word")
        word = f"#{word}"
    words = [k for k, found in enumerate(tokens.words) if found == word]
    words = words or [k for k, found in enumerate(tokens.words) if found.casefold() == word.casefold()]
    number = word.removeprefix("#")
    if not words and number.isdecimal() and len(number) < 19 and 1 <= int(number) <= len(tokens.words):
        words = [int(number) - 1]
    if not words:
        shown = ", ".join(f"#{k} {found!r}" for k, found in enumerate(tokens.words[:12], 1))
        more = "" if len(tokens.words) <= 12 else f", ... #{len(tokens.words)}"
        raise InputError(
            f"the word {_clip(word)!r} is not in the text; use one of its words or their numbers: {shown}{more}"
        )
    return words


def find_word(tokens: Tokens, word: str | int) -> int:
    """The place of one word; an InputError where it stands in several."""
    found = find_words(tokens, word)
    if len(found) > 1:
        numbers = ", ".join(f"#{k + 1}" for k in found)
        raise InputError(f"the word {word!r} is in the text {len(found)} times: say which one, {numbers}")
    return found[0]
