"""Sigmoid: weights in proportion to 1 / (1 + exp(-l))."""

import torch
from torch import Tensor

from wordsway.maps.attention.scores.base import Ratio, logistic_slopes


class Sigmoid(Ratio):
    """f(l) = 1 / (1 + exp(-l))."""

    monotone = True
    lipschitz = 0.25  # its slope f (1 - f) is largest at f = 1/2
    takes_unseen = True

    def f(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits)

    def slope(self, logits: Tensor) -> Tensor:
        value = torch.sigmoid(logits)
        return value * (1 - value)

    def slopes(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return logistic_slopes(low, high)
