"""Lazily revealed Gaussian matrices: consistent, and exact in law under adaptive questions from both sides."""

import math
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

import wordsway as ws
from wordsway.maps.gaussian import Budget, Dense, Gaussian, Lazy
from wordsway.support.errors import TooLargeError
from wordsway.support.seeds import stream


def lazy(rows: int, cols: int, seed: int = 0, std: float = 1.0, dtype: torch.dtype = torch.float64) -> Lazy:
    return Lazy(rows, cols, std, (seed, "test"), Budget(2**33), dtype)


def interrogate(matrix: Gaussian, steps: int, rng: torch.Generator) -> list[tuple[str, Tensor, Tensor]]:
    """Adaptive questions: each direction is built from earlier answers, from either side."""
    asked = []
    u = torch.randn(matrix.cols, generator=rng, dtype=torch.float64)
    for step in range(steps):
        y = matrix.mm(u)
        asked.append(("mm", u, y))
        h = torch.relu(y) + 0.1 * torch.randn(matrix.rows, generator=rng, dtype=torch.float64)
        x = matrix.rmm(h)
        asked.append(("rmm", h, x))
        u = x / x.norm() + (0.3 * u if step % 2 else 0.0)
    return asked


@pytest.mark.parametrize(("rows", "cols"), [(7, 5), (5, 7), (12, 12), (3, 40)])
def test_answers_belong_to_one_matrix(rows: int, cols: int, rng: torch.Generator) -> None:
    matrix = lazy(rows, cols)
    asked = interrogate(matrix, 4, rng)
    for kind, question, answer in asked:  # asked again, in another order of sides
        again = matrix.mm(question) if kind == "mm" else matrix.rmm(question)
        torch.testing.assert_close(again, answer, rtol=1e-10, atol=1e-10)
    (_, u, y), (_, h, x) = asked[0], asked[1]
    torch.testing.assert_close(h @ y, x @ u, rtol=1e-10, atol=1e-10)  # <h, G u> = <G^T h, u>
    G = matrix.to_dense()
    for kind, question, answer in asked:
        torch.testing.assert_close(G @ question if kind == "mm" else G.T @ question, answer, rtol=1e-9, atol=1e-9)
    fresh = torch.randn(3, cols, generator=rng, dtype=torch.float64)
    torch.testing.assert_close(matrix.mm(fresh), fresh @ G.T, rtol=1e-12, atol=1e-12)
    assert torch.equal(matrix.to_dense(), G)


