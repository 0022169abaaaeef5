"""The budget of fourth powers: right, attained, and worth it where a text is long."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import wordsway as ws
from wordsway.certificates import separable_bound
from wordsway.certificates.certify import certify
from wordsway.certificates.fourth_powers import FourthPowers, _centred, _fourth_powers, fourth_powers
from wordsway.certificates.row_geometry import row_geometry
from wordsway.certificates.separable_bound import Multipliers, interval_bound
from wordsway.maps.attention.attention_view import AttentionView
from wordsway.testing.attack import attack
from wordsway.testing.certificate_tests import largest_seen


def excess(A: Tensor, v: Tensor) -> Tensor:
    """sum_j (t_j^2 - kappa)^2 / |v|^4, from its definition."""
    squares = (v @ A.T).square()
    return (squares - squares.mean(-1, keepdim=True)).square().sum(-1) / v.norm(dim=-1) ** 4


def budget_of(A: Tensor) -> FourthPowers:
    budget = _fourth_powers(A)
    assert budget is not None
    return budget


def long_view(n: int = 300, d: int = 12, token: int = 3, seed: int = 0) -> AttentionView:
    view = ws.RandomAttention().sample(d=d, seed=seed).view(ws.synthetic_tokens(n, d, seed=seed), [token])
    assert isinstance(view, AttentionView)
    return view


@pytest.mark.parametrize("shape", [(40, 3), (300, 12), (700, 40)])
def test_no_move_exceeds_the_budget(shape: tuple[int, int], rng: torch.Generator) -> None:
    """By chance, towards single rows, and by climbing from both."""
    A = (
        torch.randn(*shape, generator=rng, dtype=torch.float64)
        @ torch.randn(shape[1], shape[1], generator=rng).double()
    )
    budget = budget_of(A)
    v = torch.cat([A, torch.randn(200, shape[1], generator=rng, dtype=torch.float64)]).requires_grad_()
    climb = torch.optim.Adam([v], lr=0.05)
    for _ in range(150):
        climb.zero_grad()
        reached = excess(A, v)
        assert float(reached.detach().max()) <= budget.most
        (-reached.log().sum()).backward()
        climb.step()
    means = (v.detach() @ A.T).square().mean(1) / v.detach().norm(dim=1) ** 2
    assert float(means.max()) <= budget.mean


def test_the_budget_is_attained(rng: torch.Generator) -> None:
    """Many rows that are one: a move along them uses all of it, so no part of it could be halved. The mean is attained
    along the top direction."""
    A = 0.1 * torch.randn(200, 8, generator=rng, dtype=torch.float64)
    A[:20] = 2.0 * torch.nn.functional.normalize(torch.randn(8, generator=rng, dtype=torch.float64), dim=0)
    budget = budget_of(A)
    assert budget.most / 1.04 <= float(excess(A, A[0])) <= budget.most
    top = torch.linalg.eigh(A.T @ A)[1][:, -1]
    assert float((A @ top).square().mean()) >= 0.999 * budget.mean


def test_it_bounds_the_largest_eigenvalue_and_not_by_much(rng: torch.Generator) -> None:
    for n, d in ((50, 4), (400, 16), (900, 30)):
        A = torch.randn(n, d, generator=rng, dtype=torch.float64)
        largest = float(torch.linalg.eigvalsh(_centred(A))[-1])
        assert largest <= budget_of(A).most <= 1.11 * largest


def test_rows_that_gain_alike_and_numbers_too_large() -> None:
    alike = _fourth_powers(torch.ones(9, 1, dtype=torch.float64))
    assert alike is None or 0 <= alike.most < 1e-9, alike
    assert _fourth_powers(torch.full((9, 1), 1e100, dtype=torch.float64)) is None


def test_cells_are_no_nearer_than_they_say(rng: torch.Generator) -> None:
    """The least |t| of a cell is below that of any t in it, seen from any c of the interval."""
    view, half, middle = long_view(), 0.07, 0.3
    rows = row_geometry(view, 3.0)
    line = torch.linspace(-20, 20, 61, dtype=torch.float64)
    nearest = separable_bound._nearest(rows, half, line)
    for c in (middle - half, middle - 0.01, middle + half):
        for end in (middle - half, middle + half):
            t = line[:-1] + (line[1:] - line[:-1]) * torch.rand(60, generator=rng, dtype=torch.float64)
            at_c = t + (end - c) * rows.radius * rows.pull[:, None]  # s stays, t = s - c rho alpha
            assert (nearest <= at_c.abs() + 1e-9).all() and (
                nearest >= at_c.abs() - 1 - 4 * half * 3.0 * rows.reach
            ).all()


def test_an_interval_covers_all_its_c() -> None:
    view = long_view()
    budget = fourth_powers(view.text)
    assert budget is not None and budget is fourth_powers(view.text)  # once a text
    rows = row_geometry(view, math.sqrt(12))
    wide, found = interval_bound(rows, 0.2, 0.3, Multipliers(0.3, 0.5, 0.3), 0.4, budget)
    for middle in torch.linspace(-0.1, 0.5, 7).tolist():
        assert interval_bound(rows, middle, 1e-6, found, 0.4, budget)[0] <= wide * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_long_texts(seed: int, rng: torch.Generator) -> None:
    """The bound holds against attacks, and is smaller than that by squares alone."""
    view = long_view(500, 24, seed, seed)
    radius = math.sqrt(24)
    upper = certify(view, radius).upper
    assert upper is not None
    assert largest_seen(view, radius, rng) <= upper
    assert attack(view, radius, 600) <= upper
    budget, rows = fourth_powers(view.text), row_geometry(view, radius)
    assert budget is not None
    alone = separable_bound._split(rows, separable_bound._first_intervals(rows, None), None)
    both = separable_bound._split(rows, separable_bound._first_intervals(rows, budget), budget)
    assert both < 0.9 * alone
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
    rows, budget = replace(row_geometry(view, radius), own_most=0.0), fourth_powers(view.text)
    psi = separable_bound._psi(rows, 0.0, radius, torch.tensor([radius * steep - 1e-9, radius * steep]).double())
    reached = float(psi[:m].sum())
    assert float(view.sq_norm(move)[0]) > m and reached > m and budget is not None
    bounds = [
        interval_bound(rows, 0.0, 1e-6, Multipliers(1e-12, 0.0, reached / most / radius**4), 0.4, part)[0]
        for most, part in ((budget.most, budget), (budget.most / 2, replace(budget, most=budget.most / 2)))
    ]
    assert bounds[1] < reached <= bounds[0] < 1.5 * reached
