"""The parts of the attention certificate that shrink with the radius, each attacked where it is nearly attained."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch

import wordsway as ws
from wordsway.certificates import first_order_bound, own_row_bound, separable_bound
from wordsway.certificates.certify import certify
from wordsway.certificates.first_order_bound import _own_row, _rows_that_stay
from wordsway.maps.attention.attention_view import AttentionView
from wordsway.search.ascent import maximize
from wordsway.search.regions import Ball
from wordsway.support.names import SCORES
from wordsway.testing.certificate_tests import largest_found, largest_seen

MONOTONE = [name for name in SCORES if name not in ("sparsemax", "entmax")]


def make_view(X: torch.Tensor, W: torch.Tensor, score: str = "softmax", token: int = 0) -> AttentionView:
    """Logits are X W X^T as they stand."""
    phi = ws.RandomAttention.from_weights(W * math.sqrt(len(W)), score)
    view = phi.view(X, [token])
    assert isinstance(view, AttentionView)
    return view


def rows_of(view: AttentionView, delta: torch.Tensor) -> torch.Tensor:
    return view.change(delta).unflatten(-1, tuple(view.X.shape))


def squared_row(view: AttentionView, row: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """The objective of a search for one row alone: (1, *batch, 1, d) -> (1, *batch)."""
    return lambda delta: rows_of(view, delta)[..., row, :].square().sum(-1)


def jacobian(view: AttentionView) -> torch.Tensor:
    """The derivative in the token, shape (n, d, d)."""
    d = view.X.shape[1]
    return view.derivative(torch.eye(d, dtype=torch.float64)[:, None]).unflatten(-1, tuple(view.X.shape)).movedim(0, -1)


def test_weights_grow_by_at_most_exp_of_the_reach() -> None:
    """The lemma behind M': with centred changes of the logits, the sum of masses does not fall (Jensen)."""
    rng = torch.Generator().manual_seed(0)
    for _ in range(200):
        w = torch.softmax(3 * torch.randn(7, generator=rng, dtype=torch.float64), 0)
        s = torch.randn(7, generator=rng, dtype=torch.float64) * torch.rand(1, generator=rng, dtype=torch.float64) * 4
        s -= w @ s
        assert float(w @ s.exp()) >= 1 - 1e-12
        new = w * s.exp() / (w @ s.exp())
        assert bool((new <= w * math.exp(float(s.abs().max())) * (1 + 1e-12)).all())


@pytest.mark.parametrize("score", MONOTONE)
def test_the_derivative_is_exact(score: str) -> None:
    """J_i, and the sum of J_j^T J_j over the other rows, against forward differentiation of the layer."""
    X = ws.synthetic_tokens(7, 5, seed=1)
    view = ws.RandomAttention(score).sample(d=5, seed=3).view(X, [2])
    assert isinstance(view, AttentionView)
    J = jacobian(view)
    row = own_row_bound.own_row(view)
    assert row is not None
    own, staying = _own_row(row, 1e-9), _rows_that_stay(view, view.stay, 1e-9 * torch.ones(6), 1e-9)
    assert own is not None and staying is not None
    torch.testing.assert_close(own[0], J[2])
    others = J[view.stay].flatten(0, 1)
    torch.testing.assert_close(staying[0], others.T @ others)
    wide = first_order_bound.first_order_bound(view, view.stay, 0.01)
    parts = _own_row(row, 0.01), _rows_that_stay(view, view.stay, 0.01 * view.text.queries[view.stay].norm(dim=1), 0.01)
    if wide is not None and parts[0] is not None and parts[1] is not None:
        assert wide[0] == pytest.approx(wide[1] + 0.01 * math.hypot(parts[0][1], parts[1][1]))
    near = first_order_bound.first_order_bound(view, view.stay, 1e-9)
    top = float(torch.linalg.matrix_norm(J.flatten(0, 1), 2))
    assert near is not None and near[0] / 1e-9 == pytest.approx(top, rel=1e-6)


