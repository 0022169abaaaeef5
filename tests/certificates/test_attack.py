"""The attack that certificates are tried with: it finds maxima that are known, so that a bound it cannot break says
something."""

import pytest
import torch
from torch import Tensor

import wordsway as ws
from wordsway.testing.attack import attack, attack_all, lbfgs


def test_lbfgs_finds_minima_side_by_side(rng: torch.Generator) -> None:
    """Rosenbrock's valley, from several starts, in units that differ a thousandfold."""
    scale = torch.tensor([1.0, 1e-3, 1e3], dtype=torch.float64)

    def loss(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.clone().requires_grad_()
        values = scale * (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(1)
        return values.detach(), torch.autograd.grad(values.sum(), x)[0]

    found = lbfgs(loss, torch.rand(3, 4, generator=rng, dtype=torch.float64), 400)
    assert torch.allclose(found, torch.ones_like(found), atol=1e-4)


def test_the_norm_of_a_linear_map_is_found() -> None:
    """Of every token and at every radius at once: the largest change is the radius times an operator norm."""
    rng = torch.Generator().manual_seed(0)
    weight = torch.randn(20, 4 * 6, generator=rng, dtype=torch.float64)
    phi = ws.FromCallable(lambda X: weight.to(X) @ X.flatten())
    X = torch.randn(4, 6, generator=rng, dtype=torch.float64)
    views = [phi.view(X, [token]) for token in range(3)]
    radii = torch.tensor([[0.01, 1.0, 5.0]] * 3, dtype=torch.float64)
    found = attack_all(phi, views, radii, 600)
    for token, row in enumerate(found):
        exact = torch.linalg.matrix_norm(weight[:, 6 * token : 6 * token + 6], 2) / (weight @ X.flatten()).norm()
        assert torch.allclose(row, exact * radii[token], rtol=1e-4)
        assert attack(views[token], 2.0, 200) == pytest.approx(2 * float(exact), rel=1e-4)
