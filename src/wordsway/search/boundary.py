"""Walk along the boundary of a prediction, towards its nearest point.

Index conventions: g runs over tokens that are searched side by side, b over the tracks of each. A track is a direction
u (g, b, d), a unit vector, and how far to go along it, r (g, b). The margin of a move is positive where the prediction
has changed; the boundary is where it is zero.

Seen from the text as it is, the boundary is a function of the direction: r(u) is how far one has to go. A run at r u
gives the margin M and its gradient G, and with the slope s = G.u two things: a Newton step to the boundary,
r(u) = r - M / s, and the gradient of log r(u) on the sphere, -(G - s u) / s, because G.(u dr + r du) = 0 on the
boundary. So the nearest point is the minimum of a function on the sphere, and one run gives its value and gradient. A
long Newton step can promise a length at which nothing flips, and a walk that believed it would stay there: so the
promised length is run, too, before it counts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

Margin = Callable[[Float[Tensor, "g b d"]], tuple[Float[Tensor, "g b"], Float[Tensor, "g b d"]]]
Values = Callable[[Float[Tensor, "g b d"]], Float[Tensor, "g b"]]

_PAIRS = 8  # of the quasi-Newton steps
_LONGEST = 0.3  # step on the unit sphere
_SHORTER = 0.35  # of a step after one that did not help
_FIRST = 0.3  # of the gradient of log r: a first step, when no curvature is known
_BELIEVED = 0.25  # of r: a Newton step to the boundary that is longer says nothing
_NEAR = 0.03  # of r: a longer one is tried before its length counts, as it may promise too much
_WIDEST = 1.5  # factor by which a glide changes r in one step
_MOMENTUM = 0.8
_IDLE, _GAIN = 8, 3e-5  # a descent ends when so many steps have shortened no track by more than this share
_AROUND = 0.01  # of a length: within this, the boundary is looked for along a direction
TOUCHES = 13  # halvings of that interval: 1e-6 of the length is left


@dataclass(frozen=True, eq=False)
class Edge:
    """Moves that change the prediction: the shortest of each track, as direction and length; infinite where a track saw
    none (the direction is then where it ended)."""

    u: Float[Tensor, "g b d"]
    r: Float[Tensor, "g b"]

    def take(self, which: Tensor) -> "Edge":
        """Keep some tracks of each token, (g, c)."""
        return Edge(pick(self.u, which), self.r.gather(1, which))

    def best(self, count: int = 1) -> "Edge":
        """Keep the shortest tracks of each token."""
        return self.take(self.r.argsort(1)[:, :count])

    def split(self) -> "list[Edge]":
        """The tracks of each token."""
        return [Edge(u[None], r[None]) for u, r in zip(self.u, self.r, strict=True)]

    def joined(self, other: "Edge") -> "Edge":
        return Edge(torch.cat([self.u, other.u], 1), torch.cat([self.r, other.r], 1))


def glide(
    margin: Margin,
    u: Float[Tensor, "g b d"],
    r: Float[Tensor, "g b"],
    most: Float[Tensor, "g 1"],
    steps: int,
    angles: tuple[float, float],
) -> Edge:
    """Turn by an angle that shrinks from step to step towards the mean of recent gradients, while r follows the
    boundary by Newton steps, at most `most`. It gets past small maxima where a descent would stay."""
    best, at = torch.full_like(r, math.inf), u
    mean = torch.zeros_like(u)
    for step in range(steps):
        m, gradient = margin(u * r[..., None])
        shorter = (m > 0) & (r < best)
        best, at = torch.where(shorter, r, best), torch.where(shorter[..., None], u, at)
        slope = _dot(gradient, u)
        newton = r - m / slope[..., 0].clamp(min=1e-30)
        ahead = torch.where(slope[..., 0] > 0, newton, torch.where(m > 0, 0.0, math.inf))
        r = ahead.clamp(min=r / _WIDEST, max=r * _WIDEST).minimum(most).minimum(best)
        mean = _MOMENTUM * (mean - _dot(mean, u) * u) + _unit(gradient - slope * u)
        angle = angles[0] * (angles[1] / angles[0]) ** (step / max(1, steps - 1))
        u = _unit(math.cos(angle) * u + math.sin(angle) * _unit(mean))
    return Edge(torch.where(best.isfinite()[..., None], at, u), best)


def descend(margin: Margin, u: Float[Tensor, "g b d"], r: Float[Tensor, "g b"], steps: int) -> tuple[Edge, Edge, int]:
    """Minimise log r(u) by quasi-Newton steps on the sphere. Returns the shortest moves that did change the prediction,
    the last directions with the lengths that Newton steps promise there, and the number of steps taken."""
    m, promised, gradient, near = _measured(margin, u, r)
    flipped = Edge(u, torch.where(m > 0, r, math.inf))
    history, share, scale = _History(), torch.ones_like(r)[..., None], torch.full_like(r, _FIRST)[..., None]
    length, again, ahead = torch.where(near, promised, math.inf), ~near & promised.isfinite(), u
    taken, checked = 1, length
    for taken in range(2, steps + 1):
        step = history.newton(gradient, scale, u)
        step = torch.where(_dot(step, gradient) > 0, step, scale * gradient)
        step = step * (share * (_LONGEST / _length(step)).clamp(max=1.0))
        known = torch.where(length.isfinite(), length, r)
        trial = known * (1 - 0.5 * _dot(step, gradient)[..., 0]).clamp(0.8, 1.0)  # as of a quadratic
        ahead = torch.where(again[..., None], ahead, _unit(u + step))
        trial = torch.where(again, promised, trial)
        m, promised, new, near = _measured(margin, ahead, trial)
        shorter = (m > 0) & (trial < flipped.r)
        flipped = Edge(torch.where(shorter[..., None], ahead, flipped.u), torch.where(shorter, trial, flipped.r))
        again = ~near & (promised < length)  # a long Newton step must be tried before it counts
        better = (near & (promised < length))[..., None]
        history.carry(better, ahead)
        s, y = _tangent(ahead - u, ahead), _tangent(gradient, ahead) - new
        useful = (_dot(s, y) > 1e-10 * _length(s) * _length(y)) & (promised.isfinite() & ~again)[..., None]
        history.add(s, y, useful)
        scale = torch.where(useful, _dot(s, y) / _dot(y, y).clamp(min=1e-30), scale)
        share = torch.where(better, 1.0, torch.where(again[..., None], share, share * _SHORTER))
        u, gradient = torch.where(better, ahead, u), torch.where(better, new, gradient)
        length = torch.where(better[..., 0], promised, length)
        if taken % _IDLE == 0:
            if bool((~again & (length > checked * (1 - _GAIN))).all()):
                break
            checked = length
    return flipped, Edge(u, length), taken


def touch(values: Values, edge: Edge, most: Float[Tensor, "g 1"]) -> Edge:
    """Go back towards the boundary along fixed directions: halve the interval below each length that changes the
    prediction."""
    high = torch.where(edge.r.isfinite(), edge.r, most)
    low = (1 - _AROUND) * high
    for _ in range(TOUCHES):
        middle = 0.5 * (low + high)
        positive = values(edge.u * middle[..., None]) > 0
        low, high = torch.where(positive, low, middle), torch.where(positive, middle, high)
    return Edge(edge.u, torch.where(edge.r.isfinite(), high, math.inf))


def _measured(margin: Margin, u: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Run at r u: the margin, r(u) by a Newton step (infinite where that is not to be believed), minus the gradient of
    log r(u), or just a direction to climb the margin in, and whether the boundary is so near that r(u) is right."""
    m, gradient = margin(u * r[..., None])
    slope = _dot(gradient, u)
    side = gradient - slope * u
    step = -m / slope[..., 0].clamp(min=1e-30)
    believed = (slope[..., 0] > 0) & (step.abs() <= _BELIEVED * r)
    down = torch.where(believed[..., None], side / slope.clamp(min=1e-30), _unit(side))
    return m, torch.where(believed, r + step, math.inf), down, believed & (step.abs() <= _NEAR * r)


