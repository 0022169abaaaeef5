"""An attention layer's view when one token moves: values and gradients by hand, in one pass.

A search evaluates little else, and for it the bookkeeping of automatic differentiation costs more than the arithmetic.

Index conventions: g runs over views of one text that are evaluated side by side, b over the deltas of each, j over
rows, q over the targets of inner products. The formulas are those of `attention_view`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from wordsway.maps.base import InnerProducts

if TYPE_CHECKING:
    from wordsway.maps.attention.attention_view import AttentionView, CastText


@dataclass(frozen=True)
class _Pack:
    """g views of one text, with one moved token each, side by side."""

    cast: "CastText"
    pooled: Float[Tensor, "g 1 j"]
    logits: Float[Tensor, "g 1 j"]
    old: Float[Tensor, "g 1 j"]
    gram: Float[Tensor, "g 1 j"]
    rest: Float[Tensor, "g j d"]
    x: Float[Tensor, "g 1 d"]
    row_logits: Float[Tensor, "g 1 j"]
    row: Float[Tensor, "g 1 d"]
    own: Float[Tensor, "g 1 j"]  # 1 at the moved token, else 0

    @staticmethod
    def of(views: Sequence["AttentionView"]) -> "_Pack":
        def stack(name: str) -> Tensor:
            return torch.stack([getattr(view, name) for view in views])

        cast = views[0].cast
        return _Pack(
            cast=cast,
            pooled=stack("_pooled")[:, None],
            logits=stack("_logits"),
            old=stack("_old"),
            gram=stack("_gram")[:, 0],
            rest=stack("_rest"),
            x=stack("_x"),
            row_logits=stack("_row_logits"),
            row=stack("_moved_rows"),
            own=torch.nn.functional.one_hot(stack("_index"), len(cast.X)).to(cast.dtype),
        )


class _Move(NamedTuple):
    """Intermediate results of a move: the weights w that rows give to the token, and the token's own row."""

    batch: Float[Tensor, "g b d"]
    dW: Float[Tensor, "g b d"]
    logits: Float[Tensor, "g b j"]
    w: Float[Tensor, "g b j"]
    row_logits: Float[Tensor, "g b j"]
    weights: Float[Tensor, "g b j"]
    self_weight: Float[Tensor, "g b 1"]
    row: Float[Tensor, "g b d"]


def _move(pack: _Pack, delta: Tensor) -> _Move:
    cast, score = pack.cast, pack.cast.text.score
    batch = delta.reshape(len(pack.x), -1, delta.shape[-1])
    s, to_keys, dW = (batch @ cast.linear).split(cast.text.sizes, -1)
    logits = pack.logits + s
    both = (s * pack.own).sum(-1, keepdim=True) + (dW * batch).sum(-1, keepdim=True)
    row_logits = pack.row_logits + to_keys + both * pack.own
    weights = score.normalize(row_logits)
    self_weight = (weights * pack.own).sum(-1, keepdim=True)
    row = weights @ cast.X + self_weight * batch - pack.row
    return _Move(batch, dW, logits, score.share(pack.pooled, logits), row_logits, weights, self_weight, row)


def _gradient(pack: _Pack, move: _Move, by_w: Float[Tensor, "g b j"], by_row: Float[Tensor, "g b d"]) -> Tensor:
    """The gradient in delta of a function with these gradients in w and in the token's row."""
    cast, score = pack.cast, pack.cast.text.score
    ds = score.share_slope(pack.pooled, move.logits, move.w) * by_w
    dweights = by_row @ cast.X.T + (by_row * move.batch).sum(-1, keepdim=True) * pack.own
    dlogits = score.pull_back(move.row_logits, move.weights, dweights)
    dboth = (dlogits * pack.own).sum(-1, keepdim=True)
    gradient = torch.cat([ds + dboth * pack.own, dlogits, dboth * move.batch], -1) @ cast.linear.T
    return gradient + dboth * move.dW + move.self_weight * by_row


def sq_norms(views: Sequence["AttentionView"]) -> Callable[[Tensor], Tensor]:
    """The function (g, *batch, 1, d) -> (g, *batch), squared changes for g views of one text that each move one
    token."""
    pack = _Pack.of(views)
    return lambda delta: _SquaredNorms.apply(delta, pack)  # pyright: ignore[reportReturnType]


class _SquaredNorms(torch.autograd.Function):
    @staticmethod
    def forward(ctx, delta: Tensor, pack: _Pack) -> Tensor:
        move = _move(pack, delta)
        batch, w = move.batch, move.w
        e = w - pack.old
        we = w * e
        dd = batch.square().sum(-1, keepdim=True)
        q = (batch * pack.x).sum(-1, keepdim=True) - batch @ pack.rest.mT
        ww = w.square().sum(-1, keepdim=True)
        total = (ww * dd).squeeze(-1) + (2 * we * q + e.square() * pack.gram).sum(-1) + move.row.square().sum(-1)
        if ctx.needs_input_grad[0]:
            by_w = 2 * w * dd + 2 * (w + e) * q + 2 * e * pack.gram
            gradient = _gradient(pack, move, by_w, 2 * move.row)
            gradient += 2 * (we.sum(-1, keepdim=True) * pack.x - we @ pack.rest) + 2 * ww * batch
            ctx.save_for_backward(gradient.reshape(delta.shape))
        return total.reshape(delta.shape[:-2])

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (gradient,) = ctx.saved_tensors
        return grads[0][..., None, None] * gradient, None


def inner_products(view: "AttentionView", targets: Float[Tensor, "q features"]) -> InnerProducts:
    """The function (*batch, 1, d) -> (*batch, q): inner products of the change with fixed targets."""
    pack = _Pack.of([view])
    rows = targets.to(view.device, view.dtype).unflatten(-1, tuple(view.X.shape))  # shape: (q, j, d)
    offsets = (rows * (pack.x - pack.rest)).sum(-1)  # (x_i - r_j) . target_j, shape: (q, j)
    own = rows[:, view.tokens[0]]
    return lambda delta: _Products.apply(delta, pack, rows, offsets, own)  # pyright: ignore[reportReturnType]


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx, delta: Tensor, pack: _Pack, rows: Tensor, offsets: Tensor, own: Tensor) -> Tensor:
        move = _move(pack, delta)
        # Row j changes by w_j (x_i + delta - r_j) - old_j (x_i - r_j).
        reach = (move.batch[0] @ rows.flatten(0, 1).T).unflatten(-1, offsets.shape) + offsets  # shape: (b, q, j)
        old = (offsets * pack.old[0]).sum(-1)
        inner = (reach @ move.w[0, :, :, None]).squeeze(-1) - old + move.row[0] @ own.T
        ctx.pack, ctx.move, ctx.rows, ctx.reach, ctx.own, ctx.shape = pack, move, rows, reach, own, delta.shape
        return inner.reshape(*delta.shape[:-2], len(rows))

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        move: _Move = ctx.move
        by = grads[0].reshape(-1, len(ctx.rows))  # shape: (b, q)
        by_w = (by[:, None] @ ctx.reach).squeeze(1)
        gradient = _gradient(ctx.pack, move, by_w[None], (by @ ctx.own)[None])[0]
        spread = by[:, :, None] * move.w[0, :, None]  # shape: (b, q, j)
        gradient = gradient + spread.flatten(1) @ ctx.rows.flatten(0, 1)
        return gradient.reshape(ctx.shape), None, None, None, None
