"""The bounds over an ellipsoid: attained up to little, so that a smaller one would be wrong."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsway as ws
from ellipsoids import furthest_found
from wordsway.certificates.certify import certify
from wordsway.certificates.ellipsoid_bound import Ellipsoid, Image


def drawn(d: int, centred: bool, seed: int) -> tuple[Ellipsoid, torch.Generator]:
    rng = torch.Generator().manual_seed(seed)
    gamma = torch.randn(d, generator=rng, dtype=torch.float64) + (seed % 3)
    beta = torch.randn(d, generator=rng, dtype=torch.float64) * (seed % 2)
    return Ellipsoid(gamma, beta, centred, math.sqrt(d)), rng


@settings(max_examples=60, deadline=None)
@given(d=st.integers(2, 40), centred=st.booleans(), scale=st.sampled_from([0.0, 1.0, 30.0]), seed=st.integers(0, 10**6))
def test_the_furthest_point(d: int, centred: bool, scale: float, seed: int) -> None:
    ellipsoid, rng = drawn(d, centred, seed)
    point = scale * torch.randn(d, generator=rng, dtype=torch.float64)
    found, _ = furthest_found(ellipsoid, torch.eye(d, dtype=torch.float64), point, rng)
    bound = float(ellipsoid.furthest(point[None])[0])
    assert found <= bound
    # Weak duality loses what the largest entry loses by its mean, at most 1 in d of the square.
    assert bound <= found * (1 + (1.0 / d if centred else 0.0) + 1e-3)


@settings(max_examples=60, deadline=None)
@given(
    d=st.integers(2, 20),
    k=st.integers(1, 40),
    centred=st.booleans(),
    scale=st.sampled_from([0.0, 1.0, 30.0]),
    seed=st.integers(0, 10**6),
)
def test_the_furthest_image(d: int, k: int, centred: bool, scale: float, seed: int) -> None:
    ellipsoid, rng = drawn(d, centred, seed)
    weight = torch.randn(k, d, generator=rng, dtype=torch.float64)
    point = scale * torch.randn(k, generator=rng, dtype=torch.float64)
    found, _ = furthest_found(ellipsoid, weight, point, rng)
    image = Image.of(weight)
    assert (image.gram is None) == (k <= d)
    assert found <= ellipsoid.furthest_image(image, point) <= found * (1 + 2e-3) + 1e-9


@pytest.mark.parametrize("centred", [True, False])
def test_ranges_are_attained(centred: bool) -> None:
    ellipsoid, rng = drawn(12, centred, 5)
    v = torch.randn(12, generator=rng, dtype=torch.float64)
    z = ellipsoid.gamma * v
    z = z - z.mean() if centred else z
    z = ellipsoid.reach * z / z.norm()
    low, high = ellipsoid.ranges(v[None])
    for sign, bound in ((1, high), (-1, low)):
        attained = v @ (sign * ellipsoid.gamma * z + ellipsoid.beta)
        assert abs(float(attained - bound[0])) <= 1e-7 * abs(float(attained)), sign
        assert sign * float(attained) <= sign * float(bound[0])


def test_allowances_for_rounding_are_attained() -> None:
    """Points that are off by just as much as is allowed, the worst way, stay inside; half of either does not."""
    d = 8
    gamma, beta = torch.linspace(1, 2, d, dtype=torch.float64), torch.linspace(-1, 3, d, dtype=torch.float64)
    v = torch.linspace(-1, 2, d, dtype=torch.float64)
    exact = Ellipsoid(gamma, beta, True, math.sqrt(d))
    top = float(exact.ranges(v[None])[1][0])
    for aside, grain in ((0.1, 0.0), (0.0, 0.1)):
        wide = Ellipsoid(gamma, beta, True, math.sqrt(d), aside, grain)
        reached = top + aside * abs(float(v @ gamma)) + grain * float((v * beta).abs().sum())
        bound = float(wide.ranges(v[None])[1][0])
        assert reached * (1 - 1e-6) <= bound <= reached * (1 + 1e-6)
        worst = aside * gamma + grain * beta.abs()
        point = -1e6 * (worst / worst.norm())  # from far away, a distance is an inner product
        gained = float(wide.furthest(point[None])[0] - exact.furthest(point[None])[0])
        assert gained >= float(worst.norm()) * (1 - 1e-6)
        identity = Image.of(torch.eye(d, dtype=torch.float64))
        gained = wide.furthest_image(identity, point) - exact.furthest_image(identity, point)
        assert gained >= float(worst.norm()) * 0.99
        signs = Image.of((aside * gamma + grain * beta).sign()[None])  # all entries of one sum, off in one direction
        far = torch.tensor([-1e6], dtype=torch.float64)
        assert wide.furthest_image(signs, far) - exact.furthest_image(signs, far) >= float(worst.sum()) * 0.99
        assert float(wide.sizes(v[None])[0]) >= float(exact.sizes(v[None])[0])


def test_dead_and_flat_coordinates() -> None:
    """A gamma of 0, or one that differs by thirty orders of magnitude, as trained models have."""
    zeros = torch.zeros(4, dtype=torch.float64)
    point = Ellipsoid(zeros, zeros + 3, False, 2.0)
    assert float(point.furthest(zeros[None])[0]) == pytest.approx(6.0, rel=1e-6)
    gamma = torch.tensor([1e-32, 1.0, 1.0, 1.0], dtype=torch.float64)
    ellipsoid = Ellipsoid(gamma, zeros, True, 2.0, 1e-3, 1e-7)
    low, high = ellipsoid.ranges(torch.tensor([[1e31, 0, 0, 0]], dtype=torch.float64))
    assert float(high[0]) <= 0.21 and float(low[0]) >= -0.21


@pytest.mark.parametrize("n", [1, 3])
def test_the_bound_of_a_random_transformer_is_attained(n: int) -> None:
    """The last token of a causal one, without a perceptron and with one thing to attend to, turns its row around; rows
    before it stay, so they would show if they were counted."""
    phi = ws.RandomTransformer(norm="post", mlp_ratio=0, causal=True).sample(d=8, seed=1)
    X = ws.synthetic_tokens(n, 8, seed=2).double()
    view = phi.view(X, [n - 1])
    moves = torch.linspace(-300, 300, 601, dtype=torch.float64)[:, None, None] * X[-1] - X[-1]
    found = float(view.relative_changes(moves).max())
    upper = certify(view, 1.0).upper
    assert upper is not None and 0.9 * upper <= found <= upper
    assert upper == pytest.approx(2 / math.sqrt(n), rel=1e-3)
