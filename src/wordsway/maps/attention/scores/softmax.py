"""Softmax: weights in proportion to exp(l)."""

import torch
from torch import Tensor

from wordsway.maps.attention.scores.base import PooledScore, logistic_slopes


class Softmax(PooledScore):
    """exp(l) / sum exp(l). A pool is the logarithm of the sum, which is a token's logit with the same weight."""

    monotone = True
    lipschitz = 1.0  # the gradient of logsumexp is a row of weights: its 2-norm is at most 1, however many tokens
    exponential = True

    def mass(self, logits: Tensor) -> Tensor:
        return logits.exp()

    def slopes(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return low.exp(), high.exp()

    def share_slopes(self, pooled: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return logistic_slopes(low - pooled, high - pooled)

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

    def most_shared(self, pooled: Tensor, logits: Tensor, sigma: Tensor) -> Tensor:
        return self.share(pooled, self.pool(logits)[..., None] + sigma)
