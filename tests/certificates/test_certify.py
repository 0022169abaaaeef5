"""A certificate is never below anything that a search, or chance, can find."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import wordsway as ws
from wordsway.certificates import row_geometry, separable_bound
from wordsway.certificates.certify import certify
from wordsway.certificates.several_bound import _row_bounds
from wordsway.maps.attention.attention_view import AttentionView
from wordsway.maps.attention.scores.softmax import Softmax
from wordsway.search.ascent import maximize
from wordsway.search.regions import Ball
from wordsway.testing.certificate_tests import largest_seen


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 9),
    d=st.integers(1, 10),
    score=st.sampled_from(["softmax", "relu"]),
    temperature=st.sampled_from([0.01, 0.3, 1.0, 20.0]),
    scale=st.sampled_from([0.1, 1.0, 4.0]),
    reach=st.sampled_from([0.01, 1.0, 5.0]),
    mean=st.sampled_from([0.0, 2.0]),
    seed=st.integers(0, 10**6),
)
def test_attention_bound_holds(
    n: int, d: int, score: str, temperature: float, scale: float, reach: float, mean: float, seed: int
) -> None:
    """Any row norms, correlated rows, hot and cold softmax, small and large balls."""
    rng = torch.Generator().manual_seed(seed)
    X = scale * (torch.randn(n, d, generator=rng, dtype=torch.float64) + mean)
    phi = ws.RandomAttention.from_weights(torch.randn(d, d, generator=rng, dtype=torch.float64), score, temperature)
    view = phi.view(X, [seed % n])
    certificate = certify(view, reach)
    if view.base_norm == 0:
        assert certificate.upper is None
        return
    assert certificate.upper is not None and certificate.failure == 0
    assert largest_seen(view, reach, rng) <= certificate.upper
    found = ws.word_sensitivity(phi, X, seed % n, radius=reach, budget=200, certificate=False)
    assert found.lower <= certificate.upper


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 9),
    m=st.integers(2, 9),
    d=st.integers(1, 10),
    score=st.sampled_from(["softmax", "relu"]),
    temperature=st.sampled_from([0.01, 0.3, 1.0, 20.0]),
    scale=st.sampled_from([0.1, 1.0, 4.0]),
    reach=st.sampled_from([0.01, 1.0, 5.0]),
    mean=st.sampled_from([0.0, 2.0]),
    seed=st.integers(0, 10**6),
)
def test_attention_bound_for_several_tokens_holds(
    n: int, m: int, d: int, score: str, temperature: float, scale: float, reach: float, mean: float, seed: int
) -> None:
    """Two tokens up to all of them, by chance and by a search of the joint ball."""
    rng = torch.Generator().manual_seed(seed)
    X = scale * (torch.randn(n, d, generator=rng, dtype=torch.float64) + mean)
    phi = ws.RandomAttention.from_weights(torch.randn(d, d, generator=rng, dtype=torch.float64), score, temperature)
    view = phi.view(X, torch.randperm(n, generator=rng)[: min(m, n)].tolist())
    certificate = certify(view, reach)
    if view.base_norm == 0:
        return
    assert certificate.upper is not None and certificate.failure == 0
    assert largest_seen(view, reach, rng) <= certificate.upper
    region = Ball(reach, len(view.tokens), d)
    (found,) = maximize([view], phi.sq_norms([view]), region, seed, view.ascent().scaled(200))
    best = region.project(found.delta.double())
    assert float(view.change(best).norm()) / view.base_norm <= certificate.upper


@pytest.mark.parametrize("score", ["softmax", "relu"])
@pytest.mark.parametrize("reach", [0.5, 3.0, 40.0])
def test_rows_of_several_tokens(score: str, reach: float, rng: torch.Generator) -> None:
    """Row by row, what a move does to it is within the bound for its own sigma_j; and the bound is nearly attained by
    a long move that captures a row."""
    X = ws.synthetic_tokens(12, 8, seed=0)
    view = ws.RandomAttention(score).sample(d=8, seed=0).view(X, [2, 5])
    assert isinstance(view, AttentionView)
    drawn = torch.randn(300, 2, 8, generator=rng, dtype=torch.float64)
    drawn[::2, 0] = 0.0  # one token alone
    drawn = torch.cat([drawn, view.starts().double()])
    drawn *= reach / drawn.flatten(1).norm(dim=1)[:, None, None]
    moves = view.change(drawn).unflatten(-1, (12, 8)).norm(dim=-1)[:, view.stay]
    sigma = (view.text.queries[view.stay] @ drawn.mT).norm(dim=-1)
    bounds = torch.stack([_row_bounds(view, reach, sigma[:, j])[j] for j in range(10)], 1)
    assert bool((moves <= bounds * (1 + 1e-9)).all())
    if reach == 40.0:
        assert float((moves / bounds).max()) > 0.85


@pytest.mark.parametrize(("name", "m", "loosest"), [("raf", 2, 2.1), ("raf", 6, 2.1), ("relu-raf", 3, 2.1)])
def test_several_tokens_are_not_bounded_loosely(name: str, m: int, loosest: float) -> None:
    X, phi = ws.synthetic_tokens(30, 384, seed=30), ws.named_map(name, 30, 384, seed=1)
    view = phi.view(X, list(range(m)))
    (found,) = maximize([view], phi.sq_norms([view]), Ball(math.sqrt(384), m, 384), 0, view.ascent())
    upper = certify(view, math.sqrt(384)).upper
    assert upper is not None and 1 <= upper / (math.sqrt(found.value) / view.base_norm) < loosest


def psi_by_definition(rows: row_geometry.Rows, c: float, across: float, t: Tensor) -> Tensor:
    a = rows.score.share(rows.pooled[:, None], (rows.logit + c * rows.radius * rows.pull)[:, None] + t)
    e = a - rows.old[:, None]
    return (
        a**2 * rows.radius**2
        + 2 * a * e * (c * rows.radius * rows.offset_along[:, None] - rows.lean[:, None] * t)
        + 2 * a * e.abs() * across * rows.rest_across[:, None]
        + e**2 * rows.offset_sq[:, None]
    )


@pytest.mark.parametrize("score", ["softmax", "relu"])
@pytest.mark.parametrize("c", [-0.6, 0.0, 0.4])
def test_cells_cover_every_point(score: str, c: float, rng: torch.Generator) -> None:
    """psi on a cell is at least psi at random points of the cell, computed from its definition; on narrow cells it is
    hardly more."""
    X = ws.synthetic_tokens(6, 7, seed=0)
    view = ws.RandomAttention(score).sample(d=7, seed=0).view(X, [2])
    assert isinstance(view, AttentionView)
    rows = row_geometry.row_geometry(view, 2.5)
    line = torch.linspace(-9, 9, 40, dtype=torch.float64)
    across = rows.radius * math.sqrt(1 - c * c)
    cells = separable_bound._psi(rows, c, across, line)
    for _ in range(50):
        t = line[:-1] + (line[1:] - line[:-1]) * torch.rand(39, generator=rng, dtype=torch.float64)
        assert (psi_by_definition(rows, c, across, t) <= cells * (1 + 1e-12) + 1e-12).all()
    narrow = torch.linspace(-9, 9, 40_001, dtype=torch.float64)
    cells = separable_bound._psi(rows, c, across, narrow)
    exact = psi_by_definition(rows, c, across, (narrow[:-1] + narrow[1:]) / 2)
    assert float(rows.lean.max()) > 0.2
    assert float(((cells - exact).abs() / (exact.abs() + 1)).max()) < 0.01


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_an_interval_covers_all_its_c(score: str) -> None:
    """One wide interval is at least each of many narrow ones inside it."""
    X = ws.synthetic_tokens(8, 9, seed=0)
    view = ws.RandomAttention(score).sample(d=9, seed=0).view(X, [2])
    assert isinstance(view, AttentionView)
    rows = row_geometry.row_geometry(view, 3.0)
    wide, multipliers = separable_bound.interval_bound(rows, 0.2, 0.3, separable_bound.Multipliers(5.0, 0.5), 0.4)
    for middle in torch.linspace(-0.1, 0.5, 31).tolist():
        narrow, _ = separable_bound.interval_bound(rows, middle, 1e-6, multipliers, 0.4)
        assert narrow <= wide * (1 + 1e-9)


def test_psi_bounds_the_rows_themselves(rng: torch.Generator) -> None:
    """The decomposition: each row's change, from the dense map, is below psi at its own c and t."""
    X = ws.synthetic_tokens(7, 6, seed=3)
    view = ws.RandomAttention().sample(d=6, seed=1).view(X, [0])
    assert isinstance(view, AttentionView)
    radius = 2.0
    rows = row_geometry.row_geometry(view, radius)
    e = X[0] / X[0].norm()
    for delta in Ball(radius, 1, 6).sample(200, 0).double() * torch.rand(200, 1, 1, generator=rng, dtype=torch.float64):
        c = float(delta[0] @ e) / radius
        t = view.text.queries[view.stay] @ (delta[0] - (delta[0] @ e) * e)
        changed = view.change(delta).reshape(7, 6)[view.stay].square().sum(1)
        a = rows.score.share(rows.pooled, rows.logit + c * radius * rows.pull + t)
        gap = a - rows.old
        psi = (
            a**2 * radius**2
            + 2 * a * gap * (c * radius * rows.offset_along - rows.lean * t)
            + 2 * a * gap.abs() * radius * math.sqrt(1 - c * c) * rows.rest_across
            + gap**2 * rows.offset_sq
        )
        assert (changed <= psi * (1 + 1e-12) + 1e-12).all()


