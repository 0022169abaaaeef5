"""Structured views equal the dense definition, in value and gradient, for every token."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import wordsway as ws
from wordsway.maps.base import FeatureMap, PlainView, View
from wordsway.maps.features.random_features import FeatureNetwork
from wordsway.testing.map_tests import TOLERANCE, assert_equal_views, plain_view, token_sets, value_and_gradient


def dense_attention(W: Tensor, score: str, temperature: float = 1.0) -> Callable[[Tensor], Tensor]:
    """The definition, written again and apart from the library."""

    def phi(X: Tensor) -> Tensor:
        S = X @ W @ X.T / (temperature * math.sqrt(X.shape[1]))
        if score == "softmax":
            weights = (S - S.amax(1, keepdim=True)).exp()
            return weights @ X / weights.sum(1, keepdim=True)
        total = S.clamp(min=0).sum(1, keepdim=True)
        return torch.where(total > 0, S.clamp(min=0) @ X / total.where(total > 0, torch.ones_like(total)), 0.0)

    return phi


def dense_network(phi: FeatureNetwork) -> Callable[[Tensor], Tensor]:
    network = phi.to_dense()
    weights = [network.first.to_dense(), *(layer.to_dense() for layer in network.hidden)]
    activation = {
        "relu": lambda x: x.clamp(min=0),
        "tanh": torch.tanh,
        "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
        "identity": lambda x: x,
    }[phi.recipe.activation]

    def function(X: Tensor) -> Tensor:
        h = X.flatten()
        for matrix in weights:
            h = activation(matrix.double() @ h)
        return h

    return function


@pytest.mark.parametrize("score", ["softmax", "relu"])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 5), (5, 4), (6, 9)])
@pytest.mark.parametrize("temperature", [1.0, 0.05])
def test_attention_view_is_the_dense_map(score: str, n: int, d: int, temperature: float, rng: torch.Generator) -> None:
    X = ws.synthetic_tokens(n, d, seed=n)
    phi = ws.RandomAttention(score, temperature).sample(d=d, seed=d)
    dense = dense_attention(phi.W, score, temperature)
    torch.testing.assert_close(phi(X), dense(X), rtol=1e-12, atol=1e-12)
    for tokens in token_sets(n):
        plain = plain_view(dense, X, tokens)
        assert_equal_views(phi.view(X, tokens), plain, rng)


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu", "identity"])
@pytest.mark.parametrize(("depth", "width", "lazy"), [(1, None, True), (1, 7, False), (3, 11, True), (2, 30, False)])
def test_feature_view_is_the_dense_map(
    activation: str, depth: int, width: int | None, lazy: bool, rng: torch.Generator
) -> None:
    n, d = 4, 5
    X = ws.synthetic_tokens(n, d, seed=1)
    for tokens in token_sets(n):
        recipe = ws.RandomFeatures(depth, width=width, activation=activation)
        phi = recipe.sample(n=n, d=d, seed=3, lazy=lazy, dtype="float64")
        view = phi.view(X, tokens)
        delta = torch.randn(2, len(tokens), d, generator=rng, dtype=torch.float64)
        before = value_and_gradient(view.sq_norm, delta)  # asked of the lazy map before it becomes dense
        plain = plain_view(dense_network(phi), X, tokens)
        for a, b in zip(before, value_and_gradient(plain.sq_norm, delta), strict=True):
            torch.testing.assert_close(a, b, rtol=TOLERANCE, atol=TOLERANCE)
        assert_equal_views(phi.view(X, tokens), plain, rng)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 7),
    d=st.integers(1, 8),
    score=st.sampled_from(["softmax", "relu"]),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
    seed=st.integers(0, 10**6),
)
def test_attention_view_for_any_text(n: int, d: int, score: str, scale: float, seed: int) -> None:
    """Rows of any norm, logits from tiny to saturated."""
    rng = torch.Generator().manual_seed(seed)
    X = scale * torch.randn(n, d, generator=rng, dtype=torch.float64)
    W = torch.randn(d, d, generator=rng, dtype=torch.float64)
    phi = ws.RandomAttention.from_weights(W, score)
    token = seed % n
    view, plain = phi.view(X, [token]), plain_view(dense_attention(W, score), X, [token])
    delta = scale * torch.randn(5, 1, d, generator=rng, dtype=torch.float64)
    size = max(1.0, plain.base_norm**2, float(plain.sq_norm(delta).max()))
    torch.testing.assert_close(view.sq_norm(delta), plain.sq_norm(delta), rtol=1e-9, atol=1e-9 * size)
    torch.testing.assert_close(view.change(delta), plain.change(delta), rtol=1e-9, atol=1e-9 * math.sqrt(size))


def test_saturated_softmax_keeps_its_digits() -> None:
    """At a low temperature one token holds all the weight; dividing by 1 - p would lose everything."""
    X = ws.synthetic_tokens(5, 6, seed=2)
    phi = ws.RandomAttention("softmax", temperature=1e-3).sample(d=6, seed=1)
    dense = dense_attention(phi.W, "softmax", 1e-3)
    delta = ws.synthetic_tokens(3, 6, seed=9)[:, None]
    for token in range(5):
        plain = plain_view(dense, X, [token])
        found = phi.view(X, [token]).sq_norm(delta)
        torch.testing.assert_close(found, plain.sq_norm(delta), rtol=1e-9, atol=1e-9)


def test_float32_view_is_close_to_float64() -> None:
    X = ws.synthetic_tokens(50, 64, seed=0)
    delta = ws.synthetic_tokens(8, 64, seed=1)[:, None]
    for phi in (ws.RandomAttention().sample(d=64), ws.RandomAttention("relu").sample(d=64)):
        exact = phi.view(X, [3]).sq_norm(delta)
        single = phi.view(X, [3], dtype=torch.float32).sq_norm(delta.float())
        torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-6)


def test_a_text_written_to_gets_a_new_view() -> None:
    X = ws.synthetic_tokens(4, 6, seed=0)
    phi = ws.RandomAttention().sample(d=6)
    first = phi.view(X, [0]).base_norm
    X[1] *= -1
    assert phi.view(X, [0]).base_norm == pytest.approx(float(phi(X).norm()), rel=1e-12)
    assert phi.view(X, [0]).base_norm != first


def test_relu_row_without_positive_scores_stays_zero() -> None:
    X = torch.eye(3, dtype=torch.float64)
    phi = ws.RandomAttention.from_weights(-torch.ones(3, 3, dtype=torch.float64), "relu")
    assert torch.equal(phi(X), torch.zeros(3, 3, dtype=torch.float64))
    view = phi.view(X, [0])
    delta = torch.tensor([[[-2.0, 0.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    value = view.sq_norm(delta)
    (gradient,) = torch.autograd.grad(value.sum(), delta)
    assert value.item() > 0
    assert torch.isfinite(gradient).all()


MAPS = [
    "rf",
    "drf",
    "rf:activation=tanh",
    "raf",
    "relu-raf",
    "raf:heads=2,causal",
    "raf:score=linear",
    "raf:score=sparsemax",
    "transformer:depth=2",
]


@pytest.mark.parametrize("name", MAPS)
def test_views_of_a_prepared_text_equal_views_made_anew(name: str, rng: torch.Generator) -> None:
    X, delta = ws.synthetic_tokens(6, 8, seed=1), torch.randn(3, 1, 8, generator=rng, dtype=torch.float64)
    phi = ws.named_map(name, 6, 8, 2)
    prepared = phi.prepare(X)
    for token in (0, 4):
        for dtype in (torch.float32, torch.float64, torch.float32):
            shared, anew = prepared.view([token], dtype=dtype), phi.view(X, [token], dtype=dtype)
            # A lazy map may answer a question that it knows already with another last digit.
            assert shared.dtype == dtype and shared.base_norm == pytest.approx(anew.base_norm, rel=1e-6)
            torch.testing.assert_close(shared.change(delta.to(dtype)), anew.change(delta.to(dtype)))
    torch.testing.assert_close(prepared.features(), phi(X).flatten())
    with pytest.raises(ws.InputError, match="token"):
        prepared.view([6])


@pytest.mark.parametrize("name", MAPS)
def test_writing_to_a_prepared_text_changes_no_answer(name: str) -> None:
    X, delta = ws.synthetic_tokens(6, 8, seed=1), torch.linspace(-1, 1, 8, dtype=torch.float64)[None]
    before = ws.named_map(name, 6, 8, 2).view(X, [1]).change(delta)
    phi = ws.named_map(name, 6, 8, 2)
    prepared = phi.prepare(X)
    X[3] += delta[0]
    torch.testing.assert_close(prepared.view([1]).change(delta), before)
    assert not torch.allclose(phi.view(X, [1]).change(delta), before)  # prepared anew, it is another text


def test_a_map_with_make_view_alone_is_enough() -> None:
    class Square(FeatureMap):
        n = d = None

        def __call__(self, X: Tensor) -> Tensor:
            return X.square()

        def make_view(self, X: Tensor, tokens: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> View:
            return PlainView(lambda texts: texts.square().flatten(1), X, tokens, dtype, device)

        def config(self) -> dict[str, str]:
            return {"map": "square"}

    X = ws.synthetic_tokens(4, 6, seed=0)
    view = Square().prepare(X).view([1])
    delta = torch.ones(1, 6, dtype=torch.float64)
    assert float(view.sq_norm(delta)) == pytest.approx(float(((X[1] + 1).square() - X[1].square()).square().sum()))
    assert ws.word_sensitivity(Square(), X, 1).lower > 0
