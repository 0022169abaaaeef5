"""ReLU scores: weights in proportion to max(l, 0), or to its square."""

import torch
from torch import Tensor

from wordsway.maps.attention.scores.base import Ratio


class Relu(Ratio):
    """f(l) = max(l, 0)."""

    monotone = True
    lipschitz = 1.0
    silences = True
    takes_unseen = True

    def f(self, logits: Tensor) -> Tensor:
        return torch.relu(logits)

    def slope(self, logits: Tensor) -> Tensor:
        return (logits > 0).to(logits.dtype)

    def slopes(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return self.slope(low), self.slope(high)  # f is convex


class SquaredRelu(Ratio):
    """f(l) = max(l, 0)^2, which has no Lipschitz constant."""

    monotone = True
    silences = True
    takes_unseen = True

    def f(self, logits: Tensor) -> Tensor:
        return torch.relu(logits).square()

    def slope(self, logits: Tensor) -> Tensor:
        return 2 * torch.relu(logits)

    def slopes(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return self.slope(low), self.slope(high)  # f is convex
