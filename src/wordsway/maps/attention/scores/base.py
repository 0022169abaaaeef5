"""Score functions: how a row of logits becomes a row of attention weights.

Index conventions: logits (..., k), one for each token; weights of the same shape that sum to 1 (or are all 0). A logit
of -inf stands for a token that is not seen, and gets no weight.

Most scores can *pool* tokens: of all that do not move, a row needs to know one number to say what weights others get
beside them. That is what lets a view keep all unmoved tokens as a single one. The number, a pool, has one meaning: what
the score that made it needs of those tokens. Only that score reads it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from wordsway.support.errors import InputError
from wordsway.support.names import SCORES


class Score(ABC):
    """A score function, without a state of its own."""

    @abstractmethod
    def normalize(self, logits: Tensor) -> Tensor:
        """Compute the weights along the last axis."""


class PooledScore(Score):
    """A score under which tokens can be pooled. What it claims of itself decides which certificates hold for it; what
    it does not claim, it does not get."""

    monotone: bool = False  # a token's weight never falls when its logit grows; else no certificate for one token
    lipschitz: float | None = None  # of the pool in each logit; None: no certificate for several tokens
    silences: bool = False  # a low enough logit gets no weight at all, so a whole row can become 0
    exponential: bool = False  # `mass` is exp, so that weights stay as they are when all logits grow alike

    def mass(self, logits: Tensor) -> Tensor | None:
        """Compute each token's mass: weights are in proportion to it. None where there is no such number; then the
        certificate for one token does not shrink with the radius."""
        return None

    def slopes(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor] | None:
        """Bound the derivative of `mass` over intervals of logits from below and from above; None: not known."""
        return None

    def share_slopes(self, pooled: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor] | None:
        """Bound the derivative of `share` over intervals of logits from below and from above; None: not known."""
        return None

    @abstractmethod
    def pool(self, logits: Tensor) -> Tensor:
        """Pool all tokens along the last axis."""

    @abstractmethod
    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        """Compute the weight of one token beside a pool of others."""

    @abstractmethod
    def shares(self, pooled: Tensor, logits: Tensor) -> Tensor:
        """Compute the weights of several tokens, along the last axis, beside one pool (..., 1) of others."""

    @abstractmethod
    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        """Compute the derivative of `share` in `logit`, given its value."""

    @abstractmethod
    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        """Compute the gradient in `logits` of a function with this gradient in weights = normalize(logits)."""

    @abstractmethod
    def most_shared(self, pooled: Tensor, logits: Tensor, sigma: Tensor) -> Tensor:
        """Bound the joint weight of the tokens along the last axis of `logits` (..., m) beside `pooled` (..., 1), when
        their logits change by at most sigma (..., c) in the 2-norm: shape (..., c). Needs `lipschitz`."""

    def lead(self, pooled: Tensor, logit: Tensor) -> Tensor:
        """Order rows by how near a token with this logit is to taking all weight from a pool: larger is nearer."""
        return logit - pooled


class Ratio(PooledScore):
    """f(l) / sum f(l) for some f >= 0; a row whose sum is 0 stays 0. A pool is the sum of f.

    `monotone` says that f does not fall, `lipschitz` is f's Lipschitz constant. A logit of -inf does not reach f: its
    mass is 0."""

    # f, its slope and its gradient are 0 at -inf as they stand, so that nothing has to be kept from them: faster.
    takes_unseen: bool = False

    @abstractmethod
    def f(self, logits: Tensor) -> Tensor:
        """Compute each token's mass."""

    @abstractmethod
    def slope(self, logits: Tensor) -> Tensor:
        """Compute f'."""

    def _mass(self, logits: Tensor) -> Tensor:
        return self.f(logits) if self.takes_unseen else _where_seen(self.f, logits)

    def _slope(self, logits: Tensor) -> Tensor:
        return self.slope(logits) if self.takes_unseen else _where_seen(self.slope, logits)

    def mass(self, logits: Tensor) -> Tensor:
        return self._mass(logits)

    def slopes(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor] | None:
        """By `lipschitz` alone; a score that can say more overrides this."""
        if self.lipschitz is None or not self.monotone:
            return None
        return torch.zeros_like(low), torch.full_like(high, self.lipschitz)

    def share_slopes(self, pooled: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor] | None:
        # share = f / (f + pool), so its derivative is f' pool / (f + pool)^2.
        slopes = self.slopes(low, high)
        if slopes is None or not self.monotone:
            return None
        (least, most), least_mass, most_mass = slopes, self._mass(low), self._mass(high)
        jumps = (pooled == 0) & (least_mass == 0) & (most_mass > 0)  # from no weight at all to all of it
        most = torch.where(jumps, math.inf, _divide(most * pooled, (least_mass + pooled).square()))
        return _divide(least * pooled, (most_mass + pooled).square()), most

    def normalize(self, logits: Tensor) -> Tensor:
        mass = self._mass(logits)
        return _divide(mass, mass.sum(-1, keepdim=True))

    def pool(self, logits: Tensor) -> Tensor:
        return self._mass(logits).sum(-1)

    def share(self, pooled: Tensor, logit: Tensor) -> Tensor:
        mass = self._mass(logit)
        return _divide(mass, mass + pooled)

    def shares(self, pooled: Tensor, logits: Tensor) -> Tensor:
        mass = self._mass(logits)
        return _divide(mass, mass.sum(-1, keepdim=True) + pooled)

    def share_slope(self, pooled: Tensor, logit: Tensor, share: Tensor) -> Tensor:
        return _divide((1 - share) * self._slope(logit), self._mass(logit) + pooled)

    def pull_back(self, logits: Tensor, weights: Tensor, gradient: Tensor) -> Tensor:
        inner = gradient - (weights * gradient).sum(-1, keepdim=True)
        return _divide(inner * self._slope(logits), self._mass(logits).sum(-1, keepdim=True))

    def most_shared(self, pooled: Tensor, logits: Tensor, sigma: Tensor) -> Tensor:
        # A sum of m terms has m equal slopes at most, so a 2-norm of sqrt(m) times one of them.
        assert self.lipschitz is not None
        steepness = self.lipschitz * math.sqrt(logits.shape[-1])
        mass = self.pool(logits)[..., None] + steepness * sigma
        return _divide(mass, mass + pooled)


def find(name: str) -> Score:
    """Find the score called `name`, or a user's own one, MODULE:NAME."""
    kind = SCORES.load(name)
    if not (isinstance(kind, type) and issubclass(kind, Score)):
        raise InputError(f"score={name!r} must be a class of scores, got {kind!r}", argument="score")
    return kind()


def _where_seen(function: Callable[[Tensor], Tensor], logits: Tensor) -> Tensor:
    # Masked before as well: the gradient of the branch not taken must not be inf * 0.
    unseen = logits.isneginf()
    return function(logits.masked_fill(unseen, 0.0)).masked_fill(unseen, 0.0)


def _divide(part: Tensor, whole: Tensor) -> Tensor:
    # where() on the divisor as well: the gradient of the branch not taken must not be 0/0.
    empty = whole == 0
    return torch.where(empty, 0.0, part / torch.where(empty, 1.0, whole))


def logistic_slopes(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Bound the derivative of 1 / (1 + exp(-l)), which is even and falls with |l|, over intervals of l."""
    near = torch.where((low <= 0) & (high >= 0), 0.0, torch.minimum(low.abs(), high.abs()))
    far = torch.maximum(low.abs(), high.abs())
    return torch.sigmoid(far) * torch.sigmoid(-far), torch.sigmoid(near) * torch.sigmoid(-near)
