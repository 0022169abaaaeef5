"""The walk along the boundary of a prediction, where its nearest point is known."""

import pytest
import torch
from torch import Tensor

from wordsway.search.boundary import descend


def reach(u: Tensor) -> Tensor:
    """How far it is to the boundary: at least 1, along the first axis."""
    return 2 - u[..., 0] + (u[..., 1] / 2).square()


def margin(moves: Tensor) -> tuple[Tensor, Tensor]:
    """Along each direction the margin flattens: a Newton step from within promises less than the boundary's length."""
    with torch.enable_grad():
        x = moves.detach().requires_grad_(True)
        length = x.norm(dim=2)
        values = 1 - (reach(x / length[..., None]) / length) ** 6
        (gradient,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), gradient


@pytest.mark.parametrize("start", [0.85, 1.0, 1.1])
def test_a_walk_ends_at_the_nearest_point(start: float) -> None:
    u = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u = u / u.norm(dim=2, keepdim=True)
    _, last, _ = descend(margin, u, start * reach(u), 40)
    assert bool((last.r > 1 - 1e-3).all()) and bool((last.r < 1.01).all())
    values, _ = margin(last.u * 1.002 * last.r[..., None])
    assert bool((values > 0).all())
