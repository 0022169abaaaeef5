"""The first layer seen through texts and tokens: one V, whatever is asked in whatever order."""

import pytest
import torch
from scipy import stats
from torch import Tensor

from wordsway.maps.features.first_layer import LazyTextLayer
from wordsway.maps.gaussian import Budget


def layer(rows: int, n: int, d: int, seed: int = 0) -> LazyTextLayer:
    return LazyTextLayer(rows, n, d, (seed, "test"), Budget(2**30), torch.float64, torch.device("cpu"))


def texts(count: int, n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(count, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("count", [1, 3, 12])
def test_blocks_add_up_to_the_texts(count: int) -> None:
    """The bridge: sum_i V_i x_i is what was said about the whole text, also with more texts than coordinates."""
    n, d = 4, 3
    X = texts(count, n, d)
    V = layer(9, n, d)
    g = V.texts(X)
    parts = [V.block(i, d).mm(X[:, i]) for i in (2, 0, 3, 1)]
    torch.testing.assert_close(sum(parts), g, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(X.flatten(1) @ V.to_dense().T, g, rtol=1e-9, atol=1e-9)
    assert torch.equal(V.texts(X), g)


def test_texts_after_blocks_agree_with_everything() -> None:
    n, d = 5, 4
    V, X = layer(11, n, d), texts(6, n, d)
    early = V.texts(X[:2])
    moved = V.block(3, d).mm(X[2, 3])
    back = V.block(3, d).rmm(early[0])
    late = V.texts(X[2:5])
    also = V.block(0, d).rmm(late[1])
    last = V.texts(X[5:])
    dense = V.to_dense()
    blocks = dense.unflatten(1, (n, d))
    torch.testing.assert_close(X.flatten(1) @ dense.T, torch.cat([early, late, last]), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(blocks[:, 3] @ X[2, 3], moved, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(blocks[:, 3].T @ early[0], back, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(blocks[:, 0].T @ late[1], also, rtol=1e-9, atol=1e-9)


def test_repeated_and_dependent_texts() -> None:
    n, d = 3, 4
    V, X = layer(8, n, d), texts(2, n, d)
    g = V.texts(torch.stack([X[0], X[0], X[1], X[0] - 2 * X[1]]))
    torch.testing.assert_close(g[0], g[1], rtol=1e-12, atol=1e-12)
    assert torch.equal(V.texts(X[:1])[0], g[0])
    torch.testing.assert_close(g[3], g[0] - 2 * g[2], rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_law_of_v_in_mixed_order() -> None:
    """Whatever was asked, V has independent N(0, 1/(n d)) entries."""
    n, d, rows, repeats = 2, 2, 2, 4000
    X = texts(3, n, d, seed=5)
    entries, norms = [], []
    for seed in range(repeats):
        V = layer(rows, n, d, seed)
        g = V.texts(X[:1])
        block = V.block(seed % n, d)
        block.rmm(torch.relu(g[0]))
        V.texts(X[1:2] + float(g[0, 0]))
        V.block((seed + 1) % n, d).mm(X[2, 0])
        G = V.to_dense() * (n * d) ** 0.5
        entries.append(G.flatten())
        norms.append(float(G.square().sum()))
    table = torch.stack(entries)
    p_values = [stats.kstest(table[:, k], "norm").pvalue for k in range(table.shape[1])]
    p_values.append(stats.kstest(norms, "chi2", args=(table.shape[1],)).pvalue)
    off = torch.corrcoef(table.T)[~torch.eye(table.shape[1], dtype=torch.bool)]
    p_values.append(2 * stats.norm.sf(float(off.abs().max()) * repeats**0.5) * len(off) / 2)
    assert min(p_values) * len(p_values) > 1e-3, p_values


@pytest.mark.parametrize("far", [1e-2, 1e-4, 1e-5, 1e-6, 1e-8, 0.0])
@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("apart", [False, True])
def test_near_dependent_texts_agree(far: float, dtype: torch.dtype, within: float, apart: bool) -> None:
    """Texts that are nearly the same, everywhere or but for one token, before and after tokens are opened: one V, to
    within what certificates allow for."""
    n, d = 4, 6
    X = texts(1, n, d) + far * texts(5, n, d, seed=1)
    if apart:
        X[:, 2] = texts(5, 1, d, seed=2)[:, 0]
    V = LazyTextLayer(200, n, d, (0, "test"), Budget(2**30), dtype, torch.device("cpu"))
    early = V.texts(X[:3])
    moved = V.block(2, d).mm(X[:, 2])
    answers = torch.cat([early, V.texts(X[3:])])
    parts = sum(V.block(i, d).mm(X[:, i]) for i in range(n))
    dense = V.to_dense().double()
    size = float(answers.norm(dim=1).max())
    for other in (parts, X.flatten(1) @ dense.T):
        assert float((other - answers).norm(dim=1).max()) < within * size
    assert float((X[:, 2] @ dense[:, 2 * d : 3 * d].T - moved).norm(dim=1).max()) < within * size
    assert torch.equal(V.texts(X), answers)


@pytest.mark.slow
def test_law_of_v_with_near_dependent_texts() -> None:
    n, d, rows, repeats = 2, 2, 1, 4000
    X = texts(1, n, d, seed=5) + 1e-4 * texts(3, n, d, seed=6)
    entries = []
    for seed in range(repeats):
        V = layer(rows, n, d, seed)
        V.texts(X[:2])
        V.block(seed % n, d).mm(X[2, 0])
        V.texts(X[2:])
        entries.append(V.to_dense().flatten() * (n * d) ** 0.5)
    table = torch.stack(entries)
    p_values = [stats.kstest(table[:, k], "norm").pvalue for k in range(table.shape[1])]
    off = torch.corrcoef(table.T)[~torch.eye(table.shape[1], dtype=torch.bool)]
    p_values.append(2 * stats.norm.sf(float(off.abs().max()) * repeats**0.5) * len(off) / 2)
    assert min(p_values) * len(p_values) > 1e-3, p_values