def test_same_questions_same_answers_and_order_matters() -> None:
    a, b = torch.randn(2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    one, two, three = lazy(9, 6), lazy(9, 6), lazy(9, 6)
    assert torch.equal(one.mm(a), two.mm(a))
    assert torch.equal(one.mm(b), two.mm(b))
    three.mm(b)
    assert not torch.allclose(three.mm(a), one.mm(a))
    assert not torch.allclose(lazy(9, 6, seed=1).mm(a), one.mm(a))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_more_directions_than_there_are(dtype: torch.dtype, rng: torch.Generator) -> None:
    """Questions that differ less and less, as those of a search do: rounding noise is not taken for new directions,
    what is kept stays orthonormal, and all answers belong to one matrix."""
    matrix = lazy(40, 12, dtype=dtype)
    u = torch.randn(12, generator=rng, dtype=dtype)
    asked = []
    for step in range(150):
        u = u + 0.8**step * torch.randn(12, generator=rng, dtype=dtype)
        asked.append((u, matrix.mm(u)))
        matrix.rmm(asked[-1][1])
    tolerance = 1e-4 if dtype == torch.float32 else 1e-12
    for side in (matrix._inputs, matrix._outputs):
        basis = side.known[0]
        assert len(basis) <= side.dim
        torch.testing.assert_close(basis @ basis.T, torch.eye(len(basis), dtype=dtype), rtol=0, atol=tolerance)
    G = matrix.to_dense()
    for question, answer in asked:
        torch.testing.assert_close(answer, G @ question, rtol=0, atol=100 * tolerance)


def test_a_deep_map_of_few_coordinates() -> None:
    """An instance on which rounding noise had filled up all directions, and more."""
    X = ws.synthetic_tokens(10, 32, stream(0, "curve", 32, 10, 1, "text"))
    phi = ws.named_map("drf", 10, 32, stream(0, "curve", 32, 10, 1, "weights"), depth=2)
    assert 0 < ws.word_sensitivity(phi, X, 0).lower < 1


def test_a_known_direction_uses_its_slot() -> None:
    a, b = torch.eye(4, dtype=torch.float64)[:2]
    one, two = lazy(5, 4), lazy(5, 4)
    one.mm(a)
    one.mm(2 * a)
    two.mm(a)
    assert not torch.allclose(one.mm(b), two.mm(b))  # the repeated question took the second slot


def test_zero_and_dependent_questions_in_a_batch() -> None:
    matrix = lazy(6, 3)
    u = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
    batch = torch.cat([u, 0 * u, -2 * u, u + torch.eye(3, dtype=torch.float64)[:1]])
    answer = matrix.mm(batch)
    assert torch.equal(answer[1], torch.zeros(6, dtype=torch.float64))
    torch.testing.assert_close(answer[2], -2 * answer[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(answer, batch @ matrix.to_dense().T, rtol=1e-10, atol=1e-10)


def test_more_questions_than_dimensions(rng: torch.Generator) -> None:
    matrix = lazy(8, 5)
    batch = torch.randn(40, 5, generator=rng, dtype=torch.float64)
    answer = matrix.mm(batch)
    solution = torch.linalg.lstsq(batch, answer).solution
    torch.testing.assert_close(batch @ solution, answer, rtol=1e-9, atol=1e-9)  # one linear map explains all 40


def test_gradient_is_the_transposed_question(rng: torch.Generator) -> None:
    matrix = lazy(7, 4)
    u = torch.randn(2, 4, generator=rng, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.tanh(matrix.mm(u)).sum(), u)
    dense = Dense(matrix.to_dense())
    (wanted,) = torch.autograd.grad(torch.tanh(dense.mm(u)).sum(), u)
    torch.testing.assert_close(gradient, wanted, rtol=1e-9, atol=1e-9)


def test_float32_stays_orthonormal_over_many_close_questions(rng: torch.Generator) -> None:
    matrix = lazy(4000, 300, dtype=torch.float32)
    u = torch.randn(300, generator=rng)
    for _ in range(60):
        u = u / u.norm() + 1e-3 * torch.randn(300, generator=rng)
        matrix.rmm(torch.relu(matrix.mm(u)))
    for side in (matrix._inputs, matrix._outputs):
        basis = side.known[0].double()
        off = basis @ basis.T - torch.eye(len(basis), dtype=torch.float64)
        assert off.abs().max() < 1e-5


def test_budget_is_kept_and_named() -> None:
    matrix = Lazy(1000, 1000, 1.0, (0,), Budget(20_000))
    matrix.mm(torch.eye(1000)[:2])
    with pytest.raises(TooLargeError, match="memory_limit"):
        matrix.mm(torch.eye(1000)[2:4])


def bonferroni(p_values: list[float]) -> float:
    return min(1.0, min(p_values) * len(p_values))


@pytest.mark.slow
def test_law_under_adaptive_questions() -> None:
    """Over many seeds: whitened answers to adaptive questions are standard normal, and so are functionals of the dense
    matrix; two-sided Kolmogorov-Smirnov and variance tests, corrected for their number."""
    rows, cols, std, repeats = 4, 3, 0.7, 4000
    entries, energies, corners = [], [], []
    for seed in range(repeats):
        matrix = lazy(rows, cols, seed, std)
        interrogate(matrix, 2, torch.Generator().manual_seed(seed))
        G = matrix.to_dense() / std
        entries.append(G.flatten())
        energies.append(float(G.square().sum()))
        corners.append(float(torch.linalg.matrix_norm(G, 2)))
    table = torch.stack(entries)
    p_values = [stats.kstest(table[:, k], "norm").pvalue for k in range(rows * cols)]
    p_values.append(stats.kstest(energies, "chi2", args=(rows * cols,)).pvalue)
    direct = torch.randn(repeats, rows, cols, generator=torch.Generator().manual_seed(77), dtype=torch.float64)
    outcome: Any = stats.ks_2samp(corners, torch.linalg.matrix_norm(direct, 2))
    p_values.append(outcome.pvalue)
    correlations = torch.corrcoef(table.T)
    off = correlations[~torch.eye(rows * cols, dtype=torch.bool)]
    p_values.append(2 * stats.norm.sf(float(off.abs().max()) * math.sqrt(repeats)) * len(off) / 2)
    assert bonferroni(p_values) > 1e-3, p_values


@pytest.mark.slow
def test_adaptive_answers_have_the_right_conditional_law() -> None:
    """A direction orthogonal to all earlier ones gets a fresh answer, also outside the span of outputs asked for."""
    rows, cols, repeats = 5, 4, 4000
    inside, outside = [], []
    for seed in range(repeats):
        matrix = lazy(rows, cols, seed)
        e = torch.eye(cols, dtype=torch.float64)
        y = matrix.mm(e[0])
        x = matrix.rmm(y)  # reveals G^T y
        u = e[1] - (e[1] @ x) * x / (x @ x)
        u = u - u[0] * e[0]  # orthogonal to e_0; its image along y is known
        answer = matrix.mm(u)
        known = (x @ u) / y.norm()
        inside.append(float(answer @ y / y.norm() - known))
        across = answer - (answer @ y) * y / (y @ y)
        outside.append(float(across.square().sum() / (u @ u)))
    assert max(abs(v) for v in inside) < 1e-9
    assert stats.kstest(outside, "chi2", args=(rows - 1,)).pvalue > 1e-3
