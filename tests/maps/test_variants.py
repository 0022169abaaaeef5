"""Attention variants: their weights by independent definitions, their views against the plain map, their bounds."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

import wordsway as ws
from wordsway.certificates.certify import certify
from wordsway.maps.attention.kernel import KernelAttention
from wordsway.maps.attention.random_attention import Attention
from wordsway.maps.base import PlainView
from wordsway.support.names import SCORES
from wordsway.testing.map_tests import assert_equal_views, token_sets

VARIANTS = [
    ws.RandomAttention("relu2"),
    ws.RandomAttention("sigmoid", temperature=0.5),
    ws.RandomAttention("softplus"),
    ws.RandomAttention("softplus", heads=2, causal=True),
    ws.RandomAttention(heads=2),
    ws.RandomAttention("relu", heads=3, rank=2),
    ws.RandomAttention(causal=True),
    ws.RandomAttention("relu", window=1),
    ws.RandomAttention("sigmoid", heads=2, causal=True, window=2),
    ws.RandomAttention("linear"),
    ws.RandomAttention("linear", heads=2),
    ws.RandomAttention("sparsemax"),
    ws.RandomAttention("entmax", heads=2, causal=True),
]


def weights_of(logits: Tensor, score: str) -> Tensor:
    """One row of weights, each score by its definition; entmax by bisection for tau."""
    if score in ("sparsemax", "entmax"):
        a = 2.0 if score == "sparsemax" else 1.5
        z = (a - 1) * logits
        low, high = z.max() - 1, z.max()
        for _ in range(200):
            tau = (low + high) / 2
            above = (z - tau).clamp(min=0).pow(1 / (a - 1)).sum() >= 1
            low, high = torch.where(above, tau, low), torch.where(above, high, tau)
        return (z - low).clamp(min=0).pow(1 / (a - 1))
    f = {
        "softmax": torch.exp,
        "relu": lambda x: x.clamp(min=0),
        "relu2": lambda x: x.clamp(min=0) ** 2,
        "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
        "softplus": lambda x: torch.log1p(torch.exp(x)),
    }[score](logits)
    return f / f.sum() if f.sum() > 0 else torch.zeros_like(f)


def by_definition(phi: Attention | KernelAttention, X: Tensor) -> Tensor:
    """Head by head, row by row, over the tokens that the row sees."""
    if isinstance(phi, KernelAttention):
        heads = [linear_by_definition(X, *(part[head] for part in phi.factors)) for head in range(phi.copies)]
        return torch.stack(heads).squeeze(0)
    recipe, (n, d) = phi.recipe, X.shape
    heads = []
    for head in range(recipe.heads):
        rows = []
        for j in range(n):
            seen = [
                k
                for k in range(n)
                if not (recipe.causal and k > j) and not (recipe.window is not None and abs(j - k) > recipe.window)
            ]
            logits = X[j] @ phi.Ws[head] @ X[seen].T / (recipe.temperature * math.sqrt(d))
            rows.append(weights_of(logits, recipe.score) @ X[seen])
        heads.append(torch.stack(rows))
    return torch.stack(heads) if recipe.heads > 1 else heads[0]


def linear_by_definition(X: Tensor, Q: Tensor, K: Tensor) -> Tensor:
    masses = (torch.nn.functional.elu(X @ Q) + 1) @ (torch.nn.functional.elu(X @ K) + 1).T
    return masses / masses.sum(1, keepdim=True) @ X


@pytest.mark.parametrize("recipe", VARIANTS, ids=str)
@pytest.mark.parametrize("n", [1, 4, 6])
def test_variants_equal_their_definition(recipe: ws.RandomAttention, n: int, rng: torch.Generator) -> None:
    X = ws.synthetic_tokens(n, 6, seed=n)
    phi = recipe.sample(d=6, seed=3)
    torch.testing.assert_close(phi(X), by_definition(phi, X), rtol=1e-11, atol=1e-11)
    both = torch.stack([X, X.flip(0)])
    torch.testing.assert_close(
        phi.features(both), torch.stack([phi(x).flatten() for x in both]), rtol=1e-12, atol=1e-12
    )
    for tokens in token_sets(n):
        view = phi.view(X, tokens)
        assert isinstance(view, PlainView) == (recipe.score in ("sparsemax", "entmax"))
        plain = PlainView(lambda x: torch.stack([phi(t).flatten() for t in x]), X, tokens, torch.float64, "cpu")
        assert_equal_views(view, plain, rng)


def test_more_than_a_few_tokens(rng: torch.Generator) -> None:
    """From some number of moved tokens on, rows instead of inner products."""
    X = ws.synthetic_tokens(24, 5, seed=0)
    phi = ws.RandomAttention().sample(d=5, seed=0)
    tokens = list(range(20))
    plain = PlainView(lambda x: torch.stack([phi(t).flatten() for t in x]), X, tokens, torch.float64, "cpu")
    assert_equal_views(phi.view(X, tokens), plain, rng)


@pytest.mark.parametrize(
    "recipe", [v for v in VARIANTS if v.score in ("relu2", "sigmoid", "softplus", "softmax", "relu")], ids=str
)
def test_certificates_hold(recipe: ws.RandomAttention) -> None:
    n, d = 12, 24
    X = ws.synthetic_tokens(n, d, seed=1)
    phi = recipe.sample(d=d, seed=2)
    assert ws.word_sensitivity(phi, X, budget="quick", certificate=False, random_draws=0).lower > 0  # side by side
    for token in (0, 5, n - 1):
        bound = certify(phi.view(X, [token]), math.sqrt(d))
        found = ws.word_sensitivity(phi, X, token, budget="thorough", certificate=False, random_draws=0).lower
        assert bound.upper is not None and found <= bound.upper <= 3 * found


def test_low_rank_weights_have_their_law() -> None:
    """Logits x W x' / sqrt(d) of independent rows are standard, whatever the rank; W has that rank."""
    d = 64
    X = ws.synthetic_tokens(300, d, seed=0)
    for rank in (4, 16, 64):
        W = ws.RandomAttention(rank=rank).sample(d=d, seed=rank).W
        assert torch.linalg.matrix_rank(W) == rank
        logits = X @ W @ X.T / math.sqrt(d)
        off = logits[~torch.eye(300, dtype=torch.bool)]
        assert abs(float(off.mean())) < 0.1 and float(off.square().mean()) == pytest.approx(1.0, abs=0.35)


