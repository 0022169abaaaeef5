"""Where delta may be: the ball around the token, or only its sphere.

Both own their geometry as seen by a search: a point is a unit vector e, and `delta(e)` is what it stands for. The
sphere is radius * e; the ball is the sphere in one more dimension, looked at from above: its last coordinate is
dropped. So one ascent along great circles serves both.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsway.seeds import normal

_SLACK = 1e-6  # relative: what float32 may exceed a radius by


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

    @abstractmethod
    def contains(self, delta: Float[Tensor, "*batch m d"]) -> Bool[Tensor, "*batch"]:
        """Whether delta is allowed, up to rounding."""

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


def _unit(flat: Tensor) -> Tensor:
    """Unit vectors; a zero vector becomes the first axis, so that a search always has somewhere to go."""
    size = flat.norm(dim=-1, keepdim=True)
    axis = torch.zeros_like(flat)
    axis[..., 0] = 1.0
    return torch.where(size > 0, flat / torch.where(size > 0, size, 1.0), axis)
