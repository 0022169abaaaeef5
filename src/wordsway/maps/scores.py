"""Score functions: how a row of logits becomes a row of attention weights.

Index conventions: logits (..., k), one for each token; weights of the same shape that sum to 1 (or are all 0).
Each score can *pool* tokens into one: normalize([pool(a), *b]) gives to the pooled token the sum of the weights that
normalize([*a, *b]) gives to the tokens of a. That is what lets a view keep all unmoved tokens as a single one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from wordsway.errors import InputError


class Score(ABC):
    """A score function; frozen, so that it can be part of a recipe."""

    name: str
    silences: bool  # a low enough logit gets no weight at all, so a whole row can become 0

    @abstractmethod
    def normalize(self, logits: Tensor) -> Tensor:
        """Weights along the last axis."""

    @abstractmethod
    def pool(self, logits: Tensor) -> Tensor:
        """The one logit that stands for all along the last axis."""

    @abstractmethod
    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        """normalize([pooled, logit])[1]: the weight of one token against all others. Non-decreasing in `logit`."""

    @abstractmethod
    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        """The derivative of `share` in `logit`, given its value."""

    @abstractmethod
    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        """The gradient in `logits` of a function with this gradient in weights = normalize(logits)."""


@dataclass(frozen=True)
class Softmax(Score):
    """exp(l) / sum exp(l)."""

    name: str = "softmax"
    silences: bool = False

    def normalize(self, logits: Tensor) -> Tensor:
        return torch.softmax(logits, -1)

    def pool(self, logits: Tensor) -> Tensor:
        return torch.logsumexp(logits, -1)

    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        return torch.sigmoid(logit - pooled)

    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        return share * (1 - share)

    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        return weights * (gradient - (weights * gradient).sum(-1, keepdim=True))


@dataclass(frozen=True)
class Relu(Score):
    """max(l, 0) / sum max(l, 0); a row whose sum is 0 stays 0."""

    name: str = "relu"
    silences: bool = True

    def normalize(self, logits: Tensor) -> Tensor:
        return _divide(torch.relu(logits), torch.relu(logits).sum(-1, keepdim=True))

    def pool(self, logits: Tensor) -> Tensor:
        return torch.relu(logits).sum(-1)

    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        positive = torch.relu(logit)
        return _divide(positive, positive + pooled)

    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        positive = torch.relu(logit)
        return _divide((1 - share) * (logit > 0), positive + pooled)

    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        inner = gradient - (weights * gradient).sum(-1, keepdim=True)
        return _divide(inner * (logits > 0), torch.relu(logits).sum(-1, keepdim=True))


def _divide(part: Tensor, whole: Tensor) -> Tensor:
    # where() on the divisor as well: the gradient of the branch not taken must not be 0/0.
    empty = whole == 0
    return torch.where(empty, 0.0, part / torch.where(empty, 1.0, whole))


def find(name: str) -> Score:
    """The score function called `name`."""
    scores: tuple[Score, ...] = (Softmax(), Relu())
    for score in scores:
        if score.name == name:
            return score
    raise InputError(f"score={name!r} is not known; use one of: {', '.join(s.name for s in scores)}")
