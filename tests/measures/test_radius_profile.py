"""Profiles over the radius: exact for linear maps, never falling, within the bounds, as good as one radius alone."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from families import tiny, tokenizer
from wordsway.models.moving.map import PretrainedMap

TEXT = "The food was good"


def weighted(X: torch.Tensor) -> torch.Tensor:
    """Linear features: row k counts k + 1 times, its coordinate j another j + 1 times."""
    scale = torch.arange(1.0, X.shape[1] + 1, dtype=X.dtype, device=X.device)
    rows = torch.arange(1.0, len(X) + 1, dtype=X.dtype, device=X.device)
    return ((rows[:, None] * X) * scale).sum(0)


def test_linear_maps_are_exact() -> None:
    X = ws.synthetic_tokens(3, 5, seed=0)
    found = ws.radius_profile(weighted, X, [1.0, 0.01, 0.1])
    assert found.radii == (0.01, 0.1, 1.0)
    size = float(weighted(X).norm())
    for word in found.words:
        for radius, value in zip(found.radii, word.lower, strict=True):
            wanted = radius * float(X[word.word - 1].norm()) * 5 * word.word / size
            assert value == pytest.approx(wanted, rel=1e-3) and value <= wanted * (1 + 1e-9)
    assert found.words[0].reason and found.words[0].upper == (None, None, None)


@pytest.mark.parametrize("name", ["raf", "rf"])
def test_random_maps(name: str) -> None:
    X = ws.synthetic_tokens(6, 12, seed=1)
    phi = ws.named_map(name, 6, 12, 0)
    found = ws.radius_profile(phi, X, (0.02, 0.2, 1.0))
    for word in found.words:
        assert list(word.lower) == sorted(word.lower) and list(word.upper) == sorted(u or 0 for u in word.upper)
        assert all(low <= (high or 0) for low, high in zip(word.lower, word.upper, strict=True))
    for k, radius in enumerate(found.radii):
        alone = ws.word_sensitivity(phi, X, radius=radius * math.sqrt(12), certificate=False, random_draws=0)
        for word, entry in zip(found.words, alone.per_token, strict=True):
            # Lazy weights of rf are searched with few evaluations, which vary.
            assert word.lower[k] >= (0.95 if name == "rf" else 0.99) * entry.lower


def test_values_are_those_of_plain_moves() -> None:
    phi = PretrainedMap(tiny("bert", "classifier"), "pooled", tokenizer=tokenizer())
    found = ws.radius_profile(phi, TEXT, (0.05, 0.5), budget="quick")
    tokens = phi.encode(TEXT)
    for k, radius in enumerate(found.radii):
        radii = [radius * size for size in tokens.X.double().norm(dim=1).tolist()]
        alone = ws.word_sensitivity(phi, tokens, radius=radii, budget="quick", random_draws=0)
        for word, entry in zip(found.words, alone.words or (), strict=True):
            # Two searches of a deep model; at large radii the other one's result is among those that are compared.
            assert word.lower[k] >= (1 - 1e-6 if radius >= 0.5 else 0.8) * entry.lower
            assert word.lower[k] <= (math.inf if word.upper[k] is None else word.upper[k] or 0.0)
    assert found.prediction is not None  # it is a classifier, so flips are looked for
    for word in found.words:
        assert word.flip is None or 0 < word.flip <= 0.5


def test_one_word_without_flips() -> None:
    model = tiny("llama", "causal")
    found = ws.radius_profile(model, TEXT, (0.1,), "good", tokenizer=tokenizer(), output="logits", budget="quick")
    assert [word.text for word in found.words] == ["good"] and found.prediction is None
    asked = ws.radius_profile(model, TEXT, (2.0,), "good", tokenizer=tokenizer(), flips=True, budget="quick")
    assert asked.prediction is not None


def test_files_and_picture(tmp_path: Path) -> None:
    phi = PretrainedMap(tiny("bert", "classifier"), "pooled", tokenizer=tokenizer())
    found = ws.radius_profile(phi, TEXT, (0.05, 0.5, 2.0), budget="quick")
    path = tmp_path / "profile.json"
    found.save(path)
    again = ws.load_result(path)
    assert again.to_dict() == found.to_dict() and again.words == found.words
    assert len(found.to_dataframe()) == 12
    axes = found.plot()
    assert len([line for line in axes.lines if line.get_marker() == "o"]) == 4
    assert len([line for line in axes.lines if line.get_marker() == "*"]) == sum(
        word.flip is not None and word.flip >= 0.05 for word in found.words
    )
    assert "against the radius" in ws.report_html(path)
    for text, words in (("[]", "format"), (json.dumps({**found.to_dict(), "words": [3]}), "damaged")):
        path.write_text(text)
        with pytest.raises(ws.InputError, match=words):
            ws.load_result(path)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((weighted, ws.synthetic_tokens(3, 5), []), {}, "list of positive"),
        ((weighted, ws.synthetic_tokens(3, 5), [0.1, -1.0]), {}, "positive number"),
        ((weighted, ws.synthetic_tokens(3, 5)), {"flips": True}, "flips="),
        ((weighted, ws.synthetic_tokens(3, 5)), {"output": "last"}, "output"),
        (("minilm", TEXT, [0.1]), {"flips": True}, "no logits"),
        (("minilm", TEXT, [0.1], "banana"), {}, "not in the text"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ws.InputError, match=words):
        ws.radius_profile(*arguments, **options)


def test_a_function_takes_a_text() -> None:
    """It is embedded with the bundled encoder, as `word_sensitivity` does."""
    given = ws.radius_profile(lambda X: X.mean(0), TEXT, [0.1], 1, budget="quick")
    encoded = ws.radius_profile(lambda X: X.mean(0), ws.encode(TEXT), [0.1], 1, budget="quick")
    assert given.records() == encoded.records()
