"""Gaussian matrices, drawn at once (`Dense`) or revealed only along the directions asked for (`Lazy`).

Index conventions: G has shape (rows, cols) and independent N(0, std^2) entries. Vectors come as rows of a batch:
`mm` takes (*batch, cols) to (*batch, rows), that is u -> G u; `rmm` takes (*batch, rows) to (*batch, cols), h -> G^T h.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.support.errors import TooLargeError
from wordsway.support.memory import show_bytes
from wordsway.support.seeds import Key, normal

_BLOCK = 16  # queries that are orthogonalised together: enough for matrix products, few enough to stay in cache


class Gaussian(ABC):
    """A linear layer G that can be asked for G u, for G^T h, and, at a price, for itself."""

    rows: int
    cols: int
    device: torch.device

    @abstractmethod
    def mm(self, u: Float[Tensor, "*batch cols"]) -> Float[Tensor, "*batch rows"]:
        """G u, differentiable in u."""

    @abstractmethod
    def rmm(self, h: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch cols"]:
        """G^T h, differentiable in h."""

    @abstractmethod
    def to_dense(self) -> Float[Tensor, "rows cols"]:
        """The whole matrix, in agreement with every answer given so far and from now on."""


class Dense(Gaussian):
    """A matrix that is held in memory. Products run in the dtype of the vector; the cast copies are kept."""

    def __init__(self, weights: Float[Tensor, "rows cols"]) -> None:
        self.weights, self.device = weights, weights.device
        self.rows, self.cols = weights.shape
        self._cast: Tensor = weights

    def mm(self, u: Float[Tensor, "*batch cols"]) -> Float[Tensor, "*batch rows"]:
        return u @ self._like(u).T

    def rmm(self, h: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch cols"]:
        return h @ self._like(h)

    def to_dense(self) -> Float[Tensor, "rows cols"]:
        return self.weights

    def _like(self, x: Tensor) -> Tensor:
        if self._cast.dtype != x.dtype or self._cast.device != x.device:
            self._cast = self.weights.to(x.device, x.dtype)
        return self._cast


@dataclass
class Budget:
    """A limit on the bytes of revealed directions that a family of lazy matrices may keep."""

    limit: int
    used: int = 0

    def charge(self, count: int) -> None:
        if self.used + count > self.limit:
            raise TooLargeError(
                f"the lazily revealed weights would need more than their limit of {show_bytes(self.limit)}; "
                f"sample the map with a larger memory_limit=, or ask for fewer tokens or a smaller budget="
            )
        self.used += count


@dataclass
class _Side:
    """Orthonormal directions asked on one side of G, one a row, with G's answers to them."""

    name: str
    dim: int
    basis: Tensor
    answers: Tensor
    count: int = 0
    asked: int = 0

    @property
    def known(self) -> tuple[Tensor, Tensor]:
        return self.basis[: self.count], self.answers[: self.count]

    def append(self, directions: Tensor, answers: Tensor) -> None:
        total = self.count + len(directions)
        if total > len(self.basis):
            capacity = min(max(_BLOCK, total, 2 * len(self.basis)), self.dim)
            self.basis = _grown(self.basis, self.count, capacity)
            self.answers = _grown(self.answers, self.count, capacity)
        self.basis[self.count : total] = directions
        self.answers[self.count : total] = answers
        self.count = total


def _grown(old: Tensor, count: int, capacity: int) -> Tensor:
    new = old.new_empty(capacity, old.shape[1])
    new[:count] = old[:count]
    return new