@pytest.mark.parametrize("score", MONOTONE)
@pytest.mark.parametrize("radius", [0.01, 0.1, 0.5])
def test_remainders_bound_what_the_derivative_leaves(score: str, radius: float) -> None:
    rng = torch.Generator().manual_seed(0)
    for seed in range(4):
        X = ws.synthetic_tokens(6, 4, seed=seed)
        view = ws.RandomAttention(score, temperature=0.5).sample(d=4, seed=seed).view(X, [1])
        assert isinstance(view, AttentionView)
        row, J = own_row_bound.own_row(view), jacobian(view)
        assert row is not None
        delta = torch.randn(2000, 1, 4, generator=rng, dtype=torch.float64)
        delta *= radius / delta.norm(dim=-1, keepdim=True)
        rest = (rows_of(view, delta) - torch.einsum("nij,bkj->bni", J, delta)).norm(dim=-1)
        own = _own_row(row, radius)
        reach = radius * view.text.queries[view.stay].norm(dim=1)
        staying = _rows_that_stay(view, view.stay, reach, radius)
        if own is not None:
            assert float(rest[:, 1].max()) <= radius * own[1] * (1 + 1e-9)
        if staying is not None:
            assert float(rest[:, view.stay].norm(dim=1).max()) <= radius * staying[1] * (1 + 1e-9)


def remainder_of_own_row(view: AttentionView, delta: torch.Tensor) -> tuple[float, float]:
    """How far the token's row is from its derivative after one move, and its bound."""
    row = own_row_bound.own_row(view)
    assert row is not None
    bound = _own_row(row, float(delta.norm()))
    assert bound is not None
    rest = rows_of(view, delta)[0] - jacobian(view)[0] @ delta[0]
    return float(rest.norm()), float(delta.norm()) * bound[1]


def test_remainder_of_a_token_that_falls_silent_is_attained() -> None:
    """ReLU with a logit just above 0: the slope ends at once. A single direction, so Cauchy-Schwarz is attained."""
    X = torch.tensor([[1.0, 0.0, 0.0], [1e-12, 60.0, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    W = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.1, 0.0]], dtype=torch.float64)
    view = make_view(X, W, "relu")
    found, bound = remainder_of_own_row(view, torch.tensor([[0.0, 0.0, -0.01]], dtype=torch.float64))
    assert 0.6 * bound < found <= bound


def test_remainder_of_the_bend_is_attained() -> None:
    """Queries and keys are orthogonal to the move: only the logit of the token for itself bends."""
    X = torch.tensor([[40.0, 0.0, 0.0], [0.0, 40.0, 0.0], [0.0, 40.0, 0.0], [0.0, 40.0, 0.0]], dtype=torch.float64)
    W = torch.diag(torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64))
    found, bound = remainder_of_own_row(make_view(X, W), torch.tensor([[0.0, 0.0, 0.05]], dtype=torch.float64))
    assert 0.6 * bound < found <= bound


def test_remainder_of_the_weight_is_attained() -> None:
    """All tokens are equal, so the row moves by its weight for the token, times the move."""
    X = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(30, 1)
    W = torch.tensor([[0.0, 3.0], [0.0, 0.0]], dtype=torch.float64)
    found, bound = remainder_of_own_row(make_view(X, W), torch.tensor([[0.0, 0.02]], dtype=torch.float64))
    assert 0.6 * bound < found <= bound


@pytest.mark.parametrize("equal", [True, False])
def test_remainders_of_rows_that_stay_are_attained(equal: bool) -> None:
    """Equal tokens: what is left is the change of weight times the move. A far token that falls silent: it is the slope
    that ends."""
    if equal:
        X = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(12, 1)
        view = make_view(X, torch.tensor([[0.0, 3.0], [0.0, 0.0]], dtype=torch.float64))
        delta = torch.tensor([[0.0, 0.02]], dtype=torch.float64)
    else:
        X = torch.tensor([[50.0, 0.0, 0.0], *[[0.0, 1.0, 0.0]] * 11], dtype=torch.float64)
        W = torch.tensor([[0.0, 0.0, 0.0], [1e-12, 0.05, 0.3], [0.0, 0.0, 0.0]], dtype=torch.float64)
        view = make_view(X, W, "relu")
        delta = torch.tensor([[0.0, 0.0, -0.02]], dtype=torch.float64)
    radius = float(delta.norm())
    staying = _rows_that_stay(view, view.stay, radius * view.text.queries[view.stay].norm(dim=1), radius)
    assert staying is not None
    rest = (rows_of(view, delta) - (jacobian(view) @ delta[0]))[view.stay]
    bound = radius * staying[1]
    assert 0.6 * bound < float(rest.norm()) <= bound * (1 + 1e-9)