def test_what_a_move_costs_along_a_row_is_attained() -> None:
    """v . r_j is at least tau_j t_j - |v| (the rest of r_j), with equality for a move against that rest."""
    X = ws.synthetic_tokens(9, 6, seed=3)
    view = ws.RandomAttention().sample(d=6, seed=1).view(X, [0])
    assert isinstance(view, AttentionView)
    rows = row_geometry.row_geometry(view, 2.0)
    assert int((rows.lean > 0.1).sum()) >= 3
    e = X[0] / X[0].norm()
    M, r = ((part - (part @ e)[:, None] * e) for part in (view.text.queries[view.stay], view.rest[view.stay]))
    rest = r - rows.lean[:, None] * M
    v = -rest / rest.norm(dim=1, keepdim=True)
    exact = (v * r).sum(1)
    assert torch.allclose(rows.lean * (v * M).sum(1) - rows.rest_across, exact, rtol=1e-9)
    # what is left is square to M_j: no other multiple leaves less
    leaning = rows.lean > 0
    assert float((rest * M).sum(1)[leaning].abs().max()) < 1e-9


def test_coupling_bounds_the_trust_region(rng: torch.Generator) -> None:
    """max_v b 1.Mv + lam |Mv|^2 over a ball, against many v; for every mu."""
    M = torch.randn(5, 8, generator=rng, dtype=torch.float64)
    X = ws.synthetic_tokens(4, 4, seed=0)
    view = ws.RandomAttention().sample(d=4).view(X, [0])
    assert isinstance(view, AttentionView)
    values = dict(vars(row_geometry.row_geometry(view, 1.0)))
    values["sigma_sq"], values["z"] = row_geometry.spectrum(M)
    rows = row_geometry.Rows(**values)
    v = torch.randn(20000, 8, generator=rng, dtype=torch.float64)
    v = 1.3 * v / v.norm(dim=1, keepdim=True)
    image = v @ M.T
    for lam, b in ((1.0, 0.0), (1.0, 2.0), (0.1, -3.0), (2.0, 0.5)):
        seen = float((b * image.sum(1) + lam * image.square().sum(1)).max())
        mu, tail = separable_bound.coupled(rows, lam, b)
        claimed = mu * 1.3**2 + tail
        assert (seen <= claimed).all()
        assert claimed.min() <= 2.0 * seen


