"""Balls so small that a difference of features is rounding: bounds in the right order, and changes to first order."""

import math

import pytest
import torch

import wordsway as ws
from wordsway.maps.base import FeatureMap

MAPS = [
    "raf", "raf:heads=2", "raf:causal", "raf:temperature=0.05", "relu-raf", "relu2-raf", "sigmoid-raf", "softplus-raf",
    "sparsemax-raf", "linear-raf", "rf", "drf", "rf:activation=identity", "rf:activation=tanh", "transformer",
    "transformer:depth=2,causal",
]  # fmt: skip
RADII = [1e-3, 1e-6, 1e-8, 1e-13, 1e-100, 1e-160, 1e-300]


def measure(phi: FeatureMap, X: torch.Tensor, radius: float) -> ws.Sensitivity:
    return ws.word_sensitivity(phi, X, 0, radius=radius, budget=60, random_draws=20)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("name", MAPS)
def test_bounds_are_in_order_at_every_radius(name: str, n: int) -> None:
    X = ws.synthetic_tokens(n, 8, seed=2)
    for radius in RADII:
        r = measure(ws.named_map(name, n, 8, seed=3), X, radius)
        assert r.random is not None
        assert r.upper is None or r.lower <= r.upper, radius
        assert r.random.mean <= r.lower * (1 + 1e-12), radius  # the mean of equal numbers is rounded too
        assert float((r.delta / r.radius).norm()) <= 1 + 1e-12, radius
        assert r.lower == 0 or 1e-3 * radius < r.lower < 1e3 * radius, radius


@pytest.mark.parametrize("name", MAPS)
def test_a_tiny_ball_is_a_small_ball_scaled_down(name: str) -> None:
    """The change is in proportion to the radius where the map is as good as linear."""
    X, phi = ws.synthetic_tokens(5, 8, seed=0), ws.named_map(name, 5, 8, seed=1)
    small = measure(phi, X, 1e-5)
    for radius in (1e-8, 1e-200):
        tiny = measure(phi, X, radius)
        assert tiny.lower / radius == pytest.approx(small.lower / 1e-5, rel=2e-3)
        assert tiny.checked == "derivative, float64"
        if tiny.upper is not None and not phi.remembers:
            assert tiny.upper / tiny.lower <= 1.7


def test_one_token_of_attention_is_the_move_itself() -> None:
    X, phi = ws.synthetic_tokens(1, 6, seed=0), ws.RandomAttention().sample(d=6)
    for radius in RADII:
        r = measure(phi, X, radius)
        assert r.upper is not None
        assert r.lower == pytest.approx(radius / math.sqrt(6), rel=1e-6)
        assert r.upper == pytest.approx(radius / math.sqrt(6), rel=1e-6)


def test_saturated_rows_do_not_report_rounding() -> None:
    """Weights of almost 0 and 1: the features change by less than float64 can show."""
    X = 4 * torch.randn(9, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    phi = ws.RandomAttention().sample(d=8, seed=0)
    for radius in (1e-2, 1e-5, 1e-9):
        for entry in ws.word_sensitivity(phi, X, "all", radius=radius, budget=60).per_token:
            assert entry.upper is not None and entry.lower <= entry.upper


def test_the_derivative_is_that_of_the_change() -> None:
    X = ws.synthetic_tokens(5, 8, seed=0)
    deltas = torch.randn(4, 1, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for name in MAPS:
        view = ws.named_map(name, 5, 8, seed=1).view(X, [2], dtype=torch.float64)
        exact = view.derivative(deltas)
        step = 1e-7
        torch.testing.assert_close(view.change(step * deltas) / step, exact, rtol=1e-4, atol=1e-4)


def test_a_map_without_a_derivative_says_so() -> None:
    class Cubed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, *grads: torch.Tensor) -> torch.Tensor:
            return 3 * ctx.saved_tensors[0] ** 2 * grads[0]

    def cubed(X: torch.Tensor) -> torch.Tensor:
        return Cubed.apply(X)  # pyright: ignore[reportReturnType]

    X = ws.synthetic_tokens(3, 4, seed=0)
    assert ws.word_sensitivity(cubed, X, 0, radius=1e-5).lower > 0
    with pytest.raises(ws.InputError, match="radius is too small for a difference"):
        ws.word_sensitivity(cubed, X, 0, radius=1e-9)
    with pytest.raises(ws.InputError, match="at least 1e-300"):
        ws.word_sensitivity(cubed, X, 0, radius=1e-305)


@pytest.mark.parametrize("name", ["raf", "rf", "transformer"])
def test_several_tokens_in_tiny_balls(name: str) -> None:
    X = ws.synthetic_tokens(6, 8, seed=0)
    for radius in (1e-7, 1e-200):
        phi = ws.named_map(name, 6, 8, seed=0)
        r = ws.word_sensitivity(phi, X, radius=radius, tokens_at_once=2, random_draws=20, budget=60)
        assert r.random is not None and r.random.mean <= r.lower * (1 + 1e-12)
        assert r.upper is None or r.lower <= r.upper
        assert 0.01 < r.lower / radius < 100