def test_the_sum_of_masses_stays_within_its_bounds() -> None:
    """Each part of the bound of M' is attained: a common direction, the bend, and a token that begins to count."""
    lines = torch.tensor([[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [3.0, 1.0, 0.0]], dtype=torch.float64)
    pulled = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    far = torch.tensor([[1000.0, 0.0, 0.0], [1000.0, 1.0, 0.0]], dtype=torch.float64)
    bent = torch.diag(torch.tensor([1e-6, 0.0, 2.0], dtype=torch.float64))
    fresh = torch.tensor([[1.0, 0.0, 0.0], [0.0, 60.0, 0.0]], dtype=torch.float64)
    woken = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.1, 0.0]], dtype=torch.float64)
    for X, W, score in ((lines, pulled, "relu"), (far, bent, "relu"), (fresh, woken, "relu")):
        view = make_view(X, W, score)
        row = own_row_bound.own_row(view)
        assert row is not None and row.score.slopes is not None
        delta = torch.tensor([0.0, 0.0, 0.3], dtype=torch.float64)
        reach = row.reach(0.3)
        slopes, within = (
            row.score.slopes(row.logits, row.logits),
            row.score.slopes(row.logits - reach, row.logits + reach),
        )
        assert slopes is not None and within is not None
        gap = torch.maximum(within[1] - slopes[0], slopes[0] - within[0])
        least, most = first_order_bound._totals(row, 0.3, slopes[0], gap)
        moved = X.clone()
        moved[0] += delta
        total = float(torch.relu((X[0] + delta) @ W @ moved.T).sum())
        assert least <= total <= most
        assert total - row.total > 0.6 * (most - row.total)


def test_budget_of_the_own_row_is_attained() -> None:
    """Sigmoid scores of 0. With one direction for all logits the cells' ends bind, with one for each the budget."""
    n, radius = 6, 0.8
    for shared in (True, False):
        W = torch.zeros(2 * n + 2, 2 * n + 2, dtype=torch.float64)
        X = torch.zeros(n + 1, 2 * n + 2, dtype=torch.float64)
        for k in range(1, n + 1):
            X[k, k] = 5.0
            W[0 if shared else n + k, k] = 0.2
        view = make_view(X, W, "sigmoid")
        row = own_row_bound.own_row(view)
        assert row is not None
        D = torch.full((n + 1, 1), 1 / (n + 1), dtype=torch.float64)
        cells = own_row_bound._Cells(row, radius, D)
        delta = torch.zeros(2 * n + 2, dtype=torch.float64)
        delta[0 if shared else slice(n + 1, 2 * n + 1)] = -1.0
        delta *= radius / delta.norm()
        mass = row.moved_mass(row.keys @ delta)
        assert cells.least_total <= float(mass.sum())
        assert float(mass.sum()) <= 1.05 * cells.least_total
        mass = torch.stack([mass, row.moved_mass(-row.keys @ delta)])
        for gamma in (1.0, 0.8):
            e = mass - gamma * row.mass
            ratio = float(((D[:, 0].rsqrt() * e).norm(dim=1) / mass.sum(1)).max())
            tau = cells.smallest(10.0, gamma)
            assert 0.9 * tau < ratio <= tau


def test_own_row_bound_is_nearly_attained() -> None:
    """Once by the weight of the token for itself, once by the others, which fall in step along one direction."""
    X = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(30, 1)
    view = make_view(X, torch.tensor([[0.0, 3.0], [0.0, 0.0]], dtype=torch.float64))
    delta = torch.tensor([[0.0, 0.1]], dtype=torch.float64)
    bound = own_row_bound.own_row_bound(view, 0.1, 2.0)
    assert 0.6 * bound < float(rows_of(view, delta)[0].norm()) <= bound * (1 + 1e-9)

    X = torch.tensor([[0.0, 0.0, 0.0], *[[50.0, 0.0, 0.0]] * 3, *[[-50.0, 0.0, 0.0]] * 3], dtype=torch.float64)
    view = make_view(
        X, torch.tensor([[0.0, 0.0, 0.0], [0.02, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64), "sigmoid"
    )
    delta = torch.tensor([[0.0, 0.2, 0.0]], dtype=torch.float64)
    bound = own_row_bound.own_row_bound(view, 0.2, 50.0)
    assert 0.6 * bound < float(rows_of(view, delta)[0].norm()) <= bound * (1 + 1e-9)


def test_the_reach_of_the_bend_is_attained() -> None:
    """Keys are orthogonal to the move: the logit of the token for itself changes by its bend alone."""
    X = torch.tensor([[40.0, 0.0, 0.0], [0.0, 40.0, 0.0]], dtype=torch.float64)
    row = own_row_bound.own_row(make_view(X, torch.diag(torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64))))
    assert row is not None
    assert float(row.reach(0.5)[row.place]) == pytest.approx(2 * 0.5**2)


def test_cells_cover_the_bend() -> None:
    X = torch.tensor([[40.0, 0.0, 0.0], [0.0, 40.0, 0.0]], dtype=torch.float64)
    view = make_view(X, torch.diag(torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64)))
    row = own_row_bound.own_row(view)
    assert row is not None
    for size, sign in ((0.5, 1.0), (0.5, -1.0)):
        cells = own_row_bound._Cells(row, size, torch.full((2, 1), 0.5, dtype=torch.float64))
        mass = 0.5 * math.exp(sign * 2 * size**2)
        assert float(cells.least[0].min()) <= mass <= float(cells.most[0].max())


