"""Objectives that a move of one word minimises, so that the model follows a flipped label.

Notation is that of `generalization`: a move changes the features, and all that matters of the change are its inner
products with t / |t|^2 and with theta*.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import View


@dataclass(frozen=True)
class FlipObjective:
    """An objective of a move, as a function of its two inner products: with t / |t|^2 and with theta*."""

    before: float
    y: int
    aim: str
    penalty: float

    def outcome(self, inner: Float[Tensor, "*batch 2"]) -> tuple[Tensor, Tensor, Tensor]:
        """F, f(X', theta*) - f(X, theta*), and f(X', theta_f/r)."""
        alignment, told = 1 + inner[..., 0], inner[..., 1]
        return alignment, told, self.before + told + alignment * (self.y - self.before)

    def squares(self, inner: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
        """Return the quantity to minimise: the sum of squares of affine functions of the two inner products."""
        matrix, constant = self.affine
        return (inner @ matrix + constant).square().sum(-1)

    @cached_property
    def affine(self) -> tuple[Float[Tensor, "2 r"], Float[Tensor, " r"]]:
        """F + 1, or what f(X', theta_f/r) misses -y by; then the penalised difference."""
        if self.aim == "align":
            rows, constant = [[1.0], [0.0]], [2.0]
        elif self.aim == "error":
            rows, constant = [[self.y - self.before], [1.0]], [2.0 * self.y]
        else:
            rows, constant = [[self.y - self.before, 0.0], [1.0, math.sqrt(self.penalty)]], [2.0 * self.y, 0.0]
        return torch.tensor(rows, dtype=torch.float64), torch.tensor(constant, dtype=torch.float64)

    def gain(self, view: View, targets: Float[Tensor, "2 k"]) -> Callable[[Tensor], Tensor]:
        """Return minus `squares` as a function of delta, computed through a view, for a search to maximise."""
        matrix, constant = (part.to(view.device, view.dtype) for part in self.affine)
        products = view.inner_products(targets)
        return lambda delta: -(products(delta) @ matrix + constant).square().sum(-1)
