"""The public functions: bounds, one map for all tokens, results as files, and errors that say what to do."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import wordsway as ws
from wordsway.maps.base import moved
from wordsway.maps.features.random_features import FeatureNetwork
from wordsway.measures.checked import Check, Way

MAPS = ["rf", "drf", "raf", "relu-raf"]


@pytest.mark.parametrize("name", MAPS)
def test_bounds_and_average_are_in_order(name: str) -> None:
    X = ws.synthetic_tokens(10, 24, seed=0)
    r = ws.word_sensitivity(ws.named_map(name, 10, 24, seed=0), X, 3)
    assert r.random is not None and r.upper is not None
    assert r.token == 3 and r.delta.shape == (24,)
    assert 0 < r.random.mean < r.lower <= r.upper
    assert float(r.delta.norm()) <= math.sqrt(24) * (1 + 1e-12)
    assert list(r.random.quantiles.values()) == sorted(r.random.quantiles.values())
    assert r.random.draws == 100


@pytest.mark.parametrize("name", MAPS)
def test_lower_is_what_the_dense_map_does(name: str) -> None:
    """All tokens of a lazy map are measured on one V: made dense afterwards, it gives what was reported, token by
    token."""
    X = ws.synthetic_tokens(6, 9, seed=1)
    phi = ws.named_map(name, 6, 9, seed=2)
    r = ws.word_sensitivity(phi, X, "all")
    dense = phi.to_dense() if isinstance(phi, FeatureNetwork) else phi
    base = dense(X)
    after = dense(moved(X, [r.token], r.delta[None]))
    assert float((after - base).norm() / base.norm()) == pytest.approx(r.lower, rel=1e-5)
    assert r.lower == max(entry.lower for entry in r.per_token)
    assert [entry.token for entry in r.per_token] == list(range(6))
    best = next(entry for entry in r.per_token if entry.token == r.token)
    assert best.lower == r.lower


def test_lazy_deltas_of_all_tokens_fit_one_matrix() -> None:
    """Per token, not only for the best: what the search of token 0 found still holds after token 5 was searched."""
    n, d = 6, 8
    X = ws.synthetic_tokens(n, d, seed=0)
    phi = ws.RandomFeatures(depth=2).sample(n=n, d=d, seed=0, dtype="float64")
    found = [ws.word_sensitivity(phi, X, i, random_draws=0) for i in range(n)]
    dense = phi.to_dense()
    for i, r in enumerate(found):
        assert ws.change(dense, X, moved(X, [i], r.delta[None])) == pytest.approx(r.lower, rel=1e-8)


def test_a_list_of_tokens_is_the_best_of_them() -> None:
    X = ws.synthetic_tokens(8, 16, seed=0)
    phi = ws.RandomAttention().sample(d=16)
    some = ws.word_sensitivity(phi, X, [1, -1])
    assert [entry.token for entry in some.per_token] == [1, 7]
    every = ws.word_sensitivity(phi, X, "all")
    assert every.lower >= some.lower * (1 - 1e-4)


def test_radius() -> None:
    X = ws.synthetic_tokens(8, 16, seed=0)
    phi = ws.RandomAttention().sample(d=16)
    small, large = (ws.word_sensitivity(phi, X, 0, radius=r) for r in (0.5, 8.0))
    assert small.lower < large.lower
    assert float(small.delta.norm()) <= 0.5 * (1 + 1e-12)
    assert small.upper is not None and small.upper < large.lower


def test_change_is_the_definition() -> None:
    X, Y = ws.synthetic_tokens(5, 6, seed=0), ws.synthetic_tokens(5, 6, seed=1)
    phi = ws.RandomAttention().sample(d=6)
    wanted = float((phi(Y) - phi(X)).norm() / phi(X).norm())
    assert ws.change(phi, X, Y) == pytest.approx(wanted)
    assert ws.change(phi, X, X) == 0.0
    assert ws.change(phi, X.numpy(), Y.tolist()) == pytest.approx(wanted)
    lazy = ws.RandomFeatures().sample(n=5, d=6, dtype="float64")
    first = ws.change(lazy, X, Y)
    assert ws.change(lazy, X, Y) == pytest.approx(first)
    assert ws.change(lazy.to_dense(), X, Y) == pytest.approx(first)


def test_any_function_is_a_map() -> None:
    X = ws.synthetic_tokens(4, 5, seed=0)
    r = ws.word_sensitivity(lambda text: text.mean(0), X, "all")
    base = float(X.mean(0).norm())
    assert r.lower == pytest.approx(math.sqrt(5) / 4 / base, rel=1e-3)  # the mean moves by delta / n


def test_results_survive_a_file(tmp_path: Path) -> None:
    X = ws.synthetic_tokens(5, 8, seed=0)
    r = ws.word_sensitivity(ws.RandomFeatures().sample(n=5, d=8), X, [0, 2])
    r.save(tmp_path / "r.json")
    again = ws.load_result(tmp_path / "r.json")
    assert again.to_dict() == r.to_dict()
    assert torch.equal(again.delta, r.delta)
    assert json.loads(json.dumps(r.to_dict(), allow_nan=False))["lower"] == r.lower
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("plain map, float64", Check(Way.PLAIN, "float64")),
        ("plain map, bfloat16", Check(Way.PLAIN, "bfloat16")),
        ("revealed weights, float64", Check(Way.REVEALED, "float64")),
        ("view, torch.float32", Check(Way.VIEW, "torch.float32")),
        ("a look at it", None),
    ],
)
def test_how_a_result_was_checked_is_saved_as_text(text: str, check: Check | None, tmp_path: Path) -> None:
    r = ws.word_sensitivity(ws.RandomAttention().sample(d=8), ws.synthetic_tokens(5, 8, seed=0), 0)
    (tmp_path / "old.json").write_text(json.dumps({**r.to_dict(), "checked": text}))
    if check is None:
        with pytest.raises(ws.InputError, match="damaged"):
            ws.load_result(tmp_path / "old.json")
        return
    old = ws.load_result(tmp_path / "old.json")
    assert old.check == check and old.checked == text and old.to_dict() == {**r.to_dict(), "checked": text}


@pytest.mark.parametrize("tokens_at_once", [None, 2])
def test_progress_never_falls_and_ends_with_all(tokens_at_once: int | None) -> None:
    told: list[tuple[int, int]] = []
    phi, X = ws.RandomAttention().sample(d=8), ws.synthetic_tokens(5, 8, seed=0)
    ws.word_sensitivity(
        phi, X, tokens_at_once=tokens_at_once, budget="quick", progress=lambda *counts: told.append(counts)
    )
    if tokens_at_once is not None:
        assert told.pop() == (1, 1) and {total for _, total in told} == {6}  # each alone, and then all at once
    assert [done for done, _ in told] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}', '{"format": "wordsway.sensitivity/1"}'])
def test_a_file_that_is_no_result(text: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ws.InputError, match=r"r\.json"):
        ws.load_result(tmp_path / "r.json")
    with pytest.raises(ws.InputError, match="nowhere"):
        ws.load_result(tmp_path / "nowhere.json")


def text_with(value: float) -> torch.Tensor:
    X = ws.synthetic_tokens(4, 6, seed=0)
    X[2, 3] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (text_with(math.nan), "NaN or infinite, the first at row 2, column 3"),
        (text_with(math.inf), "NaN or infinite"),
        (torch.zeros(0, 6), "empty"),
        (torch.zeros(6), r"shape \(n, d\)"),
        (torch.zeros(2, 3, 6), r"shape \(n, d\)"),
        (torch.ones(4, 5), "d=5 .* d=6"),
        (torch.cat([torch.ones(2, 6), torch.zeros(1, 6)]), "zero row .row 2"),
        (torch.ones(2, 6, dtype=torch.complex64), "real numbers"),
        ("a text", "d=384 .* d=6"),  # it is embedded, with the bundled encoder
        ([[1.0, 2.0], [3.0]], "array of numbers"),
    ],
)
def test_bad_texts(X: Any, message: str) -> None:
    with pytest.raises(ws.InputError, match=message):
        ws.word_sensitivity(ws.RandomAttention().sample(d=6), X, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"token": 4}, "token 4 is out of range: the text has 4 tokens"),
        ({"token": -5}, "out of range"),
        ({"token": []}, "no token"),
        ({"token": [1, 1]}, "twice"),
        ({"token": [1, -3]}, "twice"),
        ({"token": [True]}, "whole number"),
        ({"radius": 0.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"radius": -1}, "radius"),
        ({"budget": 0}, "budget"),
        ({"seed": -1}, "seed"),
        ({"random_draws": -1}, "random_draws"),
        ({"device": "abacus"}, "device='abacus'"),
        ({"dtype": "float16"}, "float32 or float64"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    X = ws.synthetic_tokens(4, 6, seed=0)
    with pytest.raises(ws.InputError, match=message):
        ws.word_sensitivity(ws.RandomAttention().sample(d=6), X, **{"token": 0, **arguments})


def test_bad_maps() -> None:
    X = ws.synthetic_tokens(4, 6, seed=0)
    cases: list[tuple[Any, str]] = [
        (lambda: ws.RandomAttention("cosine"), "softmax, relu"),
        (lambda: ws.RandomAttention(temperature=0.0), "temperature"),
        (lambda: ws.RandomAttention().sample(d=0), "d must be"),
        (lambda: ws.RandomAttention.from_weights(torch.ones(2, 3)), "square"),
        (lambda: ws.RandomAttention.from_weights(torch.full((2, 2), math.nan)), "NaN"),
        (lambda: ws.RandomFeatures(depth=0), "depth"),
        (lambda: ws.RandomFeatures(width=-1), "width"),
        (lambda: ws.RandomFeatures(activation="swish"), "relu, tanh, gelu, identity"),
        (lambda: ws.RandomFeatures().sample(n=0, d=3), "n must be"),
        (lambda: ws.RandomFeatures.from_weights([]), "empty"),
        (lambda: ws.RandomFeatures.from_weights([torch.ones(3, 4), torch.ones(2, 2)]), "columns"),
        (lambda: ws.RandomFeatures.from_weights([torch.ones(3)]), "matrix"),
        (
            lambda: ws.word_sensitivity(ws.RandomFeatures.from_weights([torch.ones(3, 7)]), X, 0),
            "24 numbers.* takes 7",
        ),
        (lambda: ws.word_sensitivity(ws.RandomFeatures().sample(n=5, d=6), X, 0), "n=4 .* n=5"),
        (lambda: ws.word_sensitivity(lambda text: 0 * text, X, 0), "zero"),
        (lambda: ws.named_map("rnn", 3, 4), "rf, drf, raf, relu-raf"),
        (lambda: ws.named_map("raf", 3, 4, depth=2), "depth"),
        (lambda: ws.named_map("rf", 3, 4, temperature=2.0), "temperature"),
        (lambda: ws.change(ws.RandomAttention().sample(d=6), X, X[:2]), "one shape"),
    ]
    for attempt, message in cases:
        with pytest.raises(ws.InputError, match=message):
            attempt()


def test_wrong_types_get_an_explanation() -> None:
    """In a process of its own, without the shape checks that tests run under."""
    script = """
