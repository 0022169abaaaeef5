"""A sense of scale for the steps of a search, learned from the gradients that it has seen.

Trained models answer to a few directions of an embedding far more than to the rest, so gradients crowd into those and
an ascent zigzags along them. Dividing by the square root of the gradients' covariance gives every direction its turn
(full-matrix AdaGrad). The covariance is a property of the model more than of a word, so all searches of one text share
it: with d = 384, a few hundred gradients are enough.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.search.regions import Region

_FORGET = 0.98  # a step's weight after the next one: about the last 50 steps count
_FLOOR = 0.1  # of an average direction's share, added to all of them, so that unseen ones are not blown up
_EVERY = 8  # steps between two decompositions, each of which costs d^3
_AT_ONCE = 4  # first steps, each with a decomposition: at first every gradient changes the covariance much


class Metric:
    """The covariance of unit gradients with respect to one token's embedding, and its inverse square root."""

    def __init__(self, d: int, device: torch.device | str = "cpu") -> None:
        self.covariance = torch.zeros(d, d, device=device)
        self.root = torch.eye(d, device=device)  # covariance^(-1/2), up to a factor
        self._steps = 0

    @staticmethod
    def of(covariance: Float[Tensor, "d d"], device: torch.device | str = "cpu") -> "Metric":
        """Make a metric that begins with a known covariance."""
        metric = Metric(len(covariance), device)
        metric.covariance = covariance.to(metric.covariance)
        metric._decompose()
        return metric

    def learn(self, rows: Float[Tensor, "k d"]) -> None:
        """Take in the gradients of one step."""
        rows = rows.to(self.covariance)
        self.covariance = _FORGET * self.covariance + rows.T @ rows
        if self._steps < _AT_ONCE or self._steps % _EVERY == 0:
            self._decompose()
        self._steps += 1

    def bend(
        self, vectors: Float[Tensor, "*batch size"], e: Float[Tensor, "*batch size"], region: Region
    ) -> Float[Tensor, "*batch size"]:
        """Tangent vectors at e in this metric. Where the function rises along one, it also rises along the result."""
        rows = region.delta(vectors) / region.radius
        return region.tangent(vectors + region.pull_back(rows @ self.root.to(rows) - rows), e)

    def _decompose(self) -> None:
        trace = float(self.covariance.trace())
        if not trace > 0:  # no gradient so far
            return
        values, vectors = torch.linalg.eigh((self.covariance / trace).to("cpu", torch.float32))
        scales = (values.clamp(min=0.0) + _FLOOR / len(values)) ** -0.5
        spent = (values.clamp(min=0.0) * scales**2).sum().sqrt()  # the length that a typical gradient would get
        self.root = ((vectors * (scales / spent)) @ vectors.T).to(self.root)
