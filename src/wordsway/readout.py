"""Linear training on features: f(X, theta) = phi(X) . theta, interpolating labels with the smallest theta.

Index conventions: Phi (N, k) are the features of N texts, Y (N) their labels. With k far above N everything goes
through the Gram matrix G = Phi Phi^T (N, N): theta* = Phi^T G^+ Y, and the projection onto the span of the features is
Phi^T G^+ Phi. Nothing of size (k, k) exists.

Features can be dependent (a text twice, more texts than dimensions). Eigenvalues of G up to `cutoff` times the largest
count as zero; G^+ leaves them out, and theta* is then the smallest of all least-squares solutions. `rank` and
`residual` say what that came to. G squares the condition of Phi, so in float64 a cut-off of 1e-12 for G, which is 1e-6
for Phi, stays above what rounding makes of a zero eigenvalue.
"""

import time
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.errors import InputError

CUTOFF = 1e-12
_WELL_CONDITIONED = 1e5


@dataclass(frozen=True, eq=False)
class Readout:
    """theta* of N texts, with what it takes to add one more. `residual` is the largest |f(X_t, theta*) - Y_t|,
    `condition` the ratio of the largest eigenvalue of G to the smallest one that is kept."""

    features: Float[Tensor, "N k"]
    labels: Float[Tensor, " N"]
    theta: Float[Tensor, " k"]
    rank: int
    residual: float
    condition: float
    cutoff: float
    gram_seconds: float
    solve_seconds: float
    values: Float[Tensor, " rank"]
    vectors: Float[Tensor, "N rank"]

    @staticmethod
    def fit(features: Float[Tensor, "N k"], labels: Float[Tensor, " N"], cutoff: float = CUTOFF) -> "Readout":
        began = time.perf_counter()
        gram = features @ features.T
        formed = time.perf_counter()
        values, vectors = torch.linalg.eigh(gram)
        top = float(values[-1])
        if not top > 0:
            raise InputError("the features of all training texts are zero, so nothing can be trained on them")
        keep = values > cutoff * top
        values, vectors = values[keep], vectors[:, keep]
        theta, residual = torch.zeros_like(features[0]), labels
        for _ in range(2):  # once more for what rounding left of the residual
            theta = theta + features.T @ (vectors @ ((vectors.T @ residual) / values))
            residual = labels - features @ theta
        return Readout(
            features,
            labels,
            theta,
            rank=len(values),
            residual=float(residual.abs().max()),
            condition=top / float(values[0]),
            cutoff=cutoff,
            gram_seconds=formed - began,
            solve_seconds=time.perf_counter() - formed,
            values=values,
            vectors=vectors,
        )

    def orthogonal(self, phi: Float[Tensor, " k"]) -> Float[Tensor, " k"] | None:
        """The part of phi that is orthogonal to the training features; None where it is nothing but rounding."""
        rest = phi
        for _ in range(1 if self.condition < _WELL_CONDITIONED else 2):  # a solution is good to condition x rounding
            rest = rest - self.features.T @ (self.vectors @ ((self.vectors.T @ (self.features @ rest)) / self.values))
        inside = rest.square().sum() <= self.cutoff * phi.square().sum()
        return None if bool(inside) else rest
