"""The last digits of a search: a quasi-Newton descent from one point, on the same sphere that the ascent walks on.

Where an objective is smooth, ascent by steps of given angle comes to its neighbourhood and this to the maximum; where
valleys are narrow (two squares with unlike weights), this is what follows them. It keeps the best point that it saw, so
kinks can stop it but not make it worse than where it began.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.search.regions import FROM_THE_EDGE, Region


def polish(
    objective: Callable[[Float[Tensor, "1 m d"]], Float[Tensor, "1"]],
    region: Region,
    delta: Float[Tensor, "m d"],
    steps: int,
) -> tuple[Float[Tensor, "m d"], float, int]:
    """A delta nearby where `objective` is at least as large, its value there, and the number of evaluations (with a
    gradient)."""
    from scipy.optimize import minimize

    delta = region.project(delta)
    best, best_delta, evaluations = -torch.inf, delta, 0

    def evaluate(move: Tensor) -> tuple[float, Tensor]:
        nonlocal best, best_delta, evaluations
        move = move.detach()[None].requires_grad_(True)
        value = objective(move)
        (gradient,) = torch.autograd.grad(value.sum(), move)
        evaluations += 1
        found = float(value.detach())
        if found > best:
            best, best_delta = found, move.detach()[0]
        return found, gradient[0]

    def loss(point: Any) -> tuple[float, Any]:
        """-objective at point / |point|, with its gradient: scipy works on float64 arrays."""
        vector = torch.from_numpy(point)
        size = vector.norm()
        e = vector / size
        value, gradient = evaluate(region.delta(e).to(delta))
        pulled = region.radius * region.pull_back(gradient.to("cpu", torch.float64))
        return -value, (-(pulled - (pulled @ e) * e) / size).numpy()

    evaluate(delta)
    if steps >= 1:
        start = region.unit(delta.to("cpu", torch.float64), FROM_THE_EDGE)
        options: dict[str, Any] = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "gtol": 0.0}
        options["ftol"] = torch.finfo(delta.dtype).eps
        minimize(loss, start.numpy(), jac=True, method="L-BFGS-B", options=options)
    return best_delta, best, evaluations