import wordsway as ws
X = ws.synthetic_tokens(4, 6)
phi = ws.RandomAttention().sample(d=6)
attempts = {
    "call its sample": lambda: ws.word_sensitivity(ws.RandomAttention(), X),
    "got int": lambda: ws.word_sensitivity(3, X),
    "'first'": lambda: ws.word_sensitivity(phi, X, "first"),
    "1.5": lambda: ws.word_sensitivity(phi, X, 1.5),
    "'big'": lambda: ws.word_sensitivity(phi, X, 0, radius="big"),
    "'4'": lambda: ws.synthetic_tokens("4", 6),
    "True": lambda: ws.synthetic_tokens(True, 6),
    "2.0": lambda: ws.RandomFeatures().sample(n=2.0, d=6),
    "None": lambda: ws.normalize_rows(None),
}
for words, attempt in attempts.items():
    try:
        attempt()
    except ws.InputError as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError(words)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_cannot_fit_says_how_much_it_needs() -> None:
    with pytest.raises(ws.TooLargeError, match=r"needs \d.* [TP]B"):
        ws.RandomFeatures().sample(n=2000, d=768, lazy=False)
    with pytest.raises(ws.TooLargeError, match=r"needs \d.* [TP]B"):
        ws.synthetic_tokens(10**7, 10**5)
    with pytest.raises(ws.TooLargeError, match=r"needs \d.* GB|needs \d.* TB"):
        ws.RandomFeatures().sample(n=10**6, d=768)
    with pytest.raises(ws.TooLargeError, match=r"needs \d.* TB"):
        ws.RandomAttention().sample(d=10**6)
    with pytest.raises(ws.TooLargeError, match="memory_limit"):
        phi = ws.RandomFeatures().sample(n=20, d=32, memory_limit=200_000)
        ws.word_sensitivity(phi, ws.synthetic_tokens(20, 32), "all")


