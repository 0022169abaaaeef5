"""Flip radii: the definition where it is known in closed form, moves by an independent plain run, proofs, files."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from families import CAUSAL, tiny, tokenizer
from wordsway.maps.base import moved
from wordsway.measures.flip_proof import largest
from wordsway.measures.flip_radii import FlipRadii, WordFlip, flipped_by
from wordsway.measures.margins import Margins, Readout
from wordsway.models.loading.load import open_model
from wordsway.models.moving.map import PretrainedMap

TEXT = "The food was good and the staff kind."
D = 6


def rows(n: int = 4, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def linear(X: torch.Tensor) -> torch.Tensor:
    """Features that are linear in the text, each row with a weight of its own."""
    weights = torch.arange(1.0, len(X) + 1, dtype=X.dtype, device=X.device)
    return (weights[:, None] * X).sum(0)


class TestLinear:
    """For linear features and a linear readout the boundary is a plane, so the radius is gap / |gradient|."""

    def test_a_sign(self) -> None:
        X, theta = rows(), rows(1, seed=1)[0]
        score = float(theta @ linear(X))
        found = ws.flip_radius(linear, X, readout=theta, radius=100.0)
        for entry in found.words:
            wanted = abs(score) / (float(theta.norm()) * entry.word)
            assert entry.distance is not None and entry.distance == pytest.approx(wanted, rel=1e-4)
            assert entry.radius == pytest.approx(wanted / float(X[entry.word - 1].norm()), rel=1e-4)
            assert entry.distance >= wanted * (1 - 1e-9)  # what is found is never below the truth
            assert entry.to == ("0" if score > 0 else "1")
        assert [entry.radius for entry in found.words] == sorted(entry.radius or 0 for entry in found.words)

    def test_several_classes_and_a_bias(self) -> None:
        X, theta = rows(), rows(5, seed=2)
        bias = torch.linspace(-1, 1, 5, dtype=torch.float64)
        scores = theta @ linear(X) + bias
        top = int(scores.argmax())
        found = ws.flip_radius(linear, X, readout=theta, bias=bias, radius=100.0, classes=list("abcde"))
        assert found.prediction == "abcde"[top]
        for entry in found.words:
            distances = {
                c: float((scores[top] - scores[c]) / ((theta[top] - theta[c]).norm() * entry.word))
                for c in range(5)
                if c != top
            }
            nearest = min(distances, key=lambda c: distances[c])
            assert entry.distance == pytest.approx(distances[nearest], rel=1e-3) and entry.to == "abcde"[nearest]

    def test_one_row_and_a_limit(self) -> None:
        X, theta = rows(), rows(1, seed=1)[0]
        whole = {entry.word: entry for entry in ws.flip_radius(linear, X, readout=theta, radius=100.0).words}
        radius = whole[3].radius
        assert radius is not None
        (alone,) = ws.flip_radius(linear, X, 3, readout=theta, radius=1.01 * radius).words
        assert alone.word == 3 and alone.radius == pytest.approx(radius, rel=1e-3)
        short = ws.flip_radius(linear, X, 3, readout=theta, radius=0.98 * radius)
        assert short.words[0].radius is None and short.words[0].to is None and not short.flipped


def bowl(X: torch.Tensor) -> torch.Tensor:
    """A curved boundary whose nearest point is known: the first row's first coordinate, squeezed."""
    return torch.stack([X[0, 0] - 0.3 * X[0, 1:].square().sum(), X[1:].sum()])


class TestCurved:
    def test_the_nearest_point_of_a_paraboloid(self) -> None:
        X = torch.zeros(2, D, dtype=torch.float64)
        X[0, 0], X[1, 0] = -1.0, 1.0
        # x - 0.3 |y|^2 = 0 from (-1, 0): straight ahead, since leaving the axis only moves the boundary away.
        (entry,) = ws.flip_radius(bowl, X, 1, readout=[1.0, 0.0], radius=10.0).words
        assert entry.distance == pytest.approx(1.0, rel=1e-3)

    def test_a_prediction_that_cannot_change(self) -> None:
        found = ws.flip_radius(lambda X: torch.tanh(X[0]).sum()[None] + 10.0, rows(), readout=[1.0])
        assert not found.flipped and all(entry.radius is None and entry.distance is None for entry in found.words)
        assert found.words[0].certified == 0 and "no certificate" in (found.words[0].reason or "")


