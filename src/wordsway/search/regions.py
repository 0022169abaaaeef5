"""Regions of allowed deltas: the ball around the token, only its sphere, or a ball for each of several tokens.

Each owns its geometry as seen by a search: a point is a unit vector e, and `delta(e)` is what it stands for. The
sphere is radius * e; the ball is the sphere in one more dimension, looked at from above: its last coordinate is
dropped. Several balls are several unit vectors, one after the other, that turn side by side. So one ascent along great
circles serves all.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsway.support.seeds import normal

_SLACK = 1e-6  # relative: by how much rounding in float32 may exceed a radius
FROM_THE_EDGE = 1e-3  # a point on the edge of a ball has no gradient inwards, so a descent begins this far from it


@dataclass(frozen=True)
class Region(ABC):
    """Deltas of shape (*batch, m, d) whose norm, over all moved tokens together, is bounded by `radius`."""

    radius: float
    m: int
    d: int

    @abstractmethod
    def delta(self, e: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch m d"]:
        """The delta that a unit vector stands for."""

    @abstractmethod
    def pull_back(self, gradient: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch size"]:
        """The gradient in e of a function with this gradient in delta(e), divided by the radius."""

    @abstractmethod
    def point(self, direction: Float[Tensor, "*batch m d"], inside: Bool[Tensor, "*batch"]) -> Tensor:
        """A unit vector to start from: towards `direction`, on the sphere or, where allowed, `inside` it."""

    @abstractmethod
    def unit(self, delta: Float[Tensor, "*batch m d"], height: float) -> Float[Tensor, "*batch size"]:
        """The unit vector that stands for an allowed delta; in a ball, at least `height` above the edge."""

    @property
    def reach(self) -> float:
        """The largest norm of delta, over all of its tokens."""
        return self.radius

    @abstractmethod
    def contains(self, delta: Float[Tensor, "*batch m d"]) -> Bool[Tensor, "*batch"]:
        """Whether delta is allowed, up to rounding."""

    def normed(self, e: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        """Scaled to length one; what is 0 stays 0."""
        return e / e.norm(dim=-1, keepdim=True).clamp(min=1e-30)

    def tangent(self, vectors: Float[Tensor, "*batch size"], e: Float[Tensor, "*batch size"]) -> Tensor:
        """The part of vectors along which e can turn."""
        return vectors - (vectors * e).sum(-1, keepdim=True) * e

    def project(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch m d"]:
        """The nearest delta of norm at most `radius`."""
        size = delta.flatten(-2).norm(dim=-1)[..., None, None]
        return delta * (self.radius / size.clamp(min=1e-300)).clamp(max=1.0)

    def sample(self, count: int, *key: int | str) -> Float[Tensor, "count m d"]:
        """Uniform on the sphere of the full radius; float32 on the CPU."""
        drawn = normal((count, self.m, self.d), *key)
        return drawn * (self.radius / drawn.flatten(1).norm(dim=1))[:, None, None]


@dataclass(frozen=True)
class Sphere(Region):
    """norm(delta) = radius."""

    def delta(self, e: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch m d"]:
        return (self.radius * e).unflatten(-1, (self.m, self.d))

    def pull_back(self, gradient: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch size"]:
        return gradient.flatten(-2)

    def point(self, direction: Float[Tensor, "*batch m d"], inside: Bool[Tensor, "*batch"]) -> Tensor:
        return _unit(direction.flatten(-2))

    def unit(self, delta: Float[Tensor, "*batch m d"], height: float) -> Float[Tensor, "*batch size"]:
        return _unit(delta.flatten(-2))

    def contains(self, delta: Float[Tensor, "*batch m d"]) -> Bool[Tensor, "*batch"]:
        return (delta.flatten(-2).norm(dim=-1) / self.radius - 1).abs() <= _SLACK


@dataclass(frozen=True)
class Ball(Region):
    """norm(delta) <= radius."""

    def delta(self, e: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch m d"]:
        return (self.radius * e[..., :-1]).unflatten(-1, (self.m, self.d))

    def pull_back(self, gradient: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch size"]:
        return torch.nn.functional.pad(gradient.flatten(-2), (0, 1))

    def point(self, direction: Float[Tensor, "*batch m d"], inside: Bool[Tensor, "*batch"]) -> Tensor:
        flat = _unit(direction.flatten(-2))
        share = torch.where(inside, 0.75, 1.0).to(flat)[..., None]
        return torch.cat([share * flat, (1 - share**2).sqrt()], -1)

    def unit(self, delta: Float[Tensor, "*batch m d"], height: float) -> Float[Tensor, "*batch size"]:
        flat = delta.flatten(-2) / self.radius
        up = (1 - flat.square().sum(-1, keepdim=True)).clamp(min=0.0).sqrt().clamp(min=height)
        return _unit(torch.cat([flat, up], -1))

    def contains(self, delta: Float[Tensor, "*batch m d"]) -> Bool[Tensor, "*batch"]:
        return delta.flatten(-2).norm(dim=-1) <= self.radius * (1 + _SLACK)


@dataclass(frozen=True)
class Balls(Region):
    """norm(delta_k) <= radii[k] for each of the m tokens; `radius` is the largest."""

    radii: tuple[float, ...]

    @staticmethod
    def of(radii: Sequence[float], d: int) -> "Balls":
        return Balls(max(radii), len(radii), d, tuple(radii))

    def delta(self, e: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch m d"]:
        return self._each(e)[..., :-1] * self._scale(e)

    def pull_back(self, gradient: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch size"]:
        return torch.nn.functional.pad(gradient * self._scale(gradient) / self.radius, (0, 1)).flatten(-2)

    def point(self, direction: Float[Tensor, "*batch m d"], inside: Bool[Tensor, "*batch"]) -> Tensor:
        flat = _unit(direction)
        share = torch.where(inside, 0.75, 1.0).to(flat)[..., None, None].expand_as(flat[..., :1])
        return torch.cat([share * flat, (1 - share**2).sqrt()], -1).flatten(-2)

    def unit(self, delta: Float[Tensor, "*batch m d"], height: float) -> Float[Tensor, "*batch size"]:
        flat = delta / self._scale(delta)
        up = (1 - flat.square().sum(-1, keepdim=True)).clamp(min=0.0).sqrt().clamp(min=height)
        return _unit(torch.cat([flat, up], -1)).flatten(-2)

    def contains(self, delta: Float[Tensor, "*batch m d"]) -> Bool[Tensor, "*batch"]:
        return ((delta / self._scale(delta)).norm(dim=-1) <= 1 + _SLACK).all(-1)

    def normed(self, e: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        return super().normed(self._each(e)).flatten(-2)

    def tangent(self, vectors: Float[Tensor, "*batch size"], e: Float[Tensor, "*batch size"]) -> Tensor:
        return super().tangent(self._each(vectors), self._each(e)).flatten(-2)

    def project(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch m d"]:
        size = (delta / self._scale(delta)).norm(dim=-1, keepdim=True)
        return delta / size.clamp(min=1.0)

    def sample(self, count: int, *key: int | str) -> Float[Tensor, "count m d"]:
        drawn = normal((count, self.m, self.d), *key)
        return drawn * self._scale(drawn) / drawn.norm(dim=-1, keepdim=True)

    @property
    def reach(self) -> float:
        return math.sqrt(math.fsum(radius**2 for radius in self.radii))

    def _each(self, e: Tensor) -> Float[Tensor, "*batch m size"]:
        return e.unflatten(-1, (self.m, self.d + 1))

    def _scale(self, like: Tensor) -> Float[Tensor, "m 1"]:
        return torch.tensor(self.radii, dtype=like.dtype, device=like.device)[:, None]


def _unit(flat: Tensor) -> Tensor:
    """Unit vectors; a zero vector becomes the first axis, so that a search always has somewhere to go."""
    size = flat.norm(dim=-1, keepdim=True)
    axis = torch.zeros_like(flat)
    axis[..., 0] = 1.0
    return torch.where(size > 0, flat / torch.where(size > 0, size, 1.0), axis)