def test_rows_are_normalised_safely() -> None:
    for scale in (1e-200, 1.0, 1e200):
        X = ws.normalize_rows(scale * np.random.default_rng(0).normal(size=(5, 9)))
        torch.testing.assert_close(X.norm(dim=1), torch.full((5,), 3.0, dtype=torch.float64))
    assert ws.normalize_rows(torch.ones(2, 4)).dtype == torch.float32
    with pytest.raises(ws.InputError, match="zero row"):
        ws.normalize_rows(torch.zeros(1, 4))
    X = ws.synthetic_tokens(3, 5, seed=1)
    assert torch.equal(X, ws.synthetic_tokens(3, 5, seed=1))
    assert not torch.equal(X, ws.synthetic_tokens(3, 5, seed=2))


def test_own_weights() -> None:
    """from_weights measures the same as the map that drew them."""
    X = ws.synthetic_tokens(5, 8, seed=0)
    drawn = ws.RandomAttention("relu").sample(d=8, seed=4)
    given = ws.RandomAttention.from_weights(drawn.W, "relu")
    assert ws.word_sensitivity(drawn, X, 1).lower == ws.word_sensitivity(given, X, 1).lower
    network = ws.RandomFeatures(2, activation="tanh").sample(n=5, d=8, lazy=False)
    weights = [network.first.to_dense(), network.hidden[0].to_dense()]
    again = ws.RandomFeatures.from_weights(weights, activation="tanh")
    assert ws.word_sensitivity(network, X, 1).lower == ws.word_sensitivity(again, X, 1).lower


def test_float64_search_agrees_with_float32() -> None:
    X = ws.synthetic_tokens(10, 16, seed=0)
    phi = ws.RandomAttention().sample(d=16)
    single, double = (ws.word_sensitivity(phi, X, 0, dtype=dtype).lower for dtype in ("float32", "float64"))
    assert single == pytest.approx(double, rel=1e-3)


@pytest.mark.slow
def test_full_size_within_memory() -> None:
    """RF at n=150, d=768: V would take 106 GB as dense numbers."""
    X = ws.synthetic_tokens(150, 768, seed=0)
    phi = ws.RandomFeatures().sample(n=150, d=768, memory_limit=10**9)
    r = ws.word_sensitivity(phi, X, 0)
    assert phi.budget is not None and phi.budget.used < 10**9
    assert r.upper is not None and r.lower <= r.upper
