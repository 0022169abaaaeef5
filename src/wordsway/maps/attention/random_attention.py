"""RAF and its variants: score(X W X^T / (temperature sqrt(d))) X, with one head or several, for all tokens or some.

Linear attention, whose weights are no function of such logits, is a map of its own: `kernel`."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention import heads as several_heads
from wordsway.maps.attention import one_token
from wordsway.maps.attention.attention_view import ROW_BLOCK, AttentionView, Sight, Text
from wordsway.maps.attention.heads import AttentionText, HeadsView
from wordsway.maps.attention.kernel import LinearAttention
from wordsway.maps.attention.layer import AttentionLayer, check_weights, draw_factors, head_rank
from wordsway.maps.attention.scores.base import PooledScore, find
from wordsway.maps.base import PlainView, Prepared, Unshared, View
from wordsway.maps.recipe_numbers import check_temperature
from wordsway.support.errors import InputError
from wordsway.support.names import SCORES
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public
from wordsway.support.seeds import normal

LINEAR = "linear"  # given as a score: the recipe `LinearAttention`


@public
@dataclass(frozen=True)
class RandomAttention:
    """A recipe: W (d, d) with independent N(0, 1/d) entries.

    `score` is "softmax", "relu", "relu2" (squared), "sigmoid", "softplus", "sparsemax", "entmax" (1.5) or one of your
    own, MODULE:NAME, each over logits divided by `temperature` and with weights that sum to 1; "linear" gives the map
    of the recipe `LinearAttention`. With `rank`, W is sqrt(d / rank) Q K^T with Gaussian Q and K (d, rank); with
    several `heads`, each has a W of its own, of rank d / heads unless given, and the features are those of all heads.
    `causal` rows see what comes before them and themselves, `window` limits how far away; there are no value matrices.
    """

    score: str = "softmax"
    temperature: float = 1.0
    heads: int = 1
    rank: int | None = None
    causal: bool = False
    window: int | None = None

    def __post_init__(self) -> None:
        if self.score != LINEAR:
            SCORES.check(self.score)
        check_temperature(self.temperature)
        check_size(self.heads, "heads")
        if not isinstance(self.causal, bool):
            raise InputError(f"causal must be true or false, got {self.causal!r}", argument="causal")
        for name in ("rank", "window"):
            if getattr(self, name) is not None:
                check_size(getattr(self, name), name)
        if self.score == LINEAR and (self.temperature != 1.0 or self.causal or self.window is not None):
            raise InputError(
                "score='linear' takes no temperature, no causal and no window: it is here for whole texts",
                argument="score",
            )

    def check_width(self, d: int) -> None:
        """Raise an InputError unless texts may have d coordinates."""
        self.rank_for(d)

    def rank_for(self, d: int) -> int | None:
        """The rank of each head's W; None for a full Gaussian one."""
        return head_rank(self.heads, self.rank, d)

    def sample(self, d: int, seed: int = 0, *, n: int | None = None) -> "Sampled":
        """Draw W. A layer takes texts of any length, so n is not needed; it is checked where given."""
        if self.score == LINEAR:
            return LinearAttention(self.heads, self.rank).sample(d, seed, n=n)  # pyright: ignore[reportReturnType]
        d, seed = check_size(d, "d"), check_size(seed, "seed", least=0)
        if n is not None:
            check_size(n, "n")
        check_weights(self.heads, d)
        rank = self.rank_for(d)
        if rank is None:
            W = normal((d, d), seed, "random_attention", dtype=torch.float64) / math.sqrt(d)
            return Attention(self, W[None], n, seed)
        Q, K = draw_factors(self.heads, d, rank, seed)
        return Attention(self, Q @ K.mT * math.sqrt(d / rank), n, seed)

    @staticmethod
    def from_weights(
        W: Tensor,
        score: str = "softmax",
        temperature: float = 1.0,
        *,
        causal: bool = False,
        window: int | None = None,
    ) -> "Attention":
        """The layer with your own W: logits are x_j^T W x_k / (temperature sqrt(d)), so W is W_query W_key^T; a stack
        (heads, d, d) of them for several heads."""
        shape = tuple(W.shape)
        if W.dim() not in (2, 3) or shape[-2] != shape[-1] or 0 in shape or not W.is_floating_point():
            raise InputError(f"W must be a square floating-point matrix (d, d), or (heads, d, d), got shape {shape}")
        if not torch.isfinite(W).all():
            raise InputError("W has entries that are NaN or infinite")
        if score == LINEAR:
            raise InputError("linear attention is not given by a W: its weights are no function of x_j^T W x_k")
        stack = W.detach().to("cpu", torch.float64).reshape(-1, *shape[-2:])
        recipe = RandomAttention(score, temperature, len(stack), shape[-1] if len(stack) > 1 else None, causal, window)
        return Attention(recipe, stack, None, None)


