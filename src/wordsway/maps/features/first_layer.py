"""The first layer of random features, V of shape (rows, n d), seen through whole texts and through single tokens.

Index conventions: V = [V_0 ... V_{n-1}] with blocks V_i (rows, d); a text X gives V flat(X) = sum_i V_i x_i.
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.gaussian import Budget, Dense, Gaussian, Lazy
from wordsway.support.devices import precise
from wordsway.support.memory import require
from wordsway.support.seeds import Key, normal

_RANK_TOLERANCE = 1e-12  # eigenvalues of a Gram matrix of texts below this share of the largest count as 0: rounding


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
    the closed remainder a plain Gaussian regression through the Gram matrix of the remaining texts. `Lazy` says
    what determines the values.
    """

    def __init__(self, rows: int, n: int, d: int, key: Key, budget: Budget, dtype: torch.dtype, device: torch.device):
        self.rows, self.cols, self.n, self.d = rows, n * d, n, d
        self.variance = 1.0 / (n * d)
        self.key, self.budget, self.dtype, self.device = key, budget, dtype, device
        self._texts = torch.empty(0, n, d, dtype=torch.float64)
        self._answers = torch.empty(0, rows, dtype=torch.float64)
        self._remainder = self._answers  # of each text: the sum over closed tokens
        self._gram = torch.empty(0, 0, dtype=torch.float64)  # of the texts, over closed tokens
        self._open: dict[int, Lazy] = {}

    def texts(self, X: Float[Tensor, "b n d"]) -> Float[Tensor, "b rows"]:
        X = X.to("cpu", torch.float64)
        where = [self._index(x) for x in X]
        new = [k for k, index in enumerate(where) if index is None]
        if new:
            start = len(self._texts)
            self._add(X[new])
            for offset, k in enumerate(new):
                where[k] = start + offset
        return self._answers[torch.tensor([index for index in where if index is not None])]

    def block(self, token: int, d: int) -> Gaussian:
        assert d == self.d, "the map checks the text's shape"
        if token not in self._open:
            self._open_block(token)
        return self._open[token]

    def to_dense(self) -> Float[Tensor, "rows nd"]:
        return torch.cat([self.block(token, self.d).to_dense() for token in range(self.n)], dim=1)

    def _index(self, x: Tensor) -> int | None:
        same = (self._texts == x).all(2).all(1).nonzero()
        return int(same[0]) if len(same) else None

    def _closed(self, X: Tensor) -> Tensor:
        X = X.clone()
        X[:, list(self._open)] = 0.0
        return X.flatten(1)

    def _add(self, X: Float[Tensor, "b n d"]) -> None:
        self.budget.charge(16 * len(X) * self.rows)
        opened = torch.zeros(len(X), self.rows, dtype=torch.float64)
        for token, block in self._open.items():
            opened += block.mm(X[:, token].to(self.device, self.dtype)).cpu()
        old, new = self._closed(self._texts), self._closed(X)
        cross = new @ old.T
        weights = cross @ _pinv(self._gram)
        covariance = new @ new.T - weights @ cross.T
        drawn = self._draw("text", len(self._texts), covariance, new.square().sum(1))
        remainder = weights @ self._remainder + drawn
        self._gram = torch.cat([torch.cat([self._gram, cross.T], 1), torch.cat([cross, new @ new.T], 1)])
        self._texts = torch.cat([self._texts, X])
        self._remainder = torch.cat([self._remainder, remainder])
        self._answers = torch.cat([self._answers, remainder + opened])

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
        rows = self._texts[:, token]
        gram = rows @ rows.T
        weights = gram @ _pinv(self._gram)
        drawn = self._draw("bridge", token, gram - weights @ gram, gram.diagonal())
        answers = weights @ self._remainder + drawn
        values, vectors = torch.linalg.eigh(gram)
        keep = values > _RANK_TOLERANCE * values.amax() if len(values) else values > 0
        mix = vectors[:, keep] / values[keep].sqrt()
        if keep.any():
            block.condition(mix.T @ rows, mix.T @ answers)
        self._remainder = self._remainder - answers
        self._gram = self._gram - gram
        self._open[token] = block

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


def _pinv(gram: Tensor) -> Tensor:
    if not len(gram):
        return gram
    return torch.linalg.pinv(gram, hermitian=True, rtol=_RANK_TOLERANCE)