class _History:
    """Pairs of steps and changes of the gradient, for quasi-Newton steps of each track on its own."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []

    def newton(self, gradient: Tensor, scale: Tensor, u: Tensor) -> Tensor:
        q, factors = gradient, []
        for s, y, inverse in reversed(self.pairs):
            factors.append(inverse * _dot(s, q))
            q = q - factors[-1] * y
        q = scale * q
        for (s, y, inverse), factor in zip(self.pairs, reversed(factors), strict=True):
            q = q + s * (factor - inverse * _dot(y, q))
        return _tangent(q, u)

    def add(self, s: Tensor, y: Tensor, useful: Tensor) -> None:
        inverse = torch.where(useful, 1 / _dot(s, y).clamp(min=1e-30), 0.0)
        self.pairs = [*self.pairs[1 - _PAIRS :], (s * useful, y * useful, inverse)]

    def carry(self, moved: Tensor, u: Tensor) -> None:
        self.pairs = [
            (torch.where(moved, _tangent(s, u), s), torch.where(moved, _tangent(y, u), y), inverse)
            for s, y, inverse in self.pairs
        ]


def pick(rows: Float[Tensor, "g b d"], which: Tensor) -> Float[Tensor, "g c d"]:
    """Some of the b rows of each token, by their indices (g, c)."""
    return rows.gather(1, which[..., None].expand(-1, -1, rows.shape[-1]))


def _tangent(vectors: Tensor, u: Tensor) -> Tensor:
    return vectors - _dot(vectors, u) * u


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def _length(a: Tensor) -> Tensor:
    return a.norm(dim=-1, keepdim=True).clamp(min=1e-30)


def _unit(a: Tensor) -> Tensor:
    return a / _length(a)
