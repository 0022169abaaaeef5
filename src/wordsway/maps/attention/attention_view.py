"""The cheap view of an attention layer when a few tokens move.

Index conventions: j runs over all n rows (queries), k and l over the m moved tokens; delta (*batch, m, d). W is
scaled, so that logits are queries X^T = X keys^T with queries = X W, keys = X W^T; the logit of a token that a row does
not see is -inf.

For a row j that stays, all that stays can be kept as one token: its pool and its value r_j, the average of the unmoved
values under row j. A pool is a number that only the score reads (`scores/base.py`): `pooled` here. With w_jk the new
and b_jk the old weights of the moved tokens, row j changes by
    sum_k w_jk delta_k + (w_jk - b_jk) (x_k - r_j),
whose squared norm needs inner products only: O(m n d) for all rows. The m moved rows are computed afresh; in the
formulas above they are switched off by a pool so large that they give no weight to any moved token.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.ascents import Ascent, many_maxima
from wordsway.maps.attention import one_token
from wordsway.maps.attention.scores.base import PooledScore
from wordsway.maps.base import InnerProducts, View
from wordsway.support.devices import precise

ROW_BLOCK = 2**24  # logits that exist at once, in float64 (128 MiB), when a long text is prepared: bounds memory
_OFF = 1e30  # a pool beside which no score gives a token any weight
_FEW = 16  # moved tokens up to which inner products are cheaper than the rows themselves


@dataclass(frozen=True)
class Sight:
    """Which tokens a row sees: those before it and itself (`causal`), those at most `window` places away, or all."""

    causal: bool = False
    window: int | None = None

    @property
    def whole(self) -> bool:
        return self.window is None and not self.causal

    def hide(self, logits: Float[Tensor, "*batch r k"], rows: Tensor, tokens: Tensor) -> Float[Tensor, "*batch r k"]:
        """Logits of some rows for some tokens, given by their places, with -inf for what is not seen."""
        if self.whole:
            return logits
        gap = rows[:, None] - tokens
        hidden = torch.zeros_like(gap, dtype=torch.bool)
        if self.causal:
            hidden |= gap < 0
        if self.window is not None:
            hidden |= gap.abs() > self.window
        return logits.masked_fill(hidden, -math.inf)


class Text:
    """A text under one head, in float64: what all of its views share, in any precision."""

    def __init__(
        self,
        X: Float[Tensor, "n d"],
        W: Float[Tensor, "d d"],
        score: PooledScore,
        device: torch.device,
        sight: Sight | None = None,
    ) -> None:
        self.score, self.device = score, device
        self.sight = sight or Sight()
        self.source = X.detach().to("cpu", torch.float64)
        self.X = self.source.to(precise(device))
        self.W = W.to(self.X.device)
        self.queries, self.keys = self.X @ self.W, self.X @ self.W.T
        self.sizes = [len(X), len(X), X.shape[1]]
        self.places = torch.arange(len(X), device=self.X.device)

    @cached_property
    def bend(self) -> float:
        """The largest |delta W delta| over unit delta: how far a token's logit for itself is from linear in a move."""
        return float(torch.linalg.eigvalsh((self.W + self.W.T) / 2).abs().amax())


class CastText:
    """A text under one head, cast to where the search runs and to its precision: what views of that precision share."""

    def __init__(self, text: Text, dtype: torch.dtype) -> None:
        self.text, self.dtype = text, dtype
        # One product with delta gives everything linear in it that all views need: A_j . delta, W x_j . delta, delta W.
        self.linear = self(torch.cat([text.queries, text.keys, text.W.T])).T
        self.X = self(text.X)

    def __call__(self, tensor: Tensor) -> Tensor:
        """Cast any other tensor in the same way."""
        return tensor.to(self.text.device, self.dtype)


