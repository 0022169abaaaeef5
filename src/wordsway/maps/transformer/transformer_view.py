"""The view of a random transformer: what of the first layer, and of a causal text's beginning, no move can change.

Index conventions: p rows come before the first moved token of a causal text (else p = 0), s = n - p are run for every
delta; h heads of e coordinates. In the first block only the moved tokens have new queries, keys and values. A row that
stays sees all unmoved tokens as one, as in `attention_view`: with r_j the average of their values and w_jk the weights
of the moved tokens, it gets r_j + sum_k w_jk (v_k - r_j), at a cost of m instead of n. From the second block on all
rows move, and a causal text's first p rows are keys and values that are kept.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.ascents import LAYERED, Ascent
from wordsway.maps.attention.scores.base import PooledScore
from wordsway.maps.base import InnerProducts, View
from wordsway.maps.transformer.random_transformer import Transformer
from wordsway.support.plain_checks import check_tokens

_BATCH_BYTES = 2**27  # of activations of all layers that a batch of deltas keeps for its gradient: bounds memory


class TransformerView(View):
    """One text through all layers, as far as it can change."""

    costly = True

    def __init__(
        self,
        phi: Transformer,
        X: Float[Tensor, "n d"],
        tokens: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.phi, self.X, self.tokens = phi, X, check_tokens(tokens, len(X))
        self.dtype, self.device = dtype, device
        self.first = min(self.tokens) if phi.recipe.causal else 0  # p
        self.blocks = phi.weights(torch.empty(0, dtype=dtype, device=device))
        x = phi.enter(X.to(device, dtype))
        self._input = x[self.first :]
        self._places = torch.tensor(self.tokens, device=device)
        self._past: list[tuple[Tensor, Tensor]] = []
        with torch.no_grad():
            self._prepare(x)
            for block in self.blocks:  # the text as it is, once
                q, k, v = phi.project(block, x)
                self._past.append((k[..., : self.first, :], v[..., : self.first, :]))
                x = phi.leave(block, x, phi.attend(q, k, v))
            self._base = self._run(torch.zeros(1, len(self.tokens), X.shape[1], dtype=dtype, device=device))[0]
        # phi(X) in float64 on the CPU, (n, d): what changes are relative to, and what upper bounds start from
        self.base_rows = (phi(X) if dtype != torch.float64 else x).to("cpu", torch.float64)
        self.base_norm = float(self.base_rows.norm())

    def _prepare(self, x: Float[Tensor, "n d"]) -> None:
        """Of the first block, all that does not depend on a move."""
        phi, index = self.phi, self._places
        q, k, v = phi.project(self.blocks[0], x)
        self._whole = (q, k, v)
        stay = torch.ones(len(x), dtype=torch.bool, device=x.device)
        stay[index] = False
        places = torch.arange(len(x), device=x.device)
        self._pooled = self._rest = None
        if not isinstance(phi.score, PooledScore) or not bool(stay.any()):
            return
        logits = phi.sight.hide(q @ k[:, stay].mT, places, places[stay])
        self._pooled, self._rest = phi.score.pool(logits), phi.score.normalize(logits) @ v[:, stay]
        self._pooled[:, index], self._rest[:, index] = 0.0, 0.0  # moved rows are computed afresh
        hidden = phi.sight.hide(torch.zeros(len(x), len(index), dtype=x.dtype, device=x.device), places, index)
        self._hidden = hidden.masked_fill(~stay[:, None], -torch.inf)

    def _first_block(self, rows: Float[Tensor, "b m d"]) -> Float[Tensor, "b h s e"]:
        """Compute the first block's attention for all rows, when the moved ones enter it as `rows`."""
        phi, index = self.phi, self._places
        q, k, v = phi.project(self.blocks[0], rows, index)  # shape: (b, h, m, e)
        old_q, old_k, old_v = (part.expand(len(rows), *part.shape) for part in self._whole)
        keys, values = old_k.index_copy(-2, index, k), old_v.index_copy(-2, index, v)
        if self._pooled is None or self._rest is None or not isinstance(phi.score, PooledScore):
            return phi.attend(old_q.index_copy(-2, index, q)[..., self.first :, :], keys, values)
        logits = old_q @ k.mT + self._hidden  # shape: (b, h, n, m)
        w = phi.score.shares(self._pooled[..., None], logits)
        seen = self._rest + w @ v - w.sum(-1, keepdim=True) * self._rest
        places = torch.arange(len(self.X), device=index.device)
        own = phi.score.normalize(phi.sight.hide(q @ keys.mT, index, places)) @ values
        return seen.index_copy(-2, index, own)[..., self.first :, :]

    def _run(self, delta: Float[Tensor, "b m d"]) -> Float[Tensor, "b features"]:
        phi, where = self.phi, self._places - self.first
        rows = self._input[where] + delta
        x = self._input.expand(len(delta), *self._input.shape).index_copy(-2, where, rows)
        x = phi.leave(self.blocks[0], x, self._first_block(rows))
        places = torch.arange(self.first, len(self.X), device=x.device)
        for block, (past_k, past_v) in zip(self.blocks[1:], self._past[1:], strict=True):
            q, k, v = phi.project(block, x, places)
            k = torch.cat([past_k.expand(len(k), *past_k.shape), k], -2)
            v = torch.cat([past_v.expand(len(v), *past_v.shape), v], -2)
            x = phi.leave(block, x, phi.attend(q, k, v))
        return x.flatten(1)

    def ascent(self) -> Ascent:
        return LAYERED

    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        flat = delta.reshape(-1, *delta.shape[-2:])
        parts = [(self._run(part) - self._base).square().sum(-1) for part in flat.split(self._size)]
        return torch.cat(parts).view(delta.shape[:-2])

    def change(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch features"]:
        flat = delta.reshape(-1, *delta.shape[-2:])
        late = torch.cat([self._run(part) - self._base for part in flat.split(self._size)])
        before = late.new_zeros(len(late), self.first * self.X.shape[1])
        return torch.cat([before, late], 1).reshape(*delta.shape[:-2], -1)

    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        fixed = targets.to(self.device, self.dtype)
        return lambda delta: self.change(delta) @ fixed.T

    def starts(self) -> Float[Tensor, "s m d"]:
        """The proof's direction: along which the first layer's scores for the token grow together, over all heads; the
        same with the token's own direction."""
        q, d = self._whole[0], self.X.shape[1]
        keys = self.blocks[0].qkv[:, d : 2 * d].unflatten(-1, (len(q), -1))  # shape: (d, h, e)
        pull = torch.einsum("dhe,he->d", keys, q.sum(1)).expand(len(self.tokens), d)
        own = self._input[self._places - self.first]
        pull, own = (v / v.norm(dim=-1, keepdim=True).clamp(min=1e-30) for v in (pull, own))
        return torch.stack([pull + own, pull, own])

    @property
    def base_drift(self) -> float:
        """By how much phi(X), as it is computed here, differs from what it is in float64."""
        return float((self._base.to("cpu", torch.float64) - self.base_rows[self.first :].flatten()).norm())

    @property
    def _size(self) -> int:
        return max(1, _BATCH_BYTES // self.bytes_per_evaluation)

    @property
    def bytes_per_evaluation(self) -> int:
        """With its gradient: the activations of all layers."""
        recipe, (n, d) = self.phi.recipe, self.X.shape
        s = n - self.first
        layer = s * d * (12 + 2 * recipe.mlp_ratio) + 3 * recipe.heads * s * n
        return self.dtype.itemsize * layer * recipe.depth