def captured_rows(alpha: float, sigma: float) -> row_geometry.Rows:
    """Two rows that a gain of 200 captures, nearly by a step. A move along the token changes their logits oppositely,
    one across it alike: M = sigma (1, 1) / sqrt(2). The token's own row does not count."""
    two = torch.ones(2, dtype=torch.float64)
    return row_geometry.Rows(
        score=Softmax(), radius=1.0, pooled=200 * two, logit=0 * two, old=0 * two,
        pull=torch.tensor([alpha, -alpha], dtype=torch.float64), offset_along=0 * two, lean=0 * two,
        rest_across=0 * two, offset_sq=1000 * two, reaches=300 * two, sigma_sq=sigma**2 * two[:1],
        z=2 * sigma**2 * two[:1], own_points=0 * two, own_offset_sq=0.0, own_along=0.0, own_across=0.0,
        own_most=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("alpha", "sigma", "lam", "b"), [(200.0, 1.0, 0.0125, 0.0), (0.0, 400.0, 0.0125, 0.0), (0.0, 200.0, 1e-4, -2.0)]
)
def test_the_dual_of_an_interval_is_attained(alpha: float, sigma: float, lam: float, b: float) -> None:
    """For given multipliers, in the middle of an interval, rows at their best gains and the best v reach nearly what is
    claimed. What matters is the tangent of the squares, the budget of squares, and that of the sum, in turn."""
    rows = captured_rows(alpha, sigma)
    t = torch.linspace(-300, 300, 60001, dtype=torch.float64)
    share = rows.score.share(rows.pooled[:, None], t.expand(2, -1))
    separate = (share.square() * 1001 - b * t - lam * t.square()).amax(1).sum()
    v = math.copysign(1.0, b)
    reached = float(separate) + b * v * math.sqrt(2) * sigma + lam * sigma**2
    which, half = torch.arange(2), 0.3
    ends = [(c, 1.0) for c in (-half, half)]
    dual = separable_bound._dual(rows, which, torch.ones(2, dtype=torch.float64), 0.0, half, ends, t, None)
    claimed = dual(separable_bound.Multipliers(lam, b / (2 * lam)))
    assert reached <= claimed <= 1.04 * reached


