"""The last digits of a search: a quasi-Newton descent from one point, on the same sphere that the ascent walks on.

Where an objective is smooth, ascent by steps of given angle comes to its neighbourhood and this to the maximum; where
valleys are narrow (two squares with unlike weights), this is what follows them. It keeps the best point that it saw, so
kinks can stop it but not make it worse than where it began.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.constraints import Region

_FROM_THE_EDGE = 1e-3  # a point on the edge of a ball has no gradient inwards, so begin this far from it


def polish(
    objective: Callable[[Float[Tensor, "1 m d"]], Float[Tensor, "1"]],
    region: Region,
    delta: Float[Tensor, "m d"],
    steps: int,
) -> tuple[Float[Tensor, "m d"], int]:
    """A delta nearby where `objective` is at least as large, and the number of evaluations (with a gradient)."""
    start = region.unit(region.project(delta), _FROM_THE_EDGE)
    best, best_delta, evaluations = -torch.inf, delta, 0

    def evaluate(point: Tensor) -> Tensor:
        nonlocal best, best_delta, evaluations
        moved = region.delta(point / point.norm())[None]
        value = objective(moved)
        evaluations += 1
        if float(value.detach()) > best:
            best, best_delta = float(value.detach()), moved[0].detach()
        return -value.sum()

    evaluate(region.unit(region.project(delta), 0.0))  # where it began, to the digit
    if steps < 1:
        return best_delta, evaluations
    point = start.detach().requires_grad_(True)
    optimizer = torch.optim.LBFGS(
        [point],
        max_iter=steps,
        max_eval=2 * steps,
        history_size=20,
        tolerance_grad=1e-13,
        tolerance_change=1e-15,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = evaluate(point)
        loss.backward()
        return loss.detach()

    optimizer.step(closure)  # pyright: ignore[reportArgumentType]
    return best_delta, evaluations