class TestProofs:
    @pytest.mark.parametrize("name", ["rf", "raf"])
    def test_certified_is_below_found(self, name: str) -> None:
        X = ws.synthetic_tokens(8, 16, seed=1)
        phi = ws.named_map(name, 8, 16, 0)
        theta = torch.randn(phi(X).numel(), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        found = ws.flip_radius(phi, X, readout=theta, radius=4.0)
        assert found.flipped
        for entry in found.words:
            assert entry.certified <= (math.inf if entry.radius is None else entry.radius)
        if name == "rf":
            assert all(entry.certified > 0 for entry in found.words)

    def test_it_is_what_the_certificate_allows(self) -> None:
        X = ws.synthetic_tokens(8, 16, seed=1)
        phi = ws.named_map("rf", 8, 16, 0)
        theta = torch.randn(phi(X).numel(), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        (entry,) = ws.flip_radius(phi, X, 1, readout=theta, radius=4.0).words
        view = phi.view(X, [0])
        allowed = abs(float(theta @ phi(X).flatten())) / float(theta.norm()) / view.base_norm
        at, above = (ws.certify(view, share * entry.certified * entry.norm).upper for share in (1.0, 1.02))
        assert at is not None and above is not None and at < allowed <= above

    def test_the_largest_radius(self) -> None:
        for truth in (0.001, 0.7, 1.0, 300.0):
            found = largest(lambda radius, truth=truth: radius <= truth, 1.0)
            assert truth / 1.006 <= found <= truth
        assert largest(lambda radius: False, 1.0) == 0
        assert largest(lambda radius: True, 1.0) > 1e9

    def test_infinite_where_no_move_of_any_size_can(self) -> None:
        model = tiny("bert", "classifier")
        with torch.no_grad():
            model.classifier.weight.mul_(1e-3)
            model.classifier.bias.copy_(torch.tensor([0.0, 50.0, 0.0]))
        phi = PretrainedMap(model, "pooled:first", tokenizer=tokenizer())
        theta = torch.zeros(3, 24, dtype=torch.float64)
        theta[0, 0] = 1e-3
        found = ws.flip_radius(phi, phi.encode(TEXT), "good", readout=theta, bias=[0.0, 5.0, 0.0], real_words=0)
        (entry,) = found.words
        assert entry.radius is None and math.isinf(entry.certified) and entry.reason is None
        assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["words"][0]["certified"] == "infinite"
        assert math.isinf(ws.FlipRadii.from_dict(found.to_dict()).words[0].certified)


@pytest.fixture(scope="module")
def sentiment() -> ws.FlipRadii:
    return ws.flip_radius("sentiment", TEXT, budget="quick", real_words=20)


class TestClassifier:
    def test_moves_by_an_independent_run(self, sentiment: ws.FlipRadii) -> None:
        model = open_model("sentiment")
        assert model.head is not None
        phi = PretrainedMap("sentiment", "logits")
        X = phi.encode(TEXT).X.double()

        def label(rows: torch.Tensor) -> int:
            with torch.no_grad():
                state = model.state(rows[None].float(), model.layers)
            assert model.head is not None
            return int(model.head.logits(state)[0].argmax())

        before = label(X)
        assert model.head.labels[before] == sentiment.prediction
        for entry in sentiment.flipped:
            delta = sentiment.deltas[entry.word]
            assert entry.distance == pytest.approx(float(delta.norm()), rel=1e-12)
            assert entry.radius == pytest.approx(float(delta.norm() / X[entry.token].norm()), rel=1e-6)
            after = label(moved(X, (entry.token,), delta[None]))
            assert after != before and model.head.labels[after] == entry.to
            # It ends at the boundary: a little less along the same line does not change the prediction.
            assert label(moved(X, (entry.token,), 0.999 * delta[None])) == before
            assert entry.certified <= (entry.radius or math.inf)

    def test_words(self, sentiment: ws.FlipRadii) -> None:
        assert len(sentiment.words) == 9 and sentiment.prediction == "positive"
        assert sentiment.gradients == sum(entry.gradients for entry in sentiment.words)
        by_name = {entry.text: entry for entry in sentiment.words}
        assert by_name["."].tried == 0 and by_name["."].untried == "punctuation"
        order = [entry.radius for entry in sentiment.words if entry.radius is not None]
        assert order == sorted(order) and len(order) >= 7

    def test_the_nearest_real_word(self) -> None:
        phi = PretrainedMap("sentiment", "logits")
        text = "I love her smile"
        (entry,) = ws.flip_radius(phi, text, "love", budget=8, real_words=400).words
        real = entry.real
        assert real is not None and real.to == "negative" and real.distance == pytest.approx(real.radius * entry.norm)
        changed, X = phi.encode(text.replace("love", real.text)), phi.encode(text).X
        assert float((changed.X - X)[2].norm()) == pytest.approx(real.distance, rel=1e-4)
        assert int(phi(changed.X).argmax()) != int(phi(X).argmax())
        (fewer,) = ws.flip_radius(phi, text, "love", budget=8, real_words=entry.tried - 1).words
        assert fewer.real is None and fewer.tried == entry.tried - 1  # so it is the nearest

    def test_a_word_of_several_tokens(self) -> None:
        phi = PretrainedMap("sentiment", "logits")
        tokens = phi.encode("An unputdownable book")
        (entry,) = ws.flip_radius(phi, tokens, "unputdownable", budget="quick").words
        assert len(entry.tokens) > 1 and entry.token in entry.tokens
        assert entry.real is None and "tokens" in (entry.untried or "")

    def test_more_budget_is_counted(self) -> None:
        (entry,) = ws.flip_radius("sentiment", "I love her smile", "love", budget=40, real_words=0).words
        assert 0 < entry.gradients <= 40


class TestOtherModels:
    @pytest.mark.parametrize("family", CAUSAL)
    def test_the_next_token(self, family: str) -> None:
        model = tiny(family, "causal")
        found = ws.flip_radius(model, TEXT, "good", tokenizer=tokenizer(), radius=3.0, real_words=20)
        assert found.flipped
        phi = PretrainedMap(model, "logits", tokenizer=tokenizer())
        X = phi.encode(TEXT).X.double()
        before = int(phi(X).argmax())
        assert tokenizer().decode([before]) == found.prediction
        for entry in found.flipped:
            after = phi(moved(X, (entry.token,), found.deltas[entry.word][None]))
            assert int(after.argmax()) != before and tokenizer().decode([int(after.argmax())]) == entry.to

    def test_three_classes(self) -> None:
        model = tiny("bert", "classifier")
        found = ws.flip_radius(model, TEXT, "good", tokenizer=tokenizer(), radius=3.0, real_words=10, budget="quick")
        assert found.words[0].to in ("LABEL_0", "LABEL_1", "LABEL_2") and found.words[0].to != found.prediction

    def test_margins_are_the_scores_differences(self) -> None:
        model = tiny("bert", "classifier")
        phi = PretrainedMap(model, "logits", tokenizer=tokenizer())
        X = phi.encode(TEXT).X.double()
        margins = Margins(phi, X, Readout(None, torch.zeros(3, dtype=torch.float64)), str, torch.device("cpu"))
        delta = torch.randn(2, 3, 1, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        values = margins.open([1, 4])(delta)
        for k, token in enumerate((1, 4)):
            for b in range(3):
                scores = phi(moved(X, (token,), delta[k, b]))
                other = max(float(scores[c]) for c in range(3) if c != margins.predicted)
                assert float(values[k, b]) == pytest.approx(other - float(scores[margins.predicted]), abs=1e-4)


class TestFiles:
    def test_round_trip(self, tmp_path: Path, sentiment: ws.FlipRadii) -> None:
        path = tmp_path / "flips.json"
        sentiment.save(path)
        again = ws.load_result(path)
        assert again.words == sentiment.words and again.to_dict() == sentiment.to_dict() and again.deltas == {}
        assert "How far a word must move" in ws.report_html(path)
        assert list(sentiment.to_dataframe()["word"]) == [entry.word for entry in sentiment.words]
        assert sentiment.plot().get_title(loc="left").startswith("How far a word must move")

    def test_damaged(self, tmp_path: Path, sentiment: ws.FlipRadii) -> None:
        path = tmp_path / "flips.json"
        for text, words in (
            ("{", "not JSON"),
            ("{}", "format"),
            (json.dumps({**sentiment.to_dict(), "words": [{}]}), "damaged"),
        ):
            path.write_text(text)
            with pytest.raises(ws.InputError, match=words):
                ws.load_result(path)
        with pytest.raises(ws.InputError, match="cannot read"):
            ws.load_result(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("sentiment", TEXT), {"radius": 0}, "radius must be a positive"),
        (("sentiment", TEXT), {"radius": math.inf}, "radius must be a positive"),
        (("sentiment", TEXT, "banana"), {}, "not in the text"),
        (("sentiment", TEXT), {"budget": "much"}, "budget"),
        (("sentiment", TEXT), {"real_words": -1}, "real_words"),
        (("sentiment", TEXT), {"bias": [0.0, 1.0]}, "readout"),
        (("sentiment", TEXT), {"classes": ["one"]}, "2 names"),
        (("minilm", TEXT), {}, "no logits"),
        ((linear, rows()), {"readout": [1.0, 2.0]}, "shape"),
        ((linear, rows()), {"readout": "no"}, "numbers"),
        ((linear, rows()), {"readout": [[1.0] * D]}, "one class"),
        ((linear, rows()), {"readout": [math.nan] * D}, "NaN"),
        ((linear, rows()), {"readout": [1.0] * D, "bias": [1.0, 2.0]}, "bias"),
        ((linear, rows()), {"readout": [0.0] * D}, "no prediction"),
        ((linear, "a text"), {"readout": [1.0] * D}, "384 features"),  # the text is embedded with the bundled encoder
        ((linear, rows(), 9), {"readout": [1.0] * D}, "number of a row"),
        ((ws.named_map("rf", 4, D, 0), rows()), {}, "readout="),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ws.InputError, match=words):
        ws.flip_radius(*arguments, **options)


def test_ranks_by_the_flip_share_what_searches_do_not_tell_apart() -> None:
    blank = WordFlip(0, "a", (0, 1), (0,), 0, 1.0, 0.1, 0.1, "x", 0.0, 0.0, None, None, 100, None, 1)
    radii = (0.100, 0.105, 0.200, None)
    words = tuple(replace(blank, word=k + 1, radius=radius) for k, radius in enumerate(radii))
    made = FlipRadii("y", 0.9, 1.0, words, {"map": "pretrained"}, None, 4, 0, 1.0, "plain", "0")
    assert made.flip_ranks == ((1, 2), (1, 2), (3, 1), (4, 1))
    assert [row["radius"] for row in made.records()] == [1.0] * 4
    assert [row["flips_at"] for row in made.records()] == list(radii)
    assert flipped_by(words[0]) == "none of 100" and flipped_by(replace(blank, tried=0)) == "not tried"
    several = replace(made, words=(replace(blank, untried="several tokens", tried=0), *words[1:]))
    assert "not tried: a (several tokens)" in several.column_notes[0]
