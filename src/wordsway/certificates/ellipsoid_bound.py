"""Bounds over an ellipsoid: the set that the output of a LayerNorm or an RMSNorm lies in, whatever its input is.

A norm gives y = gamma * z + beta with |z|^2 <= d (its epsilon only shrinks z), and a LayerNorm's z sums to 0. So a
point p has a furthest y. For a = beta - p, any mu above all gamma_k^2 and any nu,
    |gamma * z + a|^2 <= mu d + |a|^2 + sum_k (gamma_k a_k - nu)^2 / (mu - gamma_k^2)
(weak duality: nu = 0 where z need not sum to 0). A linear layer after it has |A z + a|, of which the same holds in the
singular basis of A. A fixed direction has an exact range. Proofs: docs/mathematics/norms.md.

Every multiplier is valid, so the search for good ones may round as it likes; only the last evaluation counts. Its terms
are all positive, so it loses at most a few units for each of d additions: `_MARGIN` is far above that.

Index conventions: rows of points (r, d); directions (q, d).
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

_MARGIN = 1e-9  # relative, for rounding in float64: sums of positive terms, d up to a million
_STEPS = 40  # halvings of the interval of log multipliers: the bound is then optimal to six digits and more
_NEAREST = 1e-5  # relative distance that a multiplier keeps from the spectrum, so that rounding there cannot matter
_IMAGE_MARGIN = 1e-6  # relative, after an eigenbasis: its vectors are right to 1e-13, which 1 / _NEAREST may enlarge
_CHUNK = 4096  # rows of a weight in float64 at once: a vocabulary's would not fit
_ROWS = 256  # of points that are bounded at once: bounds memory


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """All gamma * z + beta with |z| <= `reach` and, where `centred`, sum(z) = 0. For the rounding of a norm that is
    bounded, each entry of z may also be off by one number of at most `aside`, the same for all of them, and each of
    beta by `grain` of itself. Tensors are float64 on the CPU."""

    gamma: Float[Tensor, " d"]
    beta: Float[Tensor, " d"]
    centred: bool
    reach: float
    aside: float = 0.0
    grain: float = 0.0

    @cached_property
    def largest(self) -> float:
        """A bound on the norm of its points."""
        return float(self.furthest(torch.zeros_like(self.beta)[None])[0])

    def furthest(self, points: Float[Tensor, "r d"]) -> Float[Tensor, " r"]:
        """Bound the distance of each point from all points of the ellipsoid."""
        parts = [self._furthest(part) for part in points.double().split(_ROWS)]
        return torch.cat([points.new_empty(0, dtype=torch.float64), *parts])

    def _furthest(self, points: Float[Tensor, "r d"]) -> Float[Tensor, " r"]:
        a = self.beta - points
        squares = least_dual(self.gamma.square(), self.gamma * a, a.square().sum(1), self.reach, self.centred)
        rounded = self.aside * self.gamma.norm() + self.grain * self.beta.norm()
        return (squares.sqrt() + rounded) * (1 + _MARGIN)

    def ranges(self, directions: Float[Tensor, "q d"]) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
        """The lowest and the highest inner product of each direction with a point of the ellipsoid."""
        v = directions.double()
        along = v * self.gamma
        half = self.reach * self._project(along).norm(dim=1) + self.aside * along.sum(1).abs()
        half = half + (self.grain + _MARGIN) * (v * self.beta).abs().sum(1) + _MARGIN * half
        middle = v @ self.beta
        return middle - half, middle + half

    def sizes(self, directions: Float[Tensor, "q d"]) -> Float[Tensor, " q"]:
        """Bound sum_k |v_k y_k| for each direction v over all points y: what rounding of an inner product goes with."""
        along = (directions.double() * self.gamma).norm(dim=1)
        shift = (directions.double() * self.beta).abs().sum(1)
        width = self.reach + self.aside * len(self.beta) ** 0.5
        return (along * width + shift * (1 + self.grain)) * (1 + _MARGIN)

    def furthest_image(self, image: "Image", point: Float[Tensor, " k"]) -> float:
        """Bound the distance of a point from the images of all points of the ellipsoid under a linear layer."""
        a = times(image.weight, self.beta) - point
        if image.gram is None:  # few rows: the basis is that of A A^T, which is small
            weight = image.weight.to("cpu", torch.float64)
            A, columns = self._project(weight * self.gamma), weight.norm(dim=0)
            levels, basis = _decompose(A @ A.mT)
            linear = levels.sqrt() * (a @ basis)
        else:
            columns = image.gram.diagonal().sqrt()
            levels, basis = _decompose(self._project(self._project(self.gamma[:, None] * image.gram * self.gamma).mT))
            linear = self._project(self.gamma * back(image.weight, a)) @ basis
        square = least_dual(levels, linear[None], a.square().sum()[None], self.reach, centred=False)
        rounded = self.aside * times(image.weight, self.gamma).norm() + self.grain * (columns @ self.beta.abs())
        return float(square[0].sqrt() + rounded) * (1 + _IMAGE_MARGIN)

    def _project(self, v: Float[Tensor, "*q d"]) -> Float[Tensor, "*q d"]:
        return v - v.mean(-1, keepdim=True) if self.centred else v


@dataclass(frozen=True, eq=False)
class Image:
    """A linear layer y -> weight @ y. One with more rows than columns, as a vocabulary has, is known by its Gram matrix
    weight^T weight; `gram` is None for others."""

    weight: Float[Tensor, "k d"]
    gram: Float[Tensor, "d d"] | None

    @staticmethod
    def of(weight: Float[Tensor, "k d"]) -> "Image":
        """Compute once what bounds need of a layer."""
        k, d = weight.shape
        if k <= d:
            return Image(weight, None)
        gram = torch.zeros(d, d, dtype=torch.float64)
        for part in weight.split(_CHUNK):
            rows = part.to("cpu", torch.float64)
            gram += rows.mT @ rows
        return Image(weight, gram)


def times(weight: Float[Tensor, "k d"], y: Float[Tensor, " d"]) -> Float[Tensor, " k"]:
    """weight @ y, in float64."""
    return torch.cat([part.to("cpu", torch.float64) @ y for part in weight.split(_CHUNK)])


def back(weight: Float[Tensor, "k d"], a: Float[Tensor, "*q k"]) -> Float[Tensor, "*q d"]:
    """a @ weight, in float64."""
    parts = zip(weight.split(_CHUNK), a.split(_CHUNK, -1), strict=True)
    return torch.stack([some @ part.to("cpu", torch.float64) for part, some in parts]).sum(0)


def _decompose(matrix: Float[Tensor, "m m"]) -> tuple[Float[Tensor, " m"], Float[Tensor, "m m"]]:
    """Eigenvalues and eigenvectors of a symmetric matrix, the former raised by as much as both together miss it: the
    matrix that they make is at least the one that was given."""
    symmetric = 0.5 * (matrix + matrix.mT)
    levels, basis = torch.linalg.eigh(symmetric)
    eye = torch.eye(len(levels), dtype=torch.float64)
    missed = (basis * levels @ basis.mT - symmetric).norm() + (basis.mT @ basis - eye).norm() * levels.abs().amax()
    return levels.clamp(min=0) + 2 * missed + _MARGIN * levels.abs().amax(), basis


def least_dual(
    levels: Float[Tensor, " m"],
    linear: Float[Tensor, "r m"],
    constant: Float[Tensor, " r"],
    reach: float,
    centred: bool,
) -> Float[Tensor, " r"]:
    """Bound sum_k levels_k z_k^2 + 2 linear_k z_k + constant over |z| <= reach (and sum(z) = 0 where `centred`), for
    each row of `linear`: the smallest dual value found, each of which is a bound."""
    top = levels.amax()
    gaps = top - levels  # mu - levels_k is tau + gaps_k
    # At the best mu, reach^2 = sum_k (linear_k - nu)^2 / (mu - levels_k)^2 <= |linear|^2 / tau^2.
    high = (linear.norm(dim=1) / reach).clamp(min=float(top) * _NEAREST + 1e-280)
    low = (high * _NEAREST).clamp(min=float(top) * _NEAREST + 1e-290)
    low, high = low.log(), high.log()
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        weights, shifted = _at(middle.exp(), gaps, linear, centred)
        falls = (shifted * weights).square().sum(1) > reach**2  # the dual still falls there: go on to larger mu
        low, high = torch.where(falls, middle, low), torch.where(falls, high, middle)
    tau = high.exp()
    weights, shifted = _at(tau, gaps, linear, centred)
    return (top + tau) * reach**2 + constant + (shifted.square() * weights).sum(1)


def _at(tau: Tensor, gaps: Tensor, linear: Tensor, centred: bool) -> tuple[Tensor, Tensor]:
    """1 / (mu - levels) and linear - nu, with the nu that is best for each mu."""
    weights = 1 / (tau[:, None] + gaps)
    if not centred:
        return weights, linear
    nu = (linear * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    return weights, linear - nu