def test_temperature_and_scores_order_sensitivity() -> None:
    """Sharper scores let one token capture more: a knob that works."""
    X = ws.synthetic_tokens(40, 64, seed=0)

    def of(recipe: ws.RandomAttention) -> float:
        return ws.word_sensitivity(recipe.sample(d=64, seed=1), X, 3, certificate=False, random_draws=0).lower

    for sharp, blunt in pairwise([of(ws.RandomAttention(temperature=t)) for t in (1.0, 2.0, 4.0)]):
        assert sharp > 1.1 * blunt
    assert of(ws.RandomAttention()) > of(ws.RandomAttention("relu2")) > of(ws.RandomAttention("sigmoid"))


def test_what_makes_no_sense() -> None:
    for options, message in [
        ({"score": "hard"}, f"not known; use one of: {', '.join(SCORES)}"),
        ({"heads": 0}, "heads must be"),
        ({"rank": 0}, "rank must be"),
        ({"window": 0}, "window must be"),
        ({"score": "linear", "causal": True}, "no causal"),
        ({"score": "linear", "temperature": 2.0}, "no temperature"),
    ]:
        with pytest.raises(ws.InputError, match=message):
            ws.RandomAttention(**options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ws.InputError, match="heads=5 does not divide d=12"):
        ws.RandomAttention(heads=5).sample(d=12)
    with pytest.raises(ws.InputError, match="rank=13 is more than the d=12"):
        ws.RandomAttention(rank=13).sample(d=12)
    with pytest.raises(ws.InputError, match="linear attention is not given by a W"):
        ws.RandomAttention.from_weights(torch.eye(3), "linear")
    two = ws.RandomAttention.from_weights(torch.stack([torch.eye(4), 2 * torch.eye(4)]))
    assert two(ws.synthetic_tokens(3, 4)).shape == (2, 3, 4)
    with pytest.raises(ws.InputError, match="2 heads"):
        _ = two.W
