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
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.support.errors import InputError
from wordsway.support.memory import require
from wordsway.tokens import as_text

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


def stack_texts(texts: Any) -> Float[Tensor, "N n d"]:
    """Texts of one length as one array, float64 on the CPU, or an InputError that says what is wrong."""
    if isinstance(texts, Tensor | np.ndarray) and texts.ndim != 3:
        raise InputError(
            f"train must be a list of texts or have shape (N, n, d), got shape {tuple(texts.shape)}", argument="train"
        )
    if isinstance(texts, str) or not hasattr(texts, "__len__"):
        raise InputError(f"train must be a list of embedded texts, got {type(texts).__name__}", argument="train")
    if len(texts) < 2:
        raise InputError(f"training needs at least 2 texts, got {len(texts)}")
    first = as_text(texts[0], "text 0")
    if isinstance(texts, Tensor) and texts.dtype == torch.float64 and texts.device.type == "cpu":
        found, ready = texts.detach(), True
    else:
        what = f"{len(texts)} texts of shape {tuple(first.shape)}"
        require(8.0 * len(texts) * first.numel(), what, "use fewer texts")
        found, ready = torch.empty(len(texts), *first.shape, dtype=torch.float64), False
    for k, text in enumerate(texts):
        rows = as_text(text, f"text {k}")
        if rows.shape != first.shape:
            if rows.shape[1] != first.shape[1]:
                raise InputError(f"text 0 has d={first.shape[1]} coordinates a token, but text {k} has {rows.shape[1]}")
            lengths = sorted(as_text(text).shape[0] for text in texts)
            raise InputError(
                f"the training texts do not have one shape: text 0 has {tuple(first.shape)}, text {k} has "
                f"{tuple(rows.shape)} (n from {lengths[0]} to {lengths[-1]}); a readout needs one: crop them, as "
                f"[text[:{lengths[0]}] for text in train]"
            )
        if not ready:
            found[k] = rows
    return found


def check_labels(labels: Any, count: int) -> Float[Tensor, " N"]:
    """+1 and -1, both of them, one for each text."""
    try:
        given = torch.as_tensor(labels).detach()
        Y = given.to("cpu", torch.float64) if not given.is_complex() else given.real * torch.nan
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"labels must be numbers, +1 or -1: {error}", argument="labels") from None
    if Y.shape != (count,):
        raise InputError(f"there are {count} training texts, but labels has shape {tuple(Y.shape)}")
    if not bool((Y.abs() == 1).all()):
        other = torch.unique(Y[Y.abs() != 1])
        raise InputError(
            f"labels must be +1 or -1, got also {', '.join(f'{value:g}' for value in other[:5].tolist())}",
            argument="labels",
        )
    if len(set(Y.tolist())) < 2:
        raise InputError(f"all {count} labels are {Y[0]:+g}; training needs both +1 and -1")
    return Y


def check_label(y: Any) -> int:
    """+1 or -1."""
    try:
        value = float(y)
    except (TypeError, ValueError, RuntimeError):
        value = 0.0
    if isinstance(y, bool | str) or value not in (1.0, -1.0):
        raise InputError(f"y must be +1 or -1, got {y!r}", argument="y")
    return int(value)
