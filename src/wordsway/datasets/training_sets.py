"""Labelled texts for learning experiments: one to be flipped and as many as are asked for to train on.

Real texts, or Gaussian rows X with the label sign(flat(X) . u) for a fixed direction u. In both, training texts take
turns between the labels, and a larger training set begins with a smaller one.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.datasets.labelled_texts import LabelledTexts, ShortageError, load_texts
from wordsway.datasets.text_sources import PUBLISHED_BELOW, PUBLISHED_LENGTH
from wordsway.models.encoding.encode import encode, find_encoder
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.support.errors import InputError, TextWarning
from wordsway.support.memory import require
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public
from wordsway.support.seeds import Key, normal, stream
from wordsway.tokens import Tokens, normalize_rows


class Task(ABC):
    """Texts with labels; text 0 is the one to be flipped, the others are to train on."""

    token: int  # the first token of text 0 that is not special

    @abstractmethod
    def texts(self, count: int, n: int, d: int | None) -> tuple[Float[Tensor, "count n d"], Float[Tensor, " count"]]:
        """The first `count` texts, cropped to n tokens and d coordinates (None: all), with labels +1 and -1."""


@dataclass(frozen=True)
class GaussianTask(Task):
    """Gaussian rows of norm sqrt(d), with labels that a linear rule on the whole text gives."""

    key: Key
    token: int = 0

    def texts(self, count: int, n: int, d: int | None) -> tuple[Float[Tensor, "count n d"], Float[Tensor, " count"]]:
        return labelled_tokens(count, n, d or 384, stream(*self.key))


@public
def labelled_tokens(count: int, n: int, d: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Texts X (count, n, d) of Gaussian rows with norm sqrt(d), and labels y = sign(flat(X) . u) for a Gaussian u.

    From text 1 on the labels take turns: a text with the wrong one is negated, which is the law of a text given its
    label.
    """
    for name, value in (("count", count), ("n", n), ("d", d)):
        check_size(value, name)
    check_size(seed, "seed", least=0)
    require(8.0 * count * n * d, f"{count} synthetic texts of {n} x {d}", "use fewer, shorter or narrower texts")
    u = normal((n, d), seed, "labelled_tokens", "u", dtype=torch.float64)
    X = torch.empty(count, n, d, dtype=torch.float64)
    for k, text in enumerate(X):
        text.copy_(normalize_rows(normal((n, d), seed, "labelled_tokens", k, dtype=torch.float64)))
        wanted = None if k == 0 else (1.0 if k % 2 else -1.0)
        if wanted is not None and float((text * u).sum()) * wanted < 0:
            text.neg_()
    y = torch.where((X * u).sum((1, 2)) >= 0, 1.0, -1.0).to(torch.float64)
    return X, y


@dataclass(frozen=True)
class RealTask(Task):
    """Encoded texts of at least `longest` tokens."""

    encoded: tuple[Tokens, ...]
    labels: tuple[int, ...]
    token: int

    @staticmethod
    def load(
        data: str,
        train_size: int,
        longest: int,
        seed: int,
        encoder: str,
        layer: int,
        shorter_than: int | None,
        padding: str = "none",
    ) -> "RealTask":
        """Texts of at least `longest` tokens or, with padding as published, shorter ones padded to 256."""
        found = choose_texts(data, train_size, longest, seed, encoder, shorter_than, padding)
        first = found.labels[0]
        sides = {label: [k for k in range(1, len(found)) if found.labels[k] == label] for label in (-first, first)}
        order = [0]
        while len(order) <= train_size:
            order += [side[len(order) // 2] for side in sides.values() if len(order) // 2 < len(side)]
        order = order[: train_size + 1]
        texts = [found.texts[k] for k in order]
        if padding == "published":
            encoded = padded_tokens(texts, encoder, longest)
        else:
            encoded = first_tokens(texts, longest, encoder, layer)
        token = int((~encoded[0].special).nonzero()[0])
        return RealTask(tuple(encoded), tuple(found.labels[k] for k in order), token)

    def texts(self, count: int, n: int, d: int | None) -> tuple[Float[Tensor, "count n d"], Float[Tensor, " count"]]:
        size = self.encoded[0].X.shape[1]
        if d is not None and d > size:
            raise InputError(f"d={d} is more than the {size} coordinates that the encoder gives", argument="d")
        X = torch.empty(count, n, d or size, dtype=torch.float64)
        for text, tokens in zip(X, self.encoded[:count], strict=True):
            text.copy_(tokens[:n].X if d is None else tokens[:n].first_dims(d).X)
        return X, torch.tensor(self.labels[:count], dtype=torch.float64)


def choose_texts(
    data: str, train_size: int, longest: int, seed: int, encoder: str, shorter_than: int | None, padding: str
) -> LabelledTexts:
    """Choose texts to train on and one to flip, half of each label, or raise an InputError where there are too few."""
    count = train_size + 1 + (train_size + 1) % 2
    least, below = (None, PUBLISHED_BELOW) if padding == "published" else (longest, shorter_than)
    try:
        return load_texts(data, count=count, seed=seed, at_least=least, shorter_than=below, encoder=encoder)
    except ShortageError as error:
        asked = f"fewer than {below}" if least is None else f"at least n={longest}"
        raise InputError(
            f"training on {train_size} texts and flipping one more takes {count} of {asked} tokens, "
            f"half of each label, but {data!r} has {error.found}; use a smaller --train-size or --n, or more texts"
        ) from None


def first_tokens(texts: list[str], longest: int, encoder: str, layer: int) -> list[Tokens]:
    """Encoded texts of which at least `longest` tokens can be looked at. They are cropped one token later, as a cropped
    text ends with the closing special token; only at the model's limit there is no room for that."""
    options: dict[str, Any] = {"layer": layer, "cache": layer > 0}  # the embedding layer is as quick as a disk
    with warnings.catch_warnings():
        # What a text has beyond `longest` tokens is not looked at, so cropping loses nothing that is measured.
        warnings.filterwarnings("ignore", "kept only|cropped", TextWarning)
        try:
            return encode(texts, encoder, max_tokens=longest + 1, **options)
        except InputError:
            return encode(texts, encoder, max_tokens=longest, **options)


def padded_tokens(texts: list[str], encoder: str, longest: int = PUBLISHED_LENGTH) -> list[Tokens]:
    """Texts as the published runs have them: the embedding layer's output with [PAD] rows up to 256 tokens, of which
    the first `longest` are kept."""
    found = find_encoder(encoder, None, torch.device("cpu"))
    if not isinstance(found, PretrainedEncoder):
        raise InputError(f"padding as published needs a pre-trained encoder; {encoder!r} has no padding token")
    kept = (tokens[:longest] for tokens in found.padded(texts, PUBLISHED_LENGTH))
    return [replace(tokens, X=normalize_rows(tokens.X), normalized=True) for tokens in kept]