@dataclass
class Lazy(Gaussian):
    """A Gaussian matrix of which only what was asked for exists.

    Law: for any sequence of `mm`, `rmm` and `to_dense` calls, each chosen with knowledge of all earlier answers, the
    answers have exactly the joint law that a matrix with independent N(0, std^2) entries, drawn beforehand, would
    give (Lu, "Householder Dice", arXiv 2101.07464).

    What that means for values: they are a function of `key` *and of the queries in their order*. The same calls in the
    same order give the same numbers; another order gives another matrix of the same law. Within one object all answers
    belong to one matrix: a repeated query, or a combination of earlier ones, gets the same answer up to rounding in
    `dtype`, and `to_dense()` agrees with every answer before and after it. A query whose direction is known already
    still uses up its slot in the random stream. Differentiating through `mm` asks `rmm` questions in the backward pass,
    and these count as queries.

    How: keep orthonormal inputs P with G P, orthonormal outputs Q with Q^T G. For a unit u orthogonal to P,
    G u = Q (Q^T G u) + (I - Q Q^T) z with z fresh; for a new output the mirror image. T queries keep
    O((rows + cols) T) numbers and cost O((rows + cols) T) each.
    """

    rows: int
    cols: int
    std: float
    key: Key
    budget: Budget
    dtype: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        empty = torch.empty(0, 0, dtype=self.dtype, device=self.device)
        self._inputs = _Side("in", self.cols, empty.new_empty(0, self.cols), empty.new_empty(0, self.rows))
        self._outputs = _Side("out", self.rows, empty.new_empty(0, self.rows), empty.new_empty(0, self.cols))
        self._dense: Dense | None = None

    def mm(self, u: Float[Tensor, "*batch cols"]) -> Float[Tensor, "*batch rows"]:
        if self._dense is not None:
            return self._dense.mm(u)
        return _Multiply.apply(u, self, False)  # pyright: ignore[reportReturnType]

    def rmm(self, h: Float[Tensor, "*batch rows"]) -> Float[Tensor, "*batch cols"]:
        if self._dense is not None:
            return self._dense.rmm(h)
        return _Multiply.apply(h, self, True)  # pyright: ignore[reportReturnType]

    def to_dense(self) -> Float[Tensor, "rows cols"]:
        if self._dense is None:
            self.budget.charge(self.bytes_whole)
            p, gp = self._inputs.known
            q, qg = self._outputs.known
            fresh = self._fresh("rest", 0, (self.rows, self.cols))
            rest = fresh + (gp.T - fresh @ p.T) @ p
            self._dense = Dense(rest + q.T @ (qg - q @ rest))
        return self._dense.to_dense()

    def condition(self, inputs: Float[Tensor, "c cols"], answers: Float[Tensor, "c rows"]) -> None:
        """Take G u = answer as known for orthonormal inputs, before any query was made."""
        assert self._inputs.asked == self._outputs.asked == 0, "condition() comes before the first query"
        self._append(self._inputs, inputs.to(self.device, self.dtype), answers.to(self.device, self.dtype))

    @property
    def settled(self) -> bool:
        """Whether all of it is known, so that questions cost no memory any more."""
        return self._dense is not None

    @property
    def bytes_whole(self) -> int:
        return self.rows * self.cols * self.dtype.itemsize

    @property
    def bytes_per_query(self) -> int:
        return (self.rows + self.cols) * self.dtype.itemsize

    def _fresh(self, side: str, index: int, shape: tuple[int, ...]) -> Tensor:
        drawn = normal(shape, *self.key, side, index)
        return drawn.mul_(self.std).to(self.device, self.dtype)

    def _append(self, side: _Side, directions: Tensor, answers: Tensor) -> None:
        self.budget.charge(len(directions) * self.bytes_per_query)
        side.append(directions, answers)

    def _ask(self, near: _Side, far: _Side, vectors: Tensor) -> Tensor:
        # In the finer of both precisions: coarse vectors must not spoil a fine basis, nor the other way round.
        flat = vectors.reshape(-1, near.dim).to(torch.promote_types(vectors.dtype, self.dtype))
        parts = [self._ask_block(near, far, block) for block in flat.split(_BLOCK)]
        return torch.cat(parts).reshape(*vectors.shape[:-1], far.dim).to(vectors.dtype)

    def _ask_block(self, near: _Side, far: _Side, vectors: Tensor) -> Tensor:
        # shape: vectors (b, near.dim); basis (t, near.dim); answers (t, far.dim)
        basis, answers = (part.to(vectors.dtype) for part in near.known)
        coefficients = vectors @ basis.T
        rest = vectors - coefficients @ basis
        again = rest @ basis.T  # one pass leaves rounding errors of the size of `vectors` along the basis
        rest = rest - again @ basis
        reply = (coefficients + again) @ answers
        slots = range(near.asked, near.asked + len(vectors))
        near.asked += len(vectors)

        room = near.dim - near.count
        new, used = _orthonormal(rest, vectors.norm(dim=1), torch.finfo(self.dtype).eps, basis, room)
        if not used:
            return reply
        fresh = torch.stack([self._fresh(near.name, slots[k], (far.dim,)) for k in used])
        known_basis, known_answers = far.known
        direction = new.to(self.dtype)
        fresh += (direction @ known_answers.T - fresh @ known_basis.T) @ known_basis
        self._append(near, direction, fresh)
        return reply + (rest @ new.T) @ fresh.to(vectors.dtype)


def _orthonormal(rest: Tensor, scale: Tensor, eps: float, basis: Tensor, most: int) -> tuple[Tensor, list[int]]:
    """An orthonormal basis of the rows of `rest` that are not rounding noise against `scale`, and which rows gave it:
    orthogonal to `basis` too, and no more than `most`, as many as there are directions left.

    A row that is small against `scale` carries rounding errors along `basis` that are large against itself. So each
    direction is made orthogonal once more after it was given unit length; one of which little is left was noise.
    """
    found = rest.new_empty(0, rest.shape[1])
    used: list[int] = []
    for k, row in enumerate(rest):
        if len(used) == most:
            break
        row = row - (row @ found.T) @ found
        size = row.norm()
        if not size > 64 * eps * scale[k]:
            continue
        for _ in range(2):
            unit = row / size
            row = unit - (unit @ basis.T) @ basis
            row = row - (row @ found.T) @ found
            size = row.norm()
            if size < 0.1:
                break
        if size >= 0.1:
            found = torch.cat([found, row[None] / size])
            used.append(k)
    return found, used


class _Multiply(torch.autograd.Function):
    """u -> G u (or G^T u); the derivative is the transposed query, which reveals more of G."""

    @staticmethod
    def forward(ctx, vectors: Tensor, matrix: Lazy, transposed: bool) -> Tensor:
        ctx.matrix, ctx.transposed = matrix, transposed
        sides = (matrix._outputs, matrix._inputs) if transposed else (matrix._inputs, matrix._outputs)
        return matrix._ask(*sides, vectors)

    @staticmethod
    def jvp(ctx, *tangents: Tensor | None) -> Tensor:
        same = ctx.matrix.rmm if ctx.transposed else ctx.matrix.mm
        assert tangents[0] is not None
        return same(tangents[0])

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None]:
        other = ctx.matrix.mm if ctx.transposed else ctx.matrix.rmm
        return other(grads[0]), None, None
