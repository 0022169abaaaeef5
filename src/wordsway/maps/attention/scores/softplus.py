"""Softplus: weights in proportion to log(1 + exp(l))."""

import torch
from torch import Tensor

from wordsway.maps.attention.scores.base import Ratio


class Softplus(Ratio):
    """f(l) = log(1 + exp(l)). Not torch's own, which steps down by 2e-9 at 20, where it turns to the identity."""

    monotone = True
    lipschitz = 1.0
    takes_unseen = True

    def f(self, logits: Tensor) -> Tensor:
        return torch.logaddexp(logits, torch.zeros_like(logits))

    def slope(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits)

    def slopes(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return self.slope(low), self.slope(high)  # f is convex