class Attention(AttentionLayer):
    """RandomAttention with weights, kept in float64."""

    def __init__(
        self,
        recipe: RandomAttention,
        Ws: Float[Tensor, "h d d"],
        n: int | None,
        seed: int | None,
    ) -> None:
        self.recipe, self.Ws, self.copies = recipe, Ws, len(Ws)
        self.n, self.d, self.seed = n, Ws.shape[-1], seed
        self.score = find(recipe.score)
        self.sight = Sight(recipe.causal, recipe.window)
        self.scale = 1.0 / (recipe.temperature * math.sqrt(self.d))

    @property
    def W(self) -> Float[Tensor, "d d"]:
        """The weights of the one head."""
        if len(self.Ws) > 1:
            raise InputError(f"the layer has {len(self.Ws)} heads, each with a W of its own: Ws")
        return self.Ws[0]

    @cached_property
    def structured(self) -> bool:
        """Whether there is a cheap view: entmax and sparsemax have none, as moves change which tokens count at all."""
        return isinstance(self.score, PooledScore)

    def _head(self, X: Float[Tensor, "*b n d"], head: int) -> Float[Tensor, "*b n d"]:
        return torch.cat([self.score.normalize(logits) @ X for logits in self._logits(X, head)], -2)

    def _weights(self, X: Float[Tensor, "n d"], head: int, tokens: list[int]) -> Float[Tensor, " n"]:
        return torch.cat([self.score.normalize(logits)[:, tokens].sum(1) for logits in self._logits(X, head)])

    def _logits(self, X: Float[Tensor, "*b n d"], head: int) -> Iterator[Float[Tensor, "*b r n"]]:
        """Compute the logits of one head, by blocks of rows."""
        n = X.shape[-2]
        queries, places = X @ (self.Ws[head].to(X) * self.scale), torch.arange(n, device=X.device)
        step = max(1, ROW_BLOCK // n)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            yield self.sight.hide(queries[..., rows, :] @ X.mT, places[rows], places)

    def plain_bytes(self, n: int, d: int) -> float:
        logits = 4 * min(n * n, ROW_BLOCK + n)
        return 8.0 * ((5 + self.copies) * n * d + logits + d * d * self.copies)

    def make_prepared(self, X: Tensor, device: torch.device) -> Prepared:
        self.check_view(*X.shape)
        if not isinstance(self.score, PooledScore):
            return Unshared(self, X, device)
        texts = [Text(X, W * self.scale, self.score, device, self.sight) for W in self.Ws]
        return AttentionText(self, X, device, texts)

    def make_view(self, X: Tensor, tokens: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> View:
        n, d = X.shape
        need = dtype.itemsize * len(self.Ws) * (16.0 * n * d + 20.0 * n * n)
        return PlainView(self._batched, X, tokens, dtype, device, need)

    def sq_norms(self, views: Sequence[View]) -> Callable[[Tensor], Tensor]:
        if len(views[0].tokens) > 1 or not self.structured:
            return super().sq_norms(views)
        alike = [view for view in views if isinstance(view, AttentionView)]
        if len(alike) == len(views):
            return one_token.sq_norms(alike)
        return several_heads.sq_norms([view for view in views if isinstance(view, HeadsView)])

    def side_by_side(self, n: int, d: int, m: int) -> int:
        return super().side_by_side(n, d, m) if self.structured else 1

    def config(self) -> dict[str, Any]:
        recipe = self.recipe
        plain = recipe.score == "softmax" or SCORES.is_own(recipe.score)
        name = "raf" if plain else f"{recipe.score}-raf"
        more = {"heads": recipe.heads, "rank": recipe.rank, "causal": recipe.causal, "window": recipe.window}
        shown = {key: value for key, value in more.items() if value != getattr(RandomAttention(), key)}
        return {"map": name, "score": recipe.score, "temperature": recipe.temperature, **shown, "seed": self.seed}


if TYPE_CHECKING:
    Sampled = Attention  # of all scores but linear: a map with a W, which is what callers ask for
else:
    Sampled = AttentionLayer
