"""Tests of a feature map: its view equals its plain definition, in values, gradients and batches."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wordsway.maps.base import FeatureMap, PlainView, View
from wordsway.maps.named import named_map
from wordsway.tokens import synthetic_tokens

TOLERANCE = 1e-10  # of values and gradients in float64; sums over features come in another order


def value_and_gradient(function: Callable[[Tensor], Tensor], delta: Tensor) -> tuple[Tensor, Tensor]:
    """Evaluate a function of deltas, and the gradient of a weighted sum of its values."""
    delta = delta.clone().requires_grad_(True)
    value = function(delta)
    weights = torch.linspace(0.5, 1.5, value.numel(), dtype=value.dtype).reshape(value.shape)
    return value.detach(), torch.autograd.grad((weights * value).sum(), delta)[0]


def plain_view(function: Callable[[Tensor], Tensor], X: Tensor, tokens: list[int]) -> PlainView:
    """Make a view that evaluates a function of a text as it is, one text at a time."""
    return PlainView(lambda texts: torch.stack([function(x).flatten() for x in texts]), X, tokens, torch.float64, "cpu")


def assert_equal_views(view: View, plain: PlainView, rng: torch.Generator) -> None:
    """Compare all that a view computes with whole evaluations, for single deltas and for batches."""
    m, d = len(view.tokens), view.X.shape[1]
    targets = torch.randn(3, plain._base.numel(), generator=rng, dtype=torch.float64)
    assert abs(view.base_norm - plain.base_norm) <= 1e-12 * plain.base_norm
    for batch in ((), (4,), (2, 3)):
        delta = torch.randn(*batch, m, d, generator=rng, dtype=torch.float64)
        pairs = [
            (view.sq_norm, plain.sq_norm),
            (view.change, plain.change),
            (view.inner_products(targets), plain.inner_products(targets)),
        ]
        for ours, reference in pairs:
            found, wanted = value_and_gradient(ours, delta), value_and_gradient(reference, delta)
            for a, b in zip(found, wanted, strict=True):
                assert a.shape == b.shape
                torch.testing.assert_close(a, b, rtol=TOLERANCE, atol=TOLERANCE)


def token_sets(n: int) -> list[list[int]]:
    """Choose sets of tokens to move: each alone, two, all, and some out of order."""
    sets = [[i] for i in range(n)]
    if n >= 2:
        sets += [[n - 1, 0], list(range(n))]
    if n >= 4:
        sets += [[3, 1, 2]]
    return sets


def name_of(config: dict[str, Any]) -> str:
    """Write what a map's `config()` prints as a name for `--map`."""
    given = {key: value for key, value in config.items() if key not in ("map", "seed", "d", "lazy")}
    shown = {key: str(value).lower() if isinstance(value, bool) else value for key, value in given.items()}
    options = ",".join(f"{key}={value}" for key, value in shown.items() if value is not None)
    return f"{config['map']}:{options}" if options else config["map"]


class MapTests:
    """Tests of one map. Bring `make(n, d, seed)`, a map with weights for texts of n tokens and d coordinates, and
    `definition(phi)` where calling the map is not differentiable; where it has a name for `--map`, set `named`."""

    named = False
    n, d = 5, 6

    def make(self, n: int, d: int, seed: int) -> FeatureMap:
        raise NotImplementedError

    def definition(self, phi: FeatureMap) -> Callable[[Tensor], Tensor]:
        """Give the map as a differentiable function of a text, written as plainly as can be."""
        return phi

    def test_view_is_the_plain_map(self) -> None:
        rng = torch.Generator().manual_seed(0)
        for n in (1, self.n):
            X, phi = synthetic_tokens(n, self.d, seed=n), self.make(n, self.d, 3)
            for tokens in token_sets(n):
                assert_equal_views(phi.view(X, tokens), plain_view(self.definition(phi), X, tokens), rng)

    def test_features_of_many_texts(self) -> None:
        X, phi = synthetic_tokens(self.n, self.d, seed=1), self.make(self.n, self.d, 3)
        both = torch.stack([X, X.flip(0)])
        apart = torch.stack([phi(x).flatten() for x in both])
        torch.testing.assert_close(phi.features(both), apart, rtol=1e-12, atol=1e-12)

    def test_many_views_at_once_equal_one_by_one(self) -> None:
        rng = torch.Generator().manual_seed(0)
        X, phi = synthetic_tokens(self.n, self.d, seed=0), self.make(self.n, self.d, 0)
        views = [phi.view(X, [i]) for i in range(self.n)]
        delta = torch.randn(self.n, 3, 1, self.d, generator=rng, dtype=torch.float64)
        together = value_and_gradient(phi.sq_norms(views), delta)
        apart = value_and_gradient(lambda x: torch.stack([v.sq_norm(p) for v, p in zip(views, x, strict=True)]), delta)
        for a, b in zip(together, apart, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)

    def test_no_move_is_no_change(self) -> None:
        X, phi = synthetic_tokens(self.n, self.d, seed=0), self.make(self.n, self.d, 0)
        view = phi.view(X, [1])
        still = torch.zeros(1, self.d, dtype=torch.float64)
        assert float(view.change(still).norm()) <= 1e-12 * view.base_norm

    def test_weights_follow_the_seed(self) -> None:
        """The law is drawn from by seed: one seed gives one map, another one another map."""
        X = synthetic_tokens(self.n, self.d, seed=0)
        first, again, other = (self.make(self.n, self.d, seed)(X) for seed in (1, 1, 2))
        assert torch.equal(first, again) and not torch.equal(first, other)

    def test_the_name_that_config_prints_is_accepted(self) -> None:
        if not self.named:
            return
        X, phi = synthetic_tokens(self.n, self.d, seed=0), self.make(self.n, self.d, 4)
        again = named_map(name_of(phi.config()), self.n, self.d, 4)
        assert again.config() | {"lazy": None} == phi.config() | {"lazy": None}
        if not again.remembers:
            assert torch.equal(again(X), phi(X))
