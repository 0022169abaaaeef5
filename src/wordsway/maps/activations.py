"""Activations with the constants that the mathematics needs."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from wordsway.support.errors import InputError


@dataclass(frozen=True)
class Activation:
    """phi, its Lipschitz constant, whether it is monotone, and the variance gain that keeps norms over layers."""

    name: str
    function: Callable[[Tensor], Tensor]
    lipschitz: float
    monotone: bool
    gain: float = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return self.function(x)


# GELU's derivative is largest at sqrt(2): Phi(sqrt 2) + sqrt(2) pdf(sqrt 2) = 1.12890..., rounded up.
ACTIVATIONS = (
    Activation("relu", torch.relu, 1.0, True, gain=2.0),
    Activation("tanh", torch.tanh, 1.0, True),
    Activation("gelu", torch.nn.functional.gelu, 1.12905, False),
    Activation("identity", lambda x: x, 1.0, True),
)


def find(name: str) -> Activation:
    """The activation called `name`."""
    for activation in ACTIVATIONS:
        if activation.name == name:
            return activation
    known = ", ".join(a.name for a in ACTIVATIONS)
    raise InputError(f"activation={name!r} is not known; use one of: {known}", argument="activation")
