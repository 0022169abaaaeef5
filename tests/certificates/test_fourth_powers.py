"""The budget of fourth powers: right, attained, and worth it where a text is long."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import wordsway as ws
from wordsway.certificates import separable_bound
from wordsway.certificates.certify import certify
from wordsway.certificates.fourth_powers import FourthPowers, fourth_powers, weighted_gram
from wordsway.certificates.row_geometry import Rows, reached, row_geometry
from wordsway.certificates.separable_bound import Multipliers, interval_bound
from wordsway.maps.attention.attention_view import AttentionView
from wordsway.testing.attack import attack
from wordsway.testing.certificate_tests import largest_seen


def excess(A: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """sum_j w_j (t_j^2 - kappa)^2 / |v|^4, from its definition."""
    squares = (v @ A.T).square()
    kappa = (squares @ w / w.sum())[..., None]
    return (squares - kappa).square() @ w / v.norm(dim=-1) ** 4


def budget_of(A: Tensor, w: Tensor) -> FourthPowers:
    budget = fourth_powers(A, w)
    assert budget is not None
    return budget


def budget_and_rows(view: AttentionView, radius: float) -> tuple[FourthPowers, Rows]:
    rows = row_geometry(view, radius)
    return budget_of(view.text.queries[reached(view)], separable_bound._weights(rows)), rows


def long_view(n: int = 300, d: int = 12, token: int = 3, seed: int = 0) -> AttentionView:
    view = ws.RandomAttention().sample(d=d, seed=seed).view(ws.synthetic_tokens(n, d, seed=seed), [token])
    assert isinstance(view, AttentionView)
    return view


@pytest.mark.parametrize("shape", [(40, 3), (300, 12), (700, 40)])
def test_no_move_exceeds_the_budget(shape: tuple[int, int], rng: torch.Generator) -> None:
    """By chance, towards single rows, and by climbing from both."""
    A, W = (torch.randn(k, shape[1], generator=rng, dtype=torch.float64) for k in shape)
    A, w = A @ W, 0.3 + 2 * torch.rand(shape[0], generator=rng, dtype=torch.float64)
    budget = budget_of(A, w)
    v = torch.cat([A, torch.randn(200, shape[1], generator=rng, dtype=torch.float64)]).requires_grad_()
    climb = torch.optim.Adam([v], lr=0.05)
    for _ in range(150):
        climb.zero_grad()
        gained = excess(A, w, v)
        assert float(gained.detach().max()) <= budget.most
        (-gained.log().sum()).backward()
        climb.step()
    means = (v.detach() @ A.T).square() @ w / w.sum() / v.detach().norm(dim=1) ** 2
    assert float(means.max()) <= budget.mean


def test_the_budget_is_attained(rng: torch.Generator) -> None:
    """Many rows that are one: a move along them uses all of it, so no part of it could be halved. The mean is attained
    along the top direction."""
    A, w = 0.1 * torch.randn(200, 8, generator=rng, dtype=torch.float64), torch.ones(200, dtype=torch.float64)
    A[:20] = 2.0 * torch.nn.functional.normalize(torch.randn(8, generator=rng, dtype=torch.float64), dim=0)
    w[:30] = 3.0
    budget = budget_of(A, w)
    assert budget.most / 1.04 <= float(excess(A, w, A[0])) <= budget.most
    top = torch.linalg.eigh(A.T @ (w[:, None] * A))[1][:, -1]
    assert float((A @ top).square() @ w / w.sum()) >= 0.999 * budget.mean


def test_it_bounds_the_largest_eigenvalue_and_not_by_much(rng: torch.Generator) -> None:
    for n, d in ((50, 4), (400, 16), (900, 30)):
        A = torch.randn(n, d, generator=rng, dtype=torch.float64)
        w = 0.5 + torch.rand(n, generator=rng, dtype=torch.float64)
        largest = float(torch.linalg.eigvalsh(weighted_gram(A, w))[-1])
        assert largest <= budget_of(A, w).most <= 1.11 * largest


def test_rows_that_gain_alike_and_numbers_too_large() -> None:
    ones = torch.ones(9, dtype=torch.float64)
    alike = fourth_powers(ones[:, None], ones)
    assert alike is None or 0 <= alike.most < 1e-9, alike
    assert fourth_powers(1e100 * ones[:, None], ones) is None


def test_gains_are_below_the_tangent(rng: torch.Generator) -> None:
    """What a row is charged in a cell is no more than w_j times the tangent of g, for any t of the cell; and not by
    much less."""
    view, half, middle, radius = long_view(), 0.07, 0.3, 3.0
    budget, rows = budget_and_rows(view, radius)
    which = torch.arange(0, len(rows.pull), 3)
    part, w = rows.some(which), budget.weights[which][:, None]
    line = torch.linspace(-20, 20, 401, dtype=torch.float64)
    mean = budget.mean * radius**2 * (1 - (middle - half) ** 2)
    for c in (middle - half, middle + half):
        charged = separable_bound._gains(part, budget, which, middle, half, c, line)
        step = (c - middle) * radius * part.pull[:, None]
        t = line[:-1] + (line[1:] - line[:-1]) * torch.rand(10, 1, 400, generator=rng, dtype=torch.float64)
        at_middle = t + step  # s stays, t = s - c rho alpha
        above = (at_middle.square() - mean).clamp(min=0)
        tangent = w * (above.square() - 4 * above * at_middle * step)
        assert (charged <= tangent + 1e-9).all()
        outer = (t.abs() > 10).all(0)[0]
        assert (charged[:, outer] >= 0.9 * tangent[:, :, outer]).all()


@pytest.mark.parametrize(("middle", "half"), [(0.0, 0.2), (0.4, 0.2), (-0.8, 0.2), (0.9, 0.1)])
def test_rho_to_the_fourth_is_below_its_line(middle: float, half: float) -> None:
    ends = [separable_bound._fourth(2.0, middle, half, c) for c in (middle - half, middle + half)]
    for share in torch.linspace(0, 1, 41).tolist():
        c = middle + (2 * share - 1) * half
        exact = 16 * (1 - c * c) ** 2
        assert exact <= (1 - share) * ends[0] + share * ends[1] + 1e-12
    assert (ends[0] + ends[1]) / 2 <= 16 * (1 - middle**2) ** 2 + 16 * 4 * half**2


def test_an_interval_covers_all_its_c() -> None:
    budget, rows = budget_and_rows(long_view(), math.sqrt(12))
    wide, found = interval_bound(rows, 0.2, 0.3, Multipliers(0.3, 0.5, 0.3), 0.4, budget)
    for middle in torch.linspace(-0.1, 0.5, 7).tolist():
        assert interval_bound(rows, middle, 1e-6, found, 0.4, budget)[0] <= wide * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_long_texts(seed: int, rng: torch.Generator) -> None:
    """The bound holds against attacks, and is smaller than that by squares alone."""
    view = long_view(500, 24, seed, seed)
    radius = math.sqrt(24)
    upper = certify(view, radius).upper
    assert upper is not None
    assert largest_seen(view, radius, rng) <= upper
    assert attack(view, radius, 600) <= upper
    budget, rows = budget_and_rows(view, radius)
    alone = separable_bound._split(rows, separable_bound._first_intervals(rows, None), None)
    both = separable_bound._split(rows, separable_bound._first_intervals(rows, budget), budget)
    assert both < 0.8 * alone
    assert upper == pytest.approx(math.sqrt(both) / view.base_norm, rel=1e-3)


def test_half_of_the_budget_would_be_wrong() -> None:
    """A text with 20 equal queries, which one move captures together, and others that look nowhere. By fourth powers
    alone, the rows cannot do much more than this move does; with half of Lambda they could not do as much."""
    n, m, steep, radius = 200, 20, 40.0, 1.2
    X = torch.zeros(n, 4, dtype=torch.float64)
    X[:, 3] = 1.0
    X[0] = torch.tensor([1.0, 0, 0, 0])
    X[1 : m + 1] = torch.tensor([0.0, 1.0, 1.0, 0.0])  # their logits for each other are what a move has to outdo
    W = torch.zeros(4, 4, dtype=torch.float64)
    W[1, 2] = 1.0
    view = ws.RandomAttention.from_weights(W * math.sqrt(4) * steep).view(X, [0])
    assert isinstance(view, AttentionView)
    move = torch.tensor([[[0.0, 0.0, radius, 0.0]]], dtype=torch.float64)
    rows = replace(row_geometry(view, radius), own_most=0.0)
    budget = budget_of(view.text.queries[reached(view)], torch.ones(n - 1, dtype=torch.float64))
    psi = separable_bound._psi(rows, 0.0, radius, torch.tensor([radius * steep - 1e-9, radius * steep]).double())
    done = float(psi[:m].sum())
    assert float(view.sq_norm(move)[0]) > m and done > m
    bounds = [
        interval_bound(rows, 0.0, 1e-6, Multipliers(1e-12, 0.0, done / most / radius**4), 0.4, part)[0]
        for most, part in ((budget.most, budget), (budget.most / 2, replace(budget, most=budget.most / 2)))
    ]
    assert bounds[1] < done <= bounds[0] < 1.5 * done