class CaptureView(View):
    """A view of attention in which rows that stay give weights w to the moved tokens, and rows that move are computed
    afresh. How the two come about is left to `parts`; the rest is the same for all."""

    x: Float[Tensor, "m d"]
    rest: Float[Tensor, "n d"]  # r_j, 0 for moved rows
    old: Float[Tensor, "n m"]  # b_jk
    moved_rows: Float[Tensor, "m d"]

    @abstractmethod
    def parts(self, delta: Tensor) -> tuple[Float[Tensor, "*batch m j"], Float[Tensor, "*batch m d"]]:
        """The weights that all rows give to the moved tokens (moved rows: none), and the change of the moved rows."""

    def _freeze(self, cast: Callable[[Tensor], Tensor]) -> None:
        """Derive all else from the rest, old and moved rows, and cast it to the search's device and precision."""
        base = self.rest + self.old @ self.x - self.old.sum(1, keepdim=True) * self.rest
        self.base_norm = math.sqrt(float(base.square().sum() + self.moved_rows.square().sum()))
        self._x, self._rest, self._old = cast(self.x), cast(self.rest), cast(self.old.T)
        self._index = torch.tensor(list(self.tokens), device=self.device)
        self._cast = cast

    @cached_property
    def _gram(self) -> Float[Tensor, "k l j"]:
        """(x_k - r_j) . (x_l - r_j)."""
        cross = self.x @ self.rest.T  # shape: (k, j)
        gram = (self.x @ self.x.T)[..., None] - cross[:, None] - cross[None] + self.rest.square().sum(1)
        return self._cast(gram)

    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        if len(self.tokens) > _FEW:
            return self.change(delta).square().sum(-1)
        w, fresh = self.parts(delta)
        e = w - self._old
        dd, dx, dr = delta @ delta.mT, delta @ self._x.T, delta @ self._rest.T
        total = (dd * (w @ w.mT) + 2 * dx * (w @ e.mT)).sum((-1, -2)) - 2 * (w * dr * e.sum(-2, keepdim=True)).sum(
            (-1, -2)
        )
        return total + torch.einsum("...kj,...lj,klj->...", e, e, self._gram) + fresh.square().sum((-1, -2))

    def change(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch features"]:
        w, fresh = self.parts(delta)
        e = (w - self._old).mT
        rows = w.mT @ delta + e @ self._x - e.sum(-1, keepdim=True) * self._rest
        return rows.index_add(-2, self._index, fresh).flatten(-2)

    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        rows = targets.to(self.device, self.dtype).unflatten(-1, tuple(self.X.shape))  # shape: (q, j, d)
        offsets = self._x @ rows.mT - (rows * self._rest).sum(-1)[:, None]  # (x_k - r_j) . target_j, shape: (q, k, j)

        def inner(delta: Tensor) -> Tensor:
            w, fresh = self.parts(delta)
            along = delta[..., None, :, :] @ rows.mT  # shape: (*batch, q, k, j)
            stay = (w[..., None, :, :] * along + (w - self._old)[..., None, :, :] * offsets).sum((-1, -2))
            return stay + (fresh[..., None, :, :] * rows[:, self._index]).sum((-1, -2))

        return inner


class AttentionView(CaptureView):
    """The change of one attention layer when m tokens move; everything fixed is computed in float64."""

    def __init__(self, cast: CastText, tokens: tuple[int, ...]) -> None:
        self.cast, self.text, self.tokens = cast, cast.text, tokens
        text, self.score = cast.text, cast.text.score
        self.X, self.dtype, self.device = text.source, cast.dtype, text.device
        X, index = text.X, list(tokens)
        self.stay = torch.ones(len(X), dtype=torch.bool, device=X.device)
        self.stay[index] = False
        self.x = X[index]
        self.rest, self.pooled = _unmoved(text, self.stay)
        self.rest[index], self.pooled[index] = 0.0, _OFF
        # shape: (j, k)
        self.logits = text.sight.hide(text.queries @ self.x.T, text.places, text.places[index])
        self.old = self._weights(self.pooled, self.logits)
        # shape: (k, n)
        self.row_logits = text.sight.hide(text.queries[index] @ X.T, text.places[index], text.places)
        self.moved_rows = self.score.normalize(self.row_logits) @ X
        self._freeze(cast)
        self._pooled, self._logits = cast(self.pooled), cast(self.logits.T)
        self._row_logits, self._moved_rows = cast(self.row_logits), cast(self.moved_rows)

    @cached_property
    def _single(self) -> Callable[[Tensor], Tensor]:
        evaluate = one_token.sq_norms([self])
        return lambda delta: evaluate(delta[None])[0]

    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        return self._single(delta) if len(self.tokens) == 1 else super().sq_norm(delta)

    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        return one_token.inner_products(self, targets) if len(self.tokens) == 1 else super().inner_products(targets)

    def parts(self, delta: Tensor) -> tuple[Float[Tensor, "*batch m j"], Float[Tensor, "*batch m d"]]:
        s, to_keys, dW = (delta @ self.cast.linear).split(self.text.sizes, -1)
        w = self._weights(self._pooled, (self._logits + s).mT).mT
        both = s[..., self._index].mT + dW @ delta.mT  # what a moved row gains for a moved token, beyond `to_keys`
        weights = self.score.normalize((self._row_logits + to_keys).index_add(-1, self._index, both))
        fresh = weights @ self.cast.X + weights[..., self._index] @ delta - self._moved_rows
        return w, fresh

    def _weights(self, pooled: Tensor, logits: Tensor) -> Tensor:
        """The weights of the moved tokens, (..., j, m), beside all others pooled into one."""
        several = logits.shape[-1] > 1
        return (self.score.shares if several else self.score.share)(pooled[..., None], logits)

    def ascent(self) -> Ascent:
        """Many maxima; where the score silences tokens, they lie on ridges."""
        return many_maxima(self.X.numel(), costly=False, ridges=self.score.silences)

    def starts(self) -> Float[Tensor, "s m d"]:
        """The proof's direction, sum_j A_j, along which the scores of all rows grow together; the same for fewer rows,
        since a long text cannot be captured whole: the half, quarter, ... that are nearest to being captured. Each also
        with the token's own direction, along which its value grows. Then ways for its row to turn away from all other
        tokens, and sums of these."""
        nearest = self.logits.amax(1)
        reached = self.stay & ~nearest.isneginf()
        queries = self.text.queries[reached][self.score.lead(self.pooled, nearest)[reached].argsort(descending=True)]
        own = self._unit(self.text.X[list(self.tokens)])
        pull = self._unit(queries.sum(0))
        found = [pull, pull + own]
        # As many for every token, so that they can be searched side by side, though fewer rows may see some of them.
        parts = [max(1, len(queries) >> k) for k in range(1, 16) if int(self.stay.sum()) >> k]
        found += [2 * self._unit(queries[:part].sum(0)) + own for part in parts]
        for away in (self._unit(v) for v in self._away()):
            found += [away, away + own, away + pull, away + own + pull]
        return self.cast(torch.stack([*found, 2 * pull + own, own]))

    def _unit(self, directions: Tensor) -> Float[Tensor, "m d"]:
        size = directions.norm(dim=-1, keepdim=True).clamp(min=1e-300)
        return (directions / size).expand(len(self.tokens), -1)

    def _away(self) -> list[Float[Tensor, "_ d"]]:
        """Downhill for the sum of a moved row's logits to the unmoved tokens. Where the score silences: the
        shortest delta that takes them all to -1 and, to first order, the row's logit to itself to 4, so that the
        row keeps nothing but itself; and one that settles for less, for when that one is too long."""
        W, seen = self.text.W, self.stay & ~self.row_logits.isneginf()  # shape: (m, n)
        if not self.score.silences:
            return [-torch.stack([self.text.keys[others].sum(0) for others in seen])]
        found = []
        for ridge in (1e-6, 0.5):
            deltas = []
            for logits, token, others in zip(self.row_logits, self.tokens, seen, strict=True):
                both = torch.cat([self.text.keys[others], ((W + W.T) @ self.text.X[token])[None]])
                wanted = torch.cat([-1 - logits[others], (4 - logits[token])[None]])
                deltas.append(_ridge(both, wanted, ridge))
            found.append(torch.stack(deltas))
        return found

    @property
    def bytes_per_evaluation(self) -> int:
        return 12 * self.dtype.itemsize * sum(self.text.sizes) * len(self.tokens)


def _unmoved(text: Text, stay: Tensor) -> tuple[Tensor, Tensor]:
    """For each row, the average r_j of the unmoved values under its weights renormalised to them, and their pool; by
    blocks of rows, so that n^2 numbers never exist at once."""
    queries, values, places = text.queries, text.X[stay], text.places[stay]
    rest, pooled = torch.empty_like(queries), queries.new_empty(len(queries))
    step = max(1, ROW_BLOCK // max(1, len(values)))
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        logits = text.sight.hide(queries[rows] @ values.T, text.places[rows], places)
        rest[rows] = text.score.normalize(logits) @ values
        pooled[rows] = text.score.pool(logits)
    return rest, pooled


def _ridge(rows: Float[Tensor, "r d"], wanted: Float[Tensor, " r"], ridge: float) -> Float[Tensor, " d"]:
    """A short delta with rows @ delta close to `wanted`, from the smaller Gram matrix; `ridge` is against its mean."""
    tall = len(rows) > rows.shape[1]
    gram = rows.T @ rows if tall else rows @ rows.T
    gram.diagonal().add_(ridge * gram.diagonal().mean())
    return torch.linalg.solve(gram, rows.T @ wanted) if tall else torch.linalg.solve(gram, wanted) @ rows
