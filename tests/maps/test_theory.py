"""Theory against measurement."""

import math
import statistics

import pytest

import wordsway as ws
from wordsway.maps import theory
from wordsway.studies.estimates import fit_exponent


def mean_sensitivity(name: str, n: int, d: int, trials: int, budget: int | None = None) -> float:
    values = []
    for seed in range(trials):
        phi = ws.named_map(name, n, d, seed=seed)
        X = ws.synthetic_tokens(n, d, seed=seed)
        values.append(ws.word_sensitivity(phi, X, 0, budget=budget, certificate=False, random_draws=0).lower)
    return statistics.fmean(values)


def test_first_order_constant() -> None:
    assert theory.random_features_first_order(100, 768) == pytest.approx(0.1 * (1 + math.sqrt(0.02)))
    assert theory.random_features(10**6, 768) == pytest.approx(theory.random_features_first_order(10**6, 768), rel=1e-3)
    narrow = theory.random_features(50, 64, width=3200)
    assert theory.random_features(50, 64, width=800) > narrow == theory.random_features(50, 64)


def test_scaling_in_radius() -> None:
    small = theory.random_features(50, 64, radius=0.01)
    assert theory.random_features(50, 64, radius=0.02) == pytest.approx(2 * small, rel=1e-2)
    assert theory.random_attention(50, 64, radius=2.0) < theory.random_attention(50, 64, radius=8.0)


def test_law_of_rf_does_not_depend_on_the_text() -> None:
    """Only the row norms matter: a text of equal rows has the same sensitivity, in law, as one of independent rows."""
    n, d, trials = 12, 24, 12
    same = ws.normalize_rows(ws.synthetic_tokens(1, d, seed=3).repeat(n, 1))
    pairs: list[list[float]] = [[], []]
    for seed in range(trials):
        for values, X, token in zip(pairs, (same, ws.synthetic_tokens(n, d, seed=5)), (0, 7), strict=True):
            phi = ws.RandomFeatures().sample(n=n, d=d, seed=seed)
            values.append(ws.word_sensitivity(phi, X, token, budget=60, certificate=False, random_draws=0).lower)
    spread = math.hypot(*(statistics.stdev(v) / math.sqrt(trials) for v in pairs))
    assert abs(statistics.fmean(pairs[0]) - statistics.fmean(pairs[1])) < 4 * spread


@pytest.mark.parametrize(("n", "d"), [(10, 128), (40, 128), (100, 96)])
def test_rf_prediction_is_close(n: int, d: int) -> None:
    assert mean_sensitivity("rf", n, d, 6, budget=80) == pytest.approx(theory.random_features(n, d), rel=0.03)


@pytest.mark.parametrize(
    ("name", "n", "d", "trials", "within"),
    [
        ("raf", 100, 64, 4, 0.1),
        ("relu-raf", 250, 64, 3, 0.1),
        pytest.param("raf", 250, 64, 7, 0.1, marks=pytest.mark.slow),
        pytest.param("raf", 250, 768, 2, 0.1, marks=pytest.mark.slow),
        pytest.param("raf", 2000, 64, 7, 0.15, marks=pytest.mark.slow),
        pytest.param("raf", 5000, 64, 5, 0.15, marks=pytest.mark.slow),
        pytest.param("raf", 2000, 768, 1, 0.1, marks=pytest.mark.slow),
        pytest.param("relu-raf", 2000, 64, 2, 0.1, marks=pytest.mark.slow),
    ],
)
def test_attention_prediction_is_close(name: str, n: int, d: int, trials: int, within: float) -> None:
    """Also where n is not small against d, so that the tilt of the rows counts."""
    predicted = theory.random_attention(n, d, "relu" if name == "relu-raf" else "softmax")
    assert mean_sensitivity(name, n, d, trials) == pytest.approx(predicted, rel=within)


def test_norm_of_attention_features() -> None:
    """|phi(X)|^2 / d is kappa + n tilt / d."""
    n, d = 400, 64
    X = ws.synthetic_tokens(n, d, seed=0)
    for name, kappa, tilt in (("raf", math.e, 1.0), ("relu-raf", math.pi, math.pi / 2)):
        square = float(ws.named_map(name, n, d, seed=0)(X).square().sum()) / d
        assert square == pytest.approx(kappa + n * tilt / d, rel=0.1)


@pytest.mark.slow
def test_exponents() -> None:
    """RF falls as predicted (S / prediction is flat), RAF does not fall, ReLU-RAF lies between."""
    lengths, d = [20, 50, 100, 200], 384
    measured = {name: [mean_sensitivity(name, n, d, 3) for n in lengths] for name in ("rf", "raf", "relu-raf")}
    predicted = [theory.random_features(n, d) for n in lengths]
    slopes = {name: fit_exponent(lengths, values)[0] or 0.0 for name, values in measured.items()}
    flat, _, _ = fit_exponent(lengths, [s / p for s, p in zip(measured["rf"], predicted, strict=True)])
    assert flat is not None and abs(flat) < 0.02
    assert slopes["rf"] == pytest.approx(-0.57, abs=0.03)
    assert abs(slopes["raf"]) < 0.1
    assert slopes["rf"] < slopes["relu-raf"] < slopes["raf"]
    for n, value in zip(lengths, measured["raf"], strict=True):
        assert value == pytest.approx(theory.random_attention(n, d), rel=0.2)


def test_no_prediction_for_deep_features() -> None:
    assert theory.predict("drf", 10, 10) is None
    with pytest.raises(ws.InputError, match="softmax or relu"):
        theory.random_attention(10, 10, "sigmoid")
