"""Linear (kernel) attention: weights in proportion to f(q_j) . f(k_k), with f = elu + 1.

Index conventions as in `attention_view`. Sums over tokens are all that a row needs, z = sum_k f(k_k) and S = sum_k
f(k_k) x_k^T: a row is f(q_j)^T S / f(q_j) . z, at a cost that grows with n, not n^2. When tokens move, the masses that
rows give to them, f(q_j) . f(k_k), change in proportion to nothing simpler, but the rest is the capture of a row as
under any other score.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention.attention_view import CaptureView
from wordsway.maps.attention.heads import HeadsView
from wordsway.maps.attention.layer import AttentionLayer, check_weights, draw_factors, head_rank
from wordsway.maps.base import View
from wordsway.support.devices import precise
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public


@public
@dataclass(frozen=True)
class LinearAttention:
    """A recipe: Gaussian Q and K (d, rank) for each head; the features are those of all heads. The rank is d / heads
    unless given. For whole texts: there is no causal or local variant."""

    heads: int = 1
    rank: int | None = None

    def __post_init__(self) -> None:
        check_size(self.heads, "heads")
        if self.rank is not None:
            check_size(self.rank, "rank")

    def check_width(self, d: int) -> None:
        """Raise an InputError unless texts may have d coordinates."""
        head_rank(self.heads, self.rank, d)

    def sample(self, d: int, seed: int = 0, *, n: int | None = None) -> "KernelAttention":
        """Draw Q and K. A layer takes texts of any length, so n is not needed; it is checked where given."""
        d, seed = check_size(d, "d"), check_size(seed, "seed", least=0)
        if n is not None:
            check_size(n, "n")
        check_weights(self.heads, d)
        rank = head_rank(self.heads, self.rank, d) or d
        return KernelAttention(self, draw_factors(self.heads, d, rank, seed), n, seed)


class KernelAttention(AttentionLayer):
    """LinearAttention with weights, kept in float64."""

    def __init__(
        self,
        recipe: LinearAttention,
        factors: tuple[Float[Tensor, "h d r"], Float[Tensor, "h d r"]],
        n: int | None,
        seed: int,
    ) -> None:
        self.recipe, self.factors, self.copies = recipe, factors, recipe.heads
        self.n, self.d, self.seed = n, factors[0].shape[1], seed

    def _head(self, X: Float[Tensor, "*b n d"], head: int) -> Float[Tensor, "*b n d"]:
        return kernel_attention(X, self.factors[0][head].to(X), self.factors[1][head].to(X))

    def _weights(self, X: Float[Tensor, "n d"], head: int, tokens: list[int]) -> Float[Tensor, " n"]:
        queries, keys = (positive(X @ part[head].to(X)) for part in self.factors)
        return (queries @ keys[tokens].T).sum(1) / (queries @ keys.sum(0))

    def plain_bytes(self, n: int, d: int) -> float:
        return 8.0 * ((5 + self.copies) * n * d + d * d * self.copies)

    def make_view(self, X: Tensor, tokens: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> View:
        self.check_view(*X.shape)
        factors = zip(*self.factors, strict=True)
        heads = [KernelView(X, Q, K, tokens, device, dtype) for Q, K in factors]
        return heads[0] if len(heads) == 1 else HeadsView(heads)

    def config(self) -> dict[str, Any]:
        more = {"heads": self.recipe.heads, "rank": self.recipe.rank}
        shown = {key: value for key, value in more.items() if value != getattr(LinearAttention(), key)}
        return {"map": "linear-raf", **shown, "seed": self.seed}


def kernel_attention(
    X: Float[Tensor, "*b n d"], Q: Float[Tensor, "d r"], K: Float[Tensor, "d r"]
) -> Float[Tensor, "*b n d"]:
    """Compute one head by its definition."""
    queries, keys = positive(X @ Q), positive(X @ K)
    return queries @ (keys.mT @ X) / (queries @ keys.sum(-2)[..., None])


def positive(x: Tensor) -> Tensor:
    """elu(x) + 1."""
    return torch.nn.functional.elu(x) + 1


class KernelView(CaptureView):
    """The change of one head when m tokens move; everything fixed is computed in float64."""

    def __init__(
        self,
        X: Float[Tensor, "n d"],
        Q: Float[Tensor, "d r"],
        K: Float[Tensor, "d r"],
        tokens: tuple[int, ...],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.tokens, self.device, self.dtype = tokens, device, dtype
        self.X = X.detach().to("cpu", torch.float64)
        here = self.X.to(precise(device))
        Q, K, index = Q.to(here), K.to(here), list(tokens)
        stay = torch.ones(len(here), dtype=torch.bool, device=here.device)
        stay[index] = False
        self.x = here[index]
        queries, keys = positive(here @ Q), positive(here @ K)
        others, values = keys[stay], here[stay]
        total, sums = others.sum(0), others.T @ values  # of what stays: shapes (r), (r, d)
        mass = queries @ total
        self.rest = queries @ sums / mass[:, None] if len(others) else torch.zeros_like(here)
        own = queries @ keys[index].T  # shape: (j, k)
        self.old = own / (mass[:, None] + own.sum(1, keepdim=True))
        self.moved_rows = (self.rest + self.old @ self.x - self.old.sum(1, keepdim=True) * self.rest)[index]
        self.rest[index], self.old[index] = 0.0, 0.0

        def cast(tensor: Tensor) -> Tensor:
            return tensor.to(device, dtype)

        self._freeze(cast)
        self._stay, self._queries, self._mass = cast(stay), cast(queries), cast(mass)
        self._total, self._sums, self._moved_rows = cast(total), cast(sums), cast(self.moved_rows)
        self._Q, self._K = cast(Q), cast(K)
        self._direction = cast(Q @ K.T)

    def parts(self, delta: Tensor) -> tuple[Float[Tensor, "*batch m j"], Float[Tensor, "*batch m d"]]:
        new = self._x + delta
        keys, queries = positive(new @ self._K), positive(new @ self._Q)  # shape: (*batch, m, r)
        own = keys @ self._queries.T  # shape: (*batch, m, j)
        w = own / (self._mass + own.sum(-2, keepdim=True)) * self._stay
        among = queries @ keys.mT
        whole = queries @ self._total + among.sum(-1)
        fresh = (queries @ self._sums + among @ new) / whole[..., None] - self._moved_rows
        return w, fresh

    def starts(self) -> Float[Tensor, "s m d"]:
        """Give the direction along which all rows' masses for the token grow, alone and with the token's own one."""
        pull = (self.X.to(self.device, self.dtype) @ self._direction).sum(0).expand_as(self._x)
        pull = pull / pull.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        own = self._x / self._x.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        return torch.stack([pull, pull + own, 2 * pull + own, own, -own])

    @property
    def bytes_per_evaluation(self) -> int:
        n, d = self.X.shape
        return 12 * self.dtype.itemsize * (n + 2 * self._Q.shape[1] + d) * len(self.tokens)
