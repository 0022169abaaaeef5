"""RAF and ReLU-RAF: score(X W X^T / (temperature sqrt(d))) X."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.errors import InputError
from wordsway.maps import one_token, scores
from wordsway.maps.attention_view import ROW_BLOCK, AttentionView, Text
from wordsway.maps.base import FeatureMap, View
from wordsway.memory import require
from wordsway.seeds import normal
from wordsway.tokens import check_size, check_tokens

_FEATURE_BLOCK = 2**20  # numbers in the texts whose features are computed together: few enough to stay in cache


@dataclass(frozen=True)
class RandomAttention:
    """A recipe: W (d, d) with independent N(0, 1/d) entries; `score` is "softmax" or "relu"."""

    score: str = "softmax"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        scores.find(self.score)
        if not (isinstance(self.temperature, int | float) and 0 < self.temperature < math.inf):
            raise InputError(f"temperature must be a positive number, got {self.temperature!r}")

    def sample(self, d: int, seed: int = 0, *, n: int | None = None) -> "Attention":
        """Draw W. A layer takes texts of any length, so n is not needed; it is checked where given."""
        d, seed = check_size(d, "d"), check_size(seed, "seed", least=0)
        if n is not None:
            check_size(n, "n")
        require(24.0 * d * d, f"a {d} x {d} weight matrix", "use a smaller d")
        W = normal((d, d), seed, "random_attention", dtype=torch.float64) / math.sqrt(d)
        return Attention(self, W, n, seed)

    @staticmethod
    def from_weights(W: Tensor, score: str = "softmax", temperature: float = 1.0) -> "Attention":
        """The layer with your own W: logits are x_j^T W x_k / (temperature sqrt(d)), so W is W_query W_key^T."""
        if W.dim() != 2 or W.shape[0] != W.shape[1] or W.shape[0] < 1 or not W.is_floating_point():
            raise InputError(f"W must be a square floating-point matrix (d, d), got shape {tuple(W.shape)}")
        if not torch.isfinite(W).all():
            raise InputError("W has entries that are NaN or infinite")
        return Attention(RandomAttention(score, temperature), W.detach().to("cpu", torch.float64), None, None)


class Attention(FeatureMap):
    """RandomAttention with weights, kept in float64."""

    def __init__(self, recipe: RandomAttention, W: Float[Tensor, "d d"], n: int | None, seed: int | None) -> None:
        self.recipe, self.W, self.n, self.d, self.seed = recipe, W, n, W.shape[0], seed
        self.score = scores.find(recipe.score)
        self.scale = 1.0 / (recipe.temperature * math.sqrt(self.d))
        self._last: tuple[Tensor, tuple[torch.device, torch.dtype, int], Text] | None = None

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        self.check(X)
        n, d = X.shape
        require(self.plain_bytes(n, d), f"attention over n={n} tokens of d={d}", "use a shorter text")
        queries = X @ (self.W.to(X.device, X.dtype) * self.scale)
        blocks = queries.split(max(1, ROW_BLOCK // n))
        return torch.cat([self.score.normalize(block @ X.T) @ X for block in blocks])

    def features(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b nd"]:
        n, d = texts.shape[1:]
        if n * n > ROW_BLOCK or not len(texts):
            return super().features(texts)
        self.check(texts[0])
        W = self.W.to(texts.device, texts.dtype) * self.scale
        found = texts.new_empty(len(texts), n * d)
        size = max(1, _FEATURE_BLOCK // (n * d))
        for rows, out in zip(texts.split(size), found.split(size), strict=True):
            torch.matmul(self.score.normalize(rows @ W @ rows.mT), rows, out=out.view_as(rows))
        return found

    def plain_bytes(self, n: int, d: int) -> float:
        return 8.0 * (6 * n * d + 4 * min(n * n, ROW_BLOCK + n) + d * d)

    def view(
        self,
        X: Float[Tensor, "n d"],
        tokens: Sequence[int],
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> "AttentionView":
        self.check(X)
        n, d = X.shape
        numbers = 6 * n * d + 2 * d * d + 3 * min(n * n, ROW_BLOCK + n)
        require(
            8.0 * numbers + dtype.itemsize * (4 * n * d + d * d),
            f"a view of n={n} tokens of d={d}",
            "use a shorter text",
        )
        device = torch.device(device)
        return AttentionView(self._prepared(X, device, dtype), check_tokens(tokens, len(X)))

    def sq_norms(self, views: Sequence[View]) -> Callable[[Tensor], Tensor]:
        alike = [view for view in views if isinstance(view, AttentionView) and len(view.tokens) == 1]
        return one_token.sq_norms(alike) if len(alike) == len(views) else super().sq_norms(views)

    def _prepared(self, X: Float[Tensor, "n d"], device: torch.device, dtype: torch.dtype) -> Text:
        """What all tokens' views of a text share. The last one is kept, for as long as X is not written to."""
        key = (device, dtype, X._version)
        if self._last is None or self._last[0] is not X or self._last[1] != key:
            self._last = (X, key, Text(X, self.W * self.scale, self.score, device, dtype))
        return self._last[2]

    def config(self) -> dict[str, Any]:
        name = {"softmax": "raf", "relu": "relu-raf"}[self.recipe.score]
        return {
            "map": name,
            "score": self.recipe.score,
            "temperature": self.recipe.temperature,
            "seed": self.seed,
        }
