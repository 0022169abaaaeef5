"""Several tokens that move together, and rows that resemble each other."""

import math

import pytest
import torch

import wordsway as ws
from wordsway.certificates.certify import certify
from wordsway.maps import theory
from wordsway.search.ascent import maximize
from wordsway.search.regions import Ball, Balls
from wordsway.studies.cells.sensitivity_cell import SensitivityCell

N, D = 8, 12


@pytest.fixture
def X() -> torch.Tensor:
    return ws.synthetic_tokens(N, D, seed=0)


def test_a_ball_for_each_token(rng: torch.Generator) -> None:
    region = Balls.of([1.0, 2.0, 0.5], 4)
    drawn = region.sample(100, 0).double()
    torch.testing.assert_close(
        drawn.norm(dim=-1), torch.tensor([1.0, 2.0, 0.5]).double().expand(100, 3), rtol=1e-5, atol=0
    )
    assert region.contains(drawn).all() and not region.contains(1.01 * drawn).any()
    assert region.reach == pytest.approx(math.sqrt(1 + 4 + 0.25))
    wild = 5 * torch.randn(50, 3, 4, generator=rng, dtype=torch.float64)
    assert region.contains(region.project(wild)).all()
    torch.testing.assert_close(region.project(0.3 * drawn), 0.3 * drawn)
    inside = torch.arange(50) % 3 == 2
    e = region.point(wild, inside)
    torch.testing.assert_close(region.normed(e), e)
    assert region.contains(region.delta(e)).all()
    torch.testing.assert_close(region.delta(region.unit(0.5 * drawn, 0.0)), 0.5 * drawn)
    # The gradient in e is that of the chain rule, divided by the largest radius.
    e = e.requires_grad_(True)
    target = torch.randn(50, 3, 4, generator=rng, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((region.delta(e) * target).sum(), e)
    torch.testing.assert_close(region.radius * region.pull_back(target), gradient)
    tangent = region.tangent(gradient, e.detach())
    assert (tangent.unflatten(-1, (3, 5)) * e.detach().unflatten(-1, (3, 5))).sum(-1).abs().max() < 1e-12


def test_linear_maps_have_known_maxima() -> None:
    """phi(X) = flat(X): the change is |delta|, so sqrt(m) radii with a ball each and one radius with a shared one."""
    X = ws.synthetic_tokens(6, 4, seed=1)
    phi = ws.RandomFeatures.from_weights([torch.eye(24, dtype=torch.float64)], activation="identity")
    for m in (1, 2, 5):
        each = ws.word_sensitivity(phi, X, tokens_at_once=m, random_draws=0)
        shared = ws.word_sensitivity(phi, X, tokens_at_once=m, ball="shared", random_draws=0)
        assert each.lower == pytest.approx(math.sqrt(m / 6), rel=1e-6)
        assert shared.lower == pytest.approx(math.sqrt(1 / 6), rel=1e-6)
        assert each.upper is not None and each.upper >= each.lower and len(each.tokens) == m
        assert each.delta.shape == ((m, 4) if m > 1 else (4,))
        assert each.together == {"by": "greedy", "ball": "each"}


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_more_tokens_can_only_help(X: torch.Tensor, score: str) -> None:
    phi = ws.RandomAttention(score).sample(d=D, seed=1)
    found = {}
    for m in (1, 2, 4, N):
        r = ws.word_sensitivity(phi, X, tokens_at_once=m, random_draws=20)
        moved = X.clone()
        moved[list(r.tokens)] += r.delta if m > 1 else r.delta[None]
        by_hand = float((phi(moved) - phi(X)).norm() / phi(X).norm())
        assert r.lower == pytest.approx(by_hand, rel=1e-9) and r.upper is not None and r.lower <= r.upper
        assert (moved - X).norm(dim=1).max() <= math.sqrt(D) * (1 + 1e-9)
        assert r.random is not None and r.random.mean < r.lower
        found[m] = r
    assert [found[m].lower for m in (1, 2, 4)] == sorted(found[m].lower for m in (1, 2, 4))
    single = ws.word_sensitivity(phi, X, random_draws=0, certificate=False)
    assert found[1].lower >= single.lower * (1 - 1e-12) and found[1].tokens == (single.token,)  # but for rounding
    assert found[N].together == {"by": "given", "ball": "each"}


def test_a_shared_ball_is_never_worse_than_its_best_token(X: torch.Tensor) -> None:
    phi = ws.RandomAttention("entmax").sample(d=D, seed=1)
    single = ws.word_sensitivity(phi, X, random_draws=0, certificate=False).lower
    for m, ball in ((1, "each"), (1, "shared"), (3, "each"), (3, "shared")):
        r = ws.word_sensitivity(phi, X, tokens_at_once=m, ball=ball, random_draws=0)
        assert r.lower >= single * (1 - 1e-9)


def test_greedy_beats_random_choices(X: torch.Tensor) -> None:
    phi = ws.RandomAttention("relu").sample(d=D, seed=3)
    greedy = ws.word_sensitivity(phi, X, tokens_at_once=3, certificate=False, random_draws=0)
    others = [
        ws.word_sensitivity(phi, X, tokens_at_once=3, choose="random", seed=s, certificate=False, random_draws=0)
        for s in range(6)
    ]
    assert len({r.tokens for r in others}) > 3
    assert greedy.lower >= sorted(r.lower for r in others)[3]


def test_certificates_of_several_hold_for_each_ball(X: torch.Tensor) -> None:
    phi = ws.RandomAttention().sample(d=D, seed=0)
    tokens = [1, 4, 6]
    view = phi.view(X, tokens)
    region = Balls.of([1.0, 3.0, 2.0], D)
    bound = certify(view, region.reach).upper
    (found,) = maximize([view], phi.sq_norms([view]), region, 0)
    assert bound is not None and region.contains(found.delta)
    assert math.sqrt(found.value) / view.base_norm <= bound
    assert isinstance(region, Balls) and not Ball(1.0, 3, D).contains(found.delta)


def test_words_of_a_text_move_together() -> None:
    text = ws.encode("the soup was cold and the waiter was late", "synthetic")
    phi = ws.RandomAttention().sample(d=text.X.shape[1], seed=0)
    r = ws.word_sensitivity(phi, text, [1, 3], tokens_at_once=2, choose="given", certificate=False, random_draws=0)
    assert r.tokens == (1, 3) and r.words is None and r.text is not None
    lazy = ws.RandomFeatures().sample(n=len(text), d=text.X.shape[1], seed=0)
    r = ws.word_sensitivity(lazy, text, tokens_at_once=2, certificate=False, random_draws=0)
    assert r.together == {"by": "random", "ball": "each"}


def test_what_makes_no_sense(X: torch.Tensor) -> None:
    phi = ws.RandomAttention().sample(d=D, seed=0)
    lazy = ws.RandomFeatures().sample(n=N, d=D, seed=0)
    for options, message in [
        ({"tokens_at_once": N + 1}, f"tokens_at_once={N + 1} is more than the {N} tokens"),
        ({"tokens_at_once": 0}, "tokens_at_once must be"),
        ({"tokens_at_once": 2, "choose": "best"}, "choose='best' is not known; use one of: greedy, random, given"),
        ({"tokens_at_once": 2, "ball": "big"}, "ball='big' is not known; use one of: each, shared"),
        ({"tokens_at_once": 2, "choose": "given"}, "moves all tokens that are named, 8, not 2"),
        ({"ball": "shared"}, "say how many with tokens_at_once"),
    ]:
        with pytest.raises(ws.InputError, match=message):
            ws.word_sensitivity(phi, X, **options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ws.InputError, match="all weights of a lazy map"):
        ws.word_sensitivity(lazy, X, tokens_at_once=2, choose="greedy")
    for options, message in [
        ({"correlation": 1.0}, "correlation must be at least 0 and below 1"),
        ({"correlation": -0.1}, "correlation must be"),
        ({"structure": "ring"}, "structure='ring' is not known"),
        ({"tokens_at_once": 9}, "tokens_at_once=9 is more than the 8"),
        ({"choose": "random"}, "say how many in tokens_at_once"),
        ({"center": True, "n": 1, "encoder": "minilm"}, "center takes the mean row away"),
        ({"correlation": 0.5, "encoder": "minilm"}, "correlation is about synthetic rows"),
    ]:
        with pytest.raises(ws.InputError, match=message):
            SensitivityCell(**{"map": "raf", "n": 8, "d": 16, **options})  # pyright: ignore[reportArgumentType]


def test_correlated_rows_have_their_law() -> None:
    """Cosines of rows: rho for any two with a shared direction, rho^k for rows k apart under AR(1)."""
    d, rho = 4000, 0.6
    for structure in ("mean", "ar1"):
        X = ws.synthetic_tokens(6, d, seed=3, correlation=rho, structure=structure)
        cosines = X @ X.T / d
        gaps = (torch.arange(6)[:, None] - torch.arange(6)).abs()
        wanted = torch.where(gaps == 0, 1.0, rho if structure == "mean" else 0.0)
        wanted = rho ** gaps.double() if structure == "ar1" else wanted
        assert (cosines - wanted).abs().max() < 0.06
    with pytest.raises(ws.InputError, match="structure='x' is not known"):
        ws.synthetic_tokens(3, 4, structure="x")
    tokens = ws.encode("one two three four", "minilm")
    assert tokens.centered().X.norm(dim=1).sub(math.sqrt(384)).abs().max() < 1e-3
    raw = ws.encode("one two three four", "minilm", normalize=False).centered()
    assert raw.X.mean(0).abs().max() < 1e-5 and raw.source["centered"] is True


def test_predictions_with_several_tokens_and_shared_directions() -> None:
    """Theory against measurement, on synthetic rows."""
    n, d = 32, 64
    X = ws.synthetic_tokens(n, d, seed=0)
    for m in (1, 4, 16):
        phi = ws.RandomFeatures().sample(n=n, d=d, seed=m)
        found = ws.word_sensitivity(phi, X, tokens_at_once=m, choose="random", certificate=False, random_draws=0)
        assert found.lower == pytest.approx(theory.predict("rf", n, d, moved=m), rel=0.12)
    for rho in (0.3, 0.8):
        values = [
            ws.word_sensitivity(
                ws.RandomAttention().sample(d=d, seed=s),
                ws.synthetic_tokens(n, d, seed=s, correlation=rho),
                0,
                certificate=False,
                random_draws=0,
            ).lower
            for s in range(3)
        ]
        assert sum(values) / 3 == pytest.approx(theory.predict("raf", n, d, correlation=rho), rel=0.2)
    assert theory.predict("relu-raf", n, d, correlation=0.5) is None and theory.predict("raf", n, d, moved=2) is None


def test_silent_rows_are_told() -> None:
    """ReLU scores of rows that share a direction can all be negative: no sensitivity, but a row that says so."""
    found = [
        SensitivityCell("relu-raf", 2, 8, correlation=0.95, trial=t, certificate=False).measure() for t in range(8)
    ]
    lowers = [outcome.rows[0]["lower"] for outcome in found]
    assert None in lowers and any(value is not None for value in lowers)
    silent = next(outcome.rows[0] for outcome in found if outcome.rows[0]["lower"] is None)
    assert "phi(X) is zero" in silent["checked"]
