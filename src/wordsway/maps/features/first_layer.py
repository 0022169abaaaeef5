"""The first layer of random features, V of shape (rows, n d), seen through whole texts and through single tokens.

Index conventions: V = [V_0 ... V_{n-1}] with blocks V_i (rows, d); a text X gives V flat(X) = sum_i V_i x_i.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.gaussian import Budget, Dense, Gaussian, Lazy
from wordsway.support.devices import precise
from wordsway.support.memory import require
from wordsway.support.seeds import Key, normal

_RANK_TOLERANCE = 1e-12  # eigenvalues of a Gram matrix of texts below this share of the largest count as 0: rounding
# A text of which less than the first share is new is replaced by what is new of it, so that Gram matrices stay well
# conditioned: rounding errors of a Gram matrix would count as variance, of which the root is drawn. Below the second
# share it is known: rounding.
_NEAR, _SAME = 1e-2, 1e-10
_FEW = 64  # texts whose Gram matrix is cheap enough to compute anew, which is more precise than subtracting from it


class TextLayer(ABC):
    """The interface of a first layer of random features."""

    rows: int
    cols: int  # n d

    @abstractmethod
    def texts(self, X: Float[Tensor, "b n d"]) -> Float[Tensor, "b rows"]:
        """V flat(X) for whole texts, in float64 on the CPU."""

    @abstractmethod
    def block(self, token: int, d: int) -> Gaussian:
        """V_i: the part of V that meets one token of d coordinates."""

    @abstractmethod
    def to_dense(self) -> Float[Tensor, "rows nd"]:
        """V itself, in agreement with every answer before and after."""


class DenseTextLayer(TextLayer):
    """A first layer whose weights are given."""

    def __init__(self, weights: Float[Tensor, "rows nd"]) -> None:
        self.weights = weights
        self.rows, self.cols = weights.shape

    def texts(self, X: Float[Tensor, "b n d"]) -> Float[Tensor, "b rows"]:
        device = precise(self.weights.device)
        flat = X.flatten(1).to(device, torch.float64)
        parts = self.weights.split(max(1, 2**26 // self.cols))  # a float64 copy of all of V may not fit
        return torch.cat([flat @ part.to(device, torch.float64).T for part in parts], dim=1).cpu()

    def block(self, token: int, d: int) -> Gaussian:
        return Dense(self.weights[:, token * d : (token + 1) * d].contiguous())

    def to_dense(self) -> Float[Tensor, "rows nd"]:
        return self.weights


class LazyTextLayer(TextLayer):
    """V with independent N(0, 1/(n d)) entries, revealed by text and by token; exact in law in any order of questions.

    A *text* question reveals V flat(X) only. The first question about a token *opens* its block: V_i x_{t,i} is
    drawn for every text t seen so far, given all that is known (the parts of a text must add up to V flat(X_t): a
    bridge), and from then on V_i is a `Lazy` matrix of its own, independent of the others. What remains of each
    text is a sum over closed tokens, of which nothing else is ever revealed. So the state is: open blocks, and for
    the closed remainder a plain Gaussian regression through the Gram matrix of the remaining texts; where two of these
    are nearly the same, their difference stands for one of them. `Lazy` says what determines the values.
    """

    def __init__(self, rows: int, n: int, d: int, key: Key, budget: Budget, dtype: torch.dtype, device: torch.device):
        self.rows, self.cols, self.n, self.d = rows, n * d, n, d
        self.variance = 1.0 / (n * d)
        self.key, self.budget, self.dtype, self.device = key, budget, dtype, device
        self._asked: dict[bytes, int] = {}  # digests of the texts, in the order of their answers
        self._answers = torch.empty(0, rows, dtype=torch.float64)
        self._texts = torch.empty(0, n * d, dtype=torch.float64)  # closed parts of texts, or combinations of them
        self._remainder = self._answers  # V times these
        self._gram = torch.empty(0, 0, dtype=torch.float64)  # of these
        self._open: dict[int, Lazy] = {}

    def texts(self, X: Float[Tensor, "b n d"]) -> Float[Tensor, "b rows"]:
        X = X.to("cpu", torch.float64)
        digests = [hashlib.blake2b((x + 0.0).numpy().tobytes()).digest() for x in X]  # + 0.0: -0 is 0
        new = [k for k, digest in enumerate(digests) if digest not in self._asked]
        if new:
            start = len(self._answers)
            self._add(X[new])
            self._asked |= {digests[k]: start + offset for offset, k in reversed(list(enumerate(new)))}
        return self._answers[torch.tensor([self._asked[digest] for digest in digests])]

    def block(self, token: int, d: int) -> Gaussian:
        assert d == self.d, "the map checks the text's shape"
        if token not in self._open:
            self._open_block(token)
        return self._open[token]

    def to_dense(self) -> Float[Tensor, "rows nd"]:
        return torch.cat([self.block(token, self.d).to_dense() for token in range(self.n)], dim=1)

    def _closed(self, X: Tensor) -> Tensor:
        X = X.clone()
        X[:, list(self._open)] = 0.0
        return X.flatten(1)

    def _add(self, X: Float[Tensor, "b n d"]) -> None:
        self.budget.charge(16 * len(X) * self.rows)
        opened = torch.zeros(len(X), self.rows, dtype=torch.float64)
        for token, block in self._open.items():
            opened += block.mm(X[:, token].to(self.device, self.dtype)).cpu()
        start, closed = len(self._answers), self._closed(X)
        separated = _separate(self._texts, closed, _bordered(self._gram, closed @ self._texts.T, closed @ closed.T))
        new = separated.texts
        cross = new @ self._texts.T
        weights = cross @ _pinv(self._gram)
        covariance = new @ new.T - weights @ cross.T
        drawn = self._draw("text", start, covariance, new.square().sum(1))
        self._gram = _bordered(self._gram, cross, new @ new.T)
        self._texts = torch.cat([self._texts, new])
        self._remainder = torch.cat([self._remainder, weights @ self._remainder + drawn])
        self._answers = torch.cat([self._answers, separated.mix @ self._remainder + opened])

    def _open_block(self, token: int) -> None:
        block = Lazy(
            self.rows,
            self.d,
            self.variance**0.5,
            (*self.key, "block", token),
            self.budget,
            self.dtype,
            self.device,
        )
        rows = self._texts[:, token * self.d : (token + 1) * self.d]
        gram = rows @ rows.T
        weights = gram @ _pinv(self._gram)
        drawn = self._draw("bridge", token, gram - weights @ gram, gram.diagonal())
        answers = weights @ self._remainder + drawn
        if len(rows):
            left, sizes, directions = torch.linalg.svd(rows, full_matrices=False)
            keep = sizes > math.sqrt(_RANK_TOLERANCE) * sizes.amax()
            if keep.any():
                block.condition(directions[keep], (left[:, keep] / sizes[keep]).T @ answers)
        self._open[token] = block
        closed, remainder = self._closed(self._texts.unflatten(1, (self.n, self.d))), self._remainder - answers
        separated = _separate(closed[:0], closed, closed @ closed.T if len(closed) <= _FEW else self._gram - gram)
        self._texts, self._remainder = separated.texts, separated.values(remainder)
        changed = len(separated.plain) < len(closed)
        self._gram = self._texts @ self._texts.T if changed or len(closed) <= _FEW else self._gram - gram

    def _draw(
        self, what: str, index: int, covariance: Float[Tensor, "b b"], prior: Float[Tensor, " b"]
    ) -> Float[Tensor, "b rows"]:
        """b correlated Gaussian vectors of `rows` entries, with covariance/(n d) between them. What is left of the
        prior variances only by rounding counts as known."""
        values, vectors = torch.linalg.eigh(covariance)
        floor = _RANK_TOLERANCE * prior.amax() if len(prior) else 0.0
        root = vectors * (torch.where(values > floor, values, 0.0) * self.variance).sqrt()
        fresh = normal((len(covariance), self.rows), *self.key, what, index).to(torch.float64)
        return root @ fresh


def sample_dense(rows: int, n: int, d: int, key: Key, dtype: torch.dtype, device: torch.device | str) -> DenseTextLayer:
    """A first layer drawn at once."""
    require(
        rows * n * d * (dtype.itemsize + 4),
        f"a dense first layer of {rows} x {n * d}",
        "use lazy=True, which reveals weights only where they are asked for",
    )
    return DenseTextLayer(normal((rows, n * d), *key, "first").to(device, dtype).mul_((n * d) ** -0.5))


@dataclass(frozen=True)
class _Separated:
    """New texts, of which those that are near to combinations of others are replaced by what is new of them, at their
    own size. `mix` makes the new texts of the old ones and of these."""

    texts: Float[Tensor, "c p"]
    mix: Float[Tensor, "b both"]
    plain: list[int]  # new texts that stay as they are; they come first
    replaced: list[int]  # new texts of which only a part is new

    def values(self, values: Float[Tensor, "b rows"]) -> Float[Tensor, "c rows"]:
        """Values of a linear function at `texts`, given those at the new texts, where there are no old ones."""
        found = values[self.plain]
        for row in self.replaced:
            known, share = self.mix[row, : len(found)], self.mix[row, len(found)]
            found = torch.cat([found, ((values[row] - known @ found) / share)[None]])
        return found


def _separate(old: Float[Tensor, "a p"], new: Float[Tensor, "b p"], gram: Float[Tensor, "both both"]) -> _Separated:
    """Separate new texts from old ones and from each other; `gram` is of both, the old ones first."""
    a, near = len(old), _near(gram, len(old))
    plain = [k for k in range(len(new)) if a + k not in near]
    base = torch.cat([old, new[plain]])
    mix = torch.zeros(len(new), a + len(new), dtype=new.dtype)
    mix[plain, a + torch.arange(len(plain))] = 1.0
    if not near:
        return _Separated(new, mix, plain, [])
    flagged = [k - a for k in near]
    rest, sizes, inverse = new[flagged], new[flagged].norm(dim=1), _pinv(base @ base.T)
    for _ in range(3):  # one pass leaves rounding errors of the size of the texts
        part = rest @ base.T @ inverse
        mix[flagged, : len(base)] += part
        rest = rest - part @ base
    units, replaced = rest[:0], []
    for k, row, size in zip(flagged, rest, sizes, strict=True):
        along = units @ row
        left = row - along @ units
        again = units @ left
        left, along = left - again @ units, along + again
        mix[k, len(base) : len(base) + len(units)] = along / sizes[[flagged.index(j) for j in replaced]]
        if float(left.norm()) > _SAME * float(size):
            mix[k, len(base) + len(units)] = left.norm() / size
            units, replaced = torch.cat([units, (left / left.norm())[None]]), [*replaced, k]
    kept = units * sizes[[flagged.index(j) for j in replaced]][:, None]
    return _Separated(torch.cat([new[plain], kept]), mix[:, : len(base) + len(units)], plain, replaced)


def _near(gram: Float[Tensor, "both both"], old: int) -> list[int]:
    """Texts from place `old` on of which less than a share _NEAR is not a combination of those before them."""
    size = gram.diagonal().clamp(min=0).sqrt()
    left = gram / (size * size[:, None]).clamp(min=1e-300)
    factor, info = torch.linalg.cholesky_ex(left)
    if not int(info) and bool((factor.diagonal()[old:] > _NEAR).all()):
        return []
    near = []
    for k in range(len(left)):  # Cholesky, step by step, without the rows that are near to others
        if k >= old and not float(left[k, k]) > _NEAR**2:
            near.append(k)
        elif float(left[k, k]) > 0:
            left = left - left[:, k, None] * left[k] / left[k, k]
    return near


def _bordered(gram: Tensor, cross: Float[Tensor, "b a"], corner: Float[Tensor, "b b"]) -> Tensor:
    """A Gram matrix with b more rows."""
    return torch.cat([torch.cat([gram, cross.T], 1), torch.cat([cross, corner], 1)])


def _pinv(gram: Tensor) -> Tensor:
    if not len(gram):
        return gram
    return torch.linalg.pinv(gram, hermitian=True, rtol=_RANK_TOLERANCE)