@pytest.mark.parametrize("far", [True, False])
def test_the_hull_of_the_own_row_is_attained(far: bool, rng: torch.Generator) -> None:
    """A row that ends at the moved token, or at the furthest of the others."""
    X = torch.randn(5, 6, generator=rng, dtype=torch.float64)
    X[0 if far else 3] *= 20
    view = ws.RandomAttention.from_weights(torch.zeros(6, 6, dtype=torch.float64)).view(X, [0])
    assert isinstance(view, AttentionView)
    rows, row, radius = row_geometry.row_geometry(view, 2.0), X.mean(0), 2.0
    e = X[0] / X[0].norm()
    beside = X[0] - row - ((X[0] - row) @ e) * e
    for c in (-0.6, 0.0, 0.8):
        across = radius * math.sqrt(1 - c * c)
        moved = X[0] + c * radius * e + across * beside / beside.norm()
        wanted = (moved if far else X[3]) - row
        assert separable_bound._own_row(rows, c, across) == pytest.approx(float(wanted.square().sum()), rel=1e-9)


def test_one_token_is_exact() -> None:
    X = ws.synthetic_tokens(1, 5, seed=0)
    r = ws.word_sensitivity(ws.RandomAttention().sample(d=5), X, 0)
    assert r.lower == pytest.approx(1.0, rel=1e-6)
    assert r.upper == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu", "identity"])
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("shape", [(1, 6), (3, 8), (12, 16)])
def test_feature_bound_holds(activation: str, depth: int, lazy: bool, shape: tuple[int, int]) -> None:
    n, d = shape
    X = ws.synthetic_tokens(n, d, seed=depth)
    phi = ws.RandomFeatures(depth, activation=activation).sample(n=n, d=d, seed=7, lazy=lazy)
    r = ws.word_sensitivity(phi, X, "all", random_draws=20)
    assert r.upper is not None and r.random is not None
    assert r.upper_failure == pytest.approx(n * 1e-9 if lazy else 0.0)
    for entry in r.per_token:
        assert entry.upper is not None
        assert entry.lower <= entry.upper
    assert r.random.quantiles["0.95"] <= r.upper


def test_linear_features_are_certified_exactly() -> None:
    n, d = 6, 10
    X = ws.synthetic_tokens(n, d, seed=0)
    phi = ws.RandomFeatures(activation="identity").sample(n=n, d=d, lazy=False, dtype="float64")
    r = ws.word_sensitivity(phi, X, 1, budget=2000)
    assert r.upper == pytest.approx(r.lower, rel=1e-4)


def test_several_moved_tokens_of_random_features() -> None:
    X = ws.synthetic_tokens(5, 6, seed=0)
    phi = ws.RandomFeatures().sample(n=5, d=6)
    joint = certify(phi.view(X, [0, 1]), 2.0)
    delta = torch.randn(200, 2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    delta = 2.0 * delta / delta.flatten(1).norm(dim=1)[:, None, None]
    view = phi.view(X, [0, 1])
    assert joint.upper is not None
    assert float(view.sq_norm(delta).max()) ** 0.5 / view.base_norm <= joint.upper


def test_no_certificate_for_a_plain_map() -> None:
    r = ws.word_sensitivity(lambda X: X.sum(0), ws.synthetic_tokens(3, 4), 0)
    assert r.upper is None
    assert r.upper_reason is not None and "for this map" in r.upper_reason


@pytest.mark.slow
def test_lazy_bound_does_not_fail_where_it_should_not() -> None:
    """A bound that fails with probability 1e-9 should not fail in 300 draws; nor should it be loose at real width."""
    ratios = []
    for seed in range(300):
        X = ws.synthetic_tokens(8, 12, seed=seed)
        r = ws.word_sensitivity(ws.RandomFeatures().sample(n=8, d=12, seed=seed), X, 0, budget=60, random_draws=0)
        assert r.upper is not None
        ratios.append(r.upper / r.lower)
    assert min(ratios) > 1.0
    X = ws.synthetic_tokens(150, 768, seed=0)
    r = ws.word_sensitivity(ws.RandomFeatures().sample(n=150, d=768), X, 0, random_draws=0)
    assert r.upper is not None and r.upper <= 1.1 * r.lower


@pytest.mark.slow
@pytest.mark.parametrize(("n", "score", "most"), [(100, "softmax", 1.5), (250, "softmax", 1.55), (100, "relu", 1.4)])
def test_attention_bound_is_tight_enough(n: int, score: str, most: float) -> None:
    X = ws.synthetic_tokens(n, 768, seed=1)
    r = ws.word_sensitivity(ws.RandomAttention(score).sample(d=768, seed=1), X, 0)
    assert r.upper is not None
    assert r.lower <= r.upper <= most * r.lower