@pytest.mark.parametrize("score", MONOTONE)
def test_own_row_bound_holds_for_every_move(score: str) -> None:
    """The dual bound of the token's row against random moves and a search, from small to large balls."""
    for seed in range(3):
        X = ws.synthetic_tokens(8, 5, seed=seed)
        phi = ws.RandomAttention(score, temperature=0.7).sample(d=5, seed=seed)
        view = phi.view(X, [1])
        assert isinstance(view, AttentionView)
        for radius in (0.02, 0.3, 1.0, 3.0):
            bound = own_row_bound.own_row_bound(view, radius, 1e3)
            region = Ball(radius, 1, 5)
            (found,) = maximize([view], squared_row(view, 1), region, 0, view.ascent().scaled(300))
            reached = float(rows_of(view, region.project(found.delta.double()))[1].norm())
            assert reached <= bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "score", "scale", "most"),
    [(20, "softmax", 0.01, 1.2), (100, "softmax", 0.01, 1.2), (250, "softmax", 0.01, 1.2), (20, "softmax", 0.1, 2.0),
     (100, "softmax", 0.003, 1.05), (250, "sigmoid", 1.0, 3.0), (100, "sigmoid", 0.1, 2.0), (100, "relu", 0.003, 1.6),
     (100, "relu2", 0.003, 1.6), (100, "softplus", 0.01, 1.2)],
)  # fmt: skip
def test_bound_shrinks_with_the_radius(n: int, score: str, scale: float, most: float) -> None:
    X = ws.synthetic_tokens(n, 64, seed=0)
    r = ws.word_sensitivity(ws.RandomAttention(score).sample(d=64, seed=0), X, 0, radius=scale * 8, random_draws=0)
    assert r.upper is not None
    assert r.lower <= r.upper <= most * r.lower


@pytest.mark.parametrize("options", [{"causal": True}, {"window": 2}, {"heads": 2}, {"heads": 2, "causal": True}])
@pytest.mark.parametrize("score", ["softmax", "relu", "sigmoid"])
def test_masks_and_heads(options: dict[str, int], score: str) -> None:
    rng = torch.Generator().manual_seed(0)
    X = ws.synthetic_tokens(9, 8, seed=0)
    phi = ws.RandomAttention(score, **options).sample(d=8, seed=0)  # pyright: ignore[reportArgumentType]
    for token in (0, 4, 8):
        view = phi.view(X, [token])
        for radius in (0.001, 0.03, 0.3):
            upper = certify(view, radius).upper
            assert upper is not None
            best = max(largest_seen(view, radius, rng), largest_found(phi, view, radius))
            assert best <= upper
            if radius == 0.001 and score != "relu":  # heads are bounded one by one
                assert upper <= (1.5 if "heads" in options else 1.2) * best


def test_small_and_large_are_one_bound() -> None:
    """The certificate is the least of its parts, so it does not fall as the radius grows past where they meet."""
    X = ws.synthetic_tokens(12, 16, seed=0)
    view = ws.RandomAttention().sample(d=16, seed=0).view(X, [0])
    assert isinstance(view, AttentionView)
    uppers = []
    for radius in torch.logspace(-2, 1, 12, dtype=torch.float64).tolist():
        upper = certify(view, radius).upper
        assert upper is not None
        separable = math.sqrt(separable_bound.separable_bound(view, radius)) / view.base_norm
        assert upper <= separable * (1 + 1e-6)
        uppers.append(upper)
    assert all(b >= 0.95 * a for a, b in pairwise(uppers))
