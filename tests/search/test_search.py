"""The search stays feasible, never falls below its starts, finds maxima that are known, and always finds the same."""

import math

import pytest
import torch
from torch import Tensor

import wordsway as ws
from wordsway.maps.ascents import Ascent
from wordsway.maps.base import FeatureMap, View
from wordsway.maps.features.random_features import FeatureView
from wordsway.search.ascent import Found, maximize, start_points
from wordsway.search.regions import Ball, Region, Sphere

MAPS = ["rf", "drf", "raf", "relu-raf"]


def search(
    phi: FeatureMap, X: Tensor, region: Region, seed: int = 0, ascent: Ascent | None = None
) -> tuple[View, Found]:
    view = phi.view(X, [0], dtype=torch.float64)
    return view, maximize([view], phi.sq_norms([view]), region, seed, ascent)[0]


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("shape", [(1, 4), (2, 3), (6, 8), (30, 16)])
def test_feasible_and_not_below_its_starts(name: str, shape: tuple[int, int]) -> None:
    n, d = shape
    X = ws.synthetic_tokens(n, d, seed=4)
    phi = ws.named_map(name, n, d, seed=1)
    region = Ball(math.sqrt(d), 1, d)
    view = phi.view(X, [0], dtype=torch.float64)
    ascent = view.ascent()
    points, _ = start_points([view], phi.sq_norms([view]), region, 0, min(ascent.starts, ascent.budget // 3))
    at_starts = view.sq_norm(region.delta(points[0]))
    fresh = ws.named_map(name, n, d, seed=1)  # a lazy map answers by the order of questions, so ask a new one
    _, found = search(fresh, X, region)
    assert region.contains(found.delta[None]).all()
    assert found.value >= float(at_starts.max()) * (1 - 1e-6)
    assert found.evaluations <= ascent.budget


@pytest.mark.parametrize("seed", [0, 2, 4])
@pytest.mark.parametrize("lazy", [True, False])
def test_linear_features_have_a_known_maximum(lazy: bool, seed: int) -> None:
    """Identity activation: the supremum is the top singular value of V_i. The last questions of the search are nearly
    the same one, and their rounding errors must not be taken for new directions of a lazy V_i."""
    n, d = 5, 12
    X = ws.synthetic_tokens(n, d, seed=0)
    phi = ws.RandomFeatures(activation="identity").sample(n=n, d=d, seed=seed, lazy=lazy, dtype="float64")
    ascent = Ascent(budget=400, starts=2, survivors=1, race_steps=10, first_angle=0.8, last_angle=1e-4)
    view, found = search(phi, X, Sphere(math.sqrt(d), 1, d), ascent=ascent)
    assert isinstance(view, FeatureView)
    block = view.blocks[0].to_dense()
    top = float(torch.linalg.matrix_norm(block, 2)) * math.sqrt(d)
    assert math.sqrt(found.value) == pytest.approx(top, rel=1e-6)
    assert math.sqrt(found.value) <= top * (1 + 1e-9)


def test_a_maximum_inside_the_ball_is_found() -> None:
    """A bump that is highest at a delta of norm 0.4 radius, and lower everywhere on the sphere."""
    d = 9
    X = ws.synthetic_tokens(3, d, seed=0)
    goal = X[0] + 0.4 * ws.synthetic_tokens(1, d, seed=5)[0]

    def bump(text: Tensor) -> Tensor:
        return torch.stack([torch.exp(-(text[0] - goal).square().sum()), text.new_tensor(1e-3)])

    _, found = search(ws.FromCallable(bump), X, Ball(math.sqrt(d), 1, d))
    assert float(found.delta.norm()) == pytest.approx(0.4 * math.sqrt(d), rel=1e-2)
    base = float(torch.exp(-(X[0] - goal).square().sum()))
    assert math.sqrt(found.value) == pytest.approx(1 - base, rel=1e-4)


def test_small_attention_is_searched_to_the_end() -> None:
    """n=2, d=2: a fine grid over the disc is an independent answer."""
    grid = torch.linspace(-1, 1, 301, dtype=torch.float64)
    disc = torch.cartesian_prod(grid, grid) * math.sqrt(2)
    disc = disc[disc.norm(dim=1) <= math.sqrt(2)]
    for score in ("softmax", "relu"):
        for seed in range(6):
            X = ws.synthetic_tokens(2, 2, seed=seed)
            phi = ws.RandomAttention(score).sample(d=2, seed=seed)
            view, found = search(phi, X, Ball(math.sqrt(2), 1, 2))
            best = float(view.sq_norm(disc[:, None]).max())
            assert found.value >= best * (1 - 1e-3), (score, seed)


@pytest.mark.parametrize("name", MAPS)
def test_same_seed_same_delta(name: str) -> None:
    X = ws.synthetic_tokens(8, 12, seed=0)
    first, again = (ws.word_sensitivity(ws.named_map(name, 8, 12, seed=3), X, 2, seed=5) for _ in range(2))
    assert torch.equal(first.delta, again.delta)
    assert first.lower == again.lower
    assert first.random == again.random


def test_other_views_do_not_change_a_path() -> None:
    X = ws.synthetic_tokens(6, 10, seed=0)
    phi = ws.RandomAttention().sample(d=10)
    region = Ball(math.sqrt(10), 1, 10)
    views = [phi.view(X, [i]) for i in range(6)]
    together = maximize(views, phi.sq_norms(views), region, 0)
    for view, found in zip(views, together, strict=True):
        alone = maximize([view], phi.sq_norms([view]), region, 0)[0]
        assert found.value == pytest.approx(alone.value, rel=1e-4)


def test_more_budget_does_not_hurt() -> None:
    worse = 0
    for seed in range(5):
        X = ws.synthetic_tokens(20, 48, seed=seed)
        phi = ws.RandomAttention().sample(d=48, seed=seed)
        small, large = (ws.word_sensitivity(phi, X, 0, budget=b, certificate=False).lower for b in (60, 4000))
        worse += large < small * (1 - 1e-6)
    assert worse == 0


@pytest.mark.slow
@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_not_below_published_gradient_steps(score: str) -> None:
    """Projected gradient on the dense map, learning rate 10, 50 n steps, as published."""
    n, d = 20, 64
    shares = []
    for seed in range(10):
        X = ws.synthetic_tokens(n, d, seed=seed)
        phi = ws.RandomAttention(score).sample(d=d, seed=seed)
        base = phi(X)
        delta = torch.full((d,), 0.1, dtype=torch.float64)
        best = 0.0
        for _ in range(50 * n):
            delta.requires_grad_(True)
            change = phi(torch.cat([(X[0] + delta)[None], X[1:]])) - base
            (gradient,) = torch.autograd.grad(-change.square().mean().sqrt(), delta)
            best = max(best, float(change.detach().norm() / base.norm()))
            delta = delta.detach() - 10 * gradient
            delta = delta * min(1.0, math.sqrt(d) / float(delta.norm()))
        shares.append(ws.word_sensitivity(phi, X, 0, certificate=False, random_draws=0).lower / best)
    assert min(shares) >= (1 - 1e-9 if score == "softmax" else 0.99)


@pytest.mark.parametrize("kind", [Ball, Sphere])
def test_regions(kind: type[Region], rng: torch.Generator) -> None:
    region = kind(2.0, 2, 3)
    drawn = region.sample(50, 0, "x")
    torch.testing.assert_close(drawn.flatten(1).norm(dim=1), torch.full((50,), 2.0))
    assert region.contains(drawn).all()
    assert not region.contains(1.01 * drawn).any()
    assert bool(region.contains(0.5 * drawn).all()) == (kind is Ball)
    torch.testing.assert_close(region.project(3 * drawn), drawn)
    inside = torch.arange(50) % 2 == 0
    points = region.point(torch.randn(50, 2, 3, generator=rng), inside)
    torch.testing.assert_close(points.norm(dim=1), torch.ones(50))
    assert region.contains(region.delta(points)).all()
    assert torch.isfinite(region.point(torch.zeros(1, 2, 3), inside[:1])).all()
