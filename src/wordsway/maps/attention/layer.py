"""An attention layer with its weights drawn: what all of them share, whatever makes the weights of a row."""

import math
from abc import abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention.attention_view import ROW_BLOCK
from wordsway.maps.base import FeatureMap
from wordsway.support.errors import InputError
from wordsway.support.memory import require
from wordsway.support.seeds import normal

_FEATURE_BLOCK = 2**20  # numbers in the texts whose features are computed together: few enough to stay in cache


class AttentionLayer(FeatureMap):
    """One layer with `copies` heads, each of which averages the rows of a text. Of several heads, phi(X) is
    (heads, n, d)."""

    @abstractmethod
    def _head(self, X: Float[Tensor, "*b n d"], head: int) -> Float[Tensor, "*b n d"]:
        """Compute one head."""

    @abstractmethod
    def _weights(self, X: Float[Tensor, "n d"], head: int, tokens: list[int]) -> Float[Tensor, " n"]:
        """Compute what the rows of one head give to some tokens."""

    @abstractmethod
    def plain_bytes(self, n: int, d: int) -> float: ...

    def __call__(self, X: Float[Tensor, "n d"]) -> Tensor:
        self.check(X)
        n, d = X.shape
        require(self.plain_bytes(n, d), f"attention over n={n} tokens of d={d}", "use a shorter text")
        return torch.stack([self._head(X, head) for head in range(self.copies)]).squeeze(0)

    def attention_to(self, X: Float[Tensor, "n d"], tokens: Sequence[int]) -> Float[Tensor, " n"]:
        chosen = list(tokens)
        return torch.stack([self._weights(X, head, chosen) for head in range(self.copies)]).mean(0)

    def features(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
        n, d = texts.shape[1:]
        if n * n > ROW_BLOCK or not len(texts):
            return super().features(texts)
        self.check(texts[0])
        computed = texts.new_empty(len(texts), self.copies, n, d)
        size = max(1, _FEATURE_BLOCK // (n * d))
        for rows, out in zip(texts.split(size), computed.split(size), strict=True):
            for head in range(self.copies):
                out[:, head] = self._head(rows, head)
        return computed.flatten(1)

    def _batched(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
        """Compute features differentiably, a few texts at a time."""
        return torch.stack([self._head(texts, head) for head in range(self.copies)], 1).flatten(1)

    def side_by_side(self, n: int, d: int, m: int) -> int:
        return max(1, super().side_by_side(n, d, m) // self.copies)

    def check_view(self, n: int, d: int) -> None:
        """Raise an InputError where a view of a text would not fit in memory."""
        numbers = 10 * n * d + 3 * d * d + 3 * min(n * n, ROW_BLOCK + n)  # in float64, as the last digits are
        require(8.0 * self.copies * numbers, f"a view of n={n} tokens of d={d}", "use a shorter text")


def head_rank(heads: int, rank: int | None, d: int) -> int | None:
    """Choose the rank of each head's weights; None for a full matrix."""
    if rank is not None:
        if rank > d:
            raise InputError(f"rank={rank} is more than the d={d} coordinates of a token", argument="rank")
        return rank
    if heads > 1:
        if d % heads:
            raise InputError(f"heads={heads} does not divide d={d}; give a rank, or other numbers", argument="heads")
        return d // heads
    return None


def check_weights(heads: int, d: int) -> None:
    """Raise an InputError where weights would not fit in memory."""
    require(24.0 * d * d * heads, f"{heads} weight matrices of {d} x {d}", "use a smaller d")


def draw_factors(heads: int, d: int, rank: int, seed: int) -> tuple[Float[Tensor, "h d r"], Float[Tensor, "h d r"]]:
    """Draw Gaussian Q and K with entries of variance 1/d, for each head."""
    drawn = [normal((2, d, rank), seed, "low_rank", head, dtype=torch.float64) for head in range(heads)]
    Q, K = (torch.stack(drawn) / math.sqrt(d)).unbind(1)
    return Q, K
