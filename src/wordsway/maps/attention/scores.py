"""Score functions: how a row of logits becomes a row of attention weights.

Index conventions: logits (..., k), one for each token; weights of the same shape that sum to 1 (or are all 0). A logit
of -inf stands for a token that is not seen, and gets no weight.

Most scores can *pool* tokens: of all that do not move, a row needs to know one number, their mass, to say what weights
others get beside them. That is what lets a view keep all unmoved tokens as a single one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from wordsway.support.errors import InputError


class Score(ABC):
    """A score function; frozen, so that it can be part of a recipe."""

    name: str

    @abstractmethod
    def normalize(self, logits: Tensor) -> Tensor:
        """Weights along the last axis."""


class PooledScore(Score):
    """A score under which tokens can be pooled into a mass."""

    silences: bool  # a low enough logit gets no weight at all, so a whole row can become 0

    @abstractmethod
    def pool(self, logits: Tensor) -> Tensor:
        """The mass of all tokens along the last axis."""

    @abstractmethod
    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        """The weight of one token beside a mass of others. Non-decreasing in `logit`."""

    @abstractmethod
    def shares(self, pooled: Tensor, logits: Tensor) -> Tensor:
        """The weights of several tokens, along the last axis, beside one mass (..., 1) of others."""

    @abstractmethod
    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        """The derivative of `share` in `logit`, given its value."""

    @abstractmethod
    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        """The gradient in `logits` of a function with this gradient in weights = normalize(logits)."""


@dataclass(frozen=True)
class Softmax(PooledScore):
    """exp(l) / sum exp(l). A mass is kept as its logarithm."""

    name: str = "softmax"
    silences: bool = False

    def normalize(self, logits: Tensor) -> Tensor:
        return torch.softmax(logits, -1)

    def pool(self, logits: Tensor) -> Tensor:
        return torch.logsumexp(logits, -1)

    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        return torch.sigmoid(logit - pooled)

    def shares(self, pooled: Tensor, logits: Tensor) -> Tensor:
        return torch.softmax(torch.cat([pooled.expand_as(logits[..., :1]), logits], -1), -1)[..., 1:]

    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        return share * (1 - share)

    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        return weights * (gradient - (weights * gradient).sum(-1, keepdim=True))


class Ratio(PooledScore):
    """f(l) / sum f(l) for some f >= 0 that does not fall; a row whose sum is 0 stays 0."""

    @abstractmethod
    def f(self, logits: Tensor) -> Tensor: ...

    @abstractmethod
    def slope(self, logits: Tensor) -> Tensor:
        """f'."""

    def normalize(self, logits: Tensor) -> Tensor:
        mass = self.f(logits)
        return _divide(mass, mass.sum(-1, keepdim=True))

    def pool(self, logits: Tensor) -> Tensor:
        return self.f(logits).sum(-1)

    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        mass = self.f(logit)
        return _divide(mass, mass + pooled)

    def shares(self, pooled: Tensor, logits: Tensor) -> Tensor:
        mass = self.f(logits)
        return _divide(mass, mass.sum(-1, keepdim=True) + pooled)

    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        return _divide((1 - share) * self.slope(logit), self.f(logit) + pooled)

    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        inner = gradient - (weights * gradient).sum(-1, keepdim=True)
        return _divide(inner * self.slope(logits), self.f(logits).sum(-1, keepdim=True))


@dataclass(frozen=True)
class Relu(Ratio):
    """f(l) = max(l, 0)."""

    name: str = "relu"
    silences: bool = True

    def f(self, logits: Tensor) -> Tensor:
        return torch.relu(logits)

    def slope(self, logits: Tensor) -> Tensor:
        return (logits > 0).to(logits.dtype)


@dataclass(frozen=True)
class SquaredRelu(Ratio):
    """f(l) = max(l, 0)^2."""

    name: str = "relu2"
    silences: bool = True

    def f(self, logits: Tensor) -> Tensor:
        return torch.relu(logits).square()

    def slope(self, logits: Tensor) -> Tensor:
        return 2 * torch.relu(logits)


@dataclass(frozen=True)
class Sigmoid(Ratio):
    """f(l) = 1 / (1 + exp(-l))."""

    name: str = "sigmoid"
    silences: bool = False

    def f(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits)

    def slope(self, logits: Tensor) -> Tensor:
        value = torch.sigmoid(logits)
        return value * (1 - value)


@dataclass(frozen=True)
class Entmax(Score):
    """max((a - 1) l - tau, 0)^(1 / (a - 1)) with the tau that makes weights sum to 1: the projection of logits onto the
    simplex for a = 2 (sparsemax), between that and softmax for a = 1.5. Which tokens get any weight depends on all of
    them, so none can be pooled."""

    name: str
    a: float

    def normalize(self, logits: Tensor) -> Tensor:
        scaled = (self.a - 1) * (logits - logits.amax(-1, keepdim=True))
        ordered = scaled.detach().sort(-1, descending=True).values
        ordered = torch.where(ordered.isneginf(), -1e9, ordered)  # not seen: a number that can be summed, far below
        count = torch.arange(1, logits.shape[-1] + 1, dtype=logits.dtype, device=logits.device)
        mean = ordered.cumsum(-1) / count
        if self.a == 2.0:
            tau = mean - 1 / count
        else:
            spread = count * (ordered.square().cumsum(-1) / count - mean.square())
            tau = mean - ((1 - spread) / count).clamp(min=0).sqrt()
        size = (tau <= ordered).sum(-1, keepdim=True)  # of the support: ordered logits above their own tau
        return self._weights(scaled, tau.gather(-1, size - 1))

    def _weights(self, scaled: Tensor, tau: Tensor) -> Tensor:
        """Weights, with the derivative of tau put back by one Newton step on the sum of weights, which is 1 already."""
        power = 1 / (self.a - 1)
        above = torch.relu(scaled - tau)
        slope = (power * above.pow(power - 1) * (above > 0)).detach()
        total = above.pow(power).sum(-1, keepdim=True)
        tau = tau + (total - 1) / slope.sum(-1, keepdim=True)
        return torch.relu(scaled - tau).pow(power)


POOLED: tuple[PooledScore, ...] = (Softmax(), Relu(), SquaredRelu(), Sigmoid())
_SCORES: tuple[Score, ...] = (*POOLED, Entmax("sparsemax", 2.0), Entmax("entmax", 1.5))
NAMES = tuple(score.name for score in _SCORES)


def find(name: str) -> Score:
    """The score function called `name`."""
    for score in _SCORES:
        if score.name == name:
            return score
    raise InputError(f"score={name!r} is not known; use one of: {', '.join((*NAMES, 'linear'))}")


def _divide(part: Tensor, whole: Tensor) -> Tensor:
    # where() on the divisor as well: the gradient of the branch not taken must not be 0/0.
    empty = whole == 0
    return torch.where(empty, 0.0, part / torch.where(empty, 1.0, whole))
