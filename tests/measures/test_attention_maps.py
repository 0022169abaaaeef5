"""Attention weights are the model's own, and a moved word draws what the numbers say."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from families import CAUSAL, FAMILIES, tiny, tokenizer
from wordsway.models.loading.load import open_model
from wordsway.models.moving.attention_weights import Attraction, all_weights, attention_weights, draw_attention, eager

TITLE = "Towards Understanding the Word Sensitivity of Attention Layers: A Study via Random Features"
TEXT = "The waiter was rude, and the soup cold."


@pytest.mark.parametrize("family", FAMILIES)
class TestEveryFamily:
    def test_weights_are_what_the_library_says(self, family: str) -> None:
        model = tiny(family)
        opened = open_model(model, tokenizer())
        ids = opened.encoder.tokenize([TEXT])[0].ids
        found = all_weights(opened, opened.encoder.states([ids], 0)[0])
        model.set_attn_implementation("eager")
        with torch.no_grad():
            wanted = model(input_ids=torch.tensor([ids]), output_attentions=True).attentions
        assert torch.allclose(found, torch.cat(wanted), atol=1e-5)

    def test_the_closed_form_is_the_gradient_of_scores(self, family: str) -> None:
        """Scores recovered from weights: differences of logarithms in a row, seen by finite differences."""
        model = tiny(family, dtype=torch.float64)
        opened = open_model(model, tokenizer())
        X = opened.encoder.states([opened.encoder.tokenize([TEXT])[0].ids], 0)[0].double()
        a = Attraction(opened, X, [3])
        directions = a.directions()
        assert directions.shape == (3, 1, 24)
        rows = [j for j in range(len(X)) if j > 3 or (j != 3 and family not in CAUSAL)]
        step = torch.randn(1, 1, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 1e-5
        with eager(opened), torch.no_grad():
            up, down = (a.weights(sign * step)[0].log() for sign in (1, -1))
        scores = lambda logs: logs[:, rows, 3] - logs[:, rows, 0]  # noqa: E731
        slope = (scores(up) - scores(down)).sum(-1) / 2
        assert torch.allclose((directions[:, 0] @ step[0, 0]), slope, rtol=1e-3, atol=1e-9)

    def test_ascent_draws_at_least_what_the_closed_form_does(self, family: str) -> None:
        opened = open_model(tiny(family), tokenizer())
        X = opened.encoder.states([opened.encoder.tokenize([TEXT])[0].ids], 0)[0].double()
        drawn = draw_attention(Attraction(opened, X, [3]), float(X[3].norm()))
        assert (drawn.found >= drawn.closed).all() and (drawn.found > drawn.plain).all()
        assert (drawn.deltas.flatten(1).norm(dim=1) <= float(X[3].norm()) * (1 + 1e-5)).all()


def test_the_closed_form_of_bert_is_the_papers() -> None:
    opened = open_model("minilm")
    X = opened.encoder.states([opened.encoder.tokenize([TEXT])[0].ids], 0)[0]
    layer = opened.base.encoder.layer[0].attention.self
    others = [j for j in range(len(X)) if j != 3]
    queries = layer.query(X).view(len(X), 12, 32)[others].sum(0)
    wanted = torch.einsum("hk,hkd->hd", queries, layer.key.weight.view(12, 32, 384))
    found = Attraction(opened, X.double(), [3]).directions()[:, 0]
    assert float(torch.nn.functional.cosine_similarity(found, wanted).min()) > 0.9999


def test_every_head_of_the_real_model() -> None:
    maps = ws.attention_maps("minilm", TITLE, word=6, attract=True, head=1)
    assert maps.targets is not None and [row["head"] for row in maps.targets] == [*range(1, 13), "all"]
    for row in maps.targets:
        assert row["found"] > row["closed"] > row["plain"]
    assert maps.mass_before is not None and maps.mass_after is not None and maps.after is not None
    assert maps.mass_after.shape == (6, 12)
    assert float(maps.mass_after[0, 0]) == pytest.approx(maps.targets[0]["found"], abs=1e-4)
    assert float(maps.mass_before[0, 0]) == pytest.approx(maps.targets[0]["plain"], abs=1e-4)
    token = maps.tokens[0]
    assert float(maps.after[0, 0, :, token].mean()) == pytest.approx(maps.targets[0]["found"], abs=1e-4)


def test_no_weights_are_an_error_and_not_silence() -> None:
    opened = open_model("minilm")
    rows = opened.encoder.states([[101, 2307, 102]], 0)[0][None]
    before = opened.base.config._attn_implementation
    assert before != "eager"
    with pytest.raises(ws.InputError, match="gave no attention weights"):
        attention_weights(opened, rows, 1)  # not within `eager`
    with eager(opened):
        assert attention_weights(opened, rows, 1).shape == (1, 12, 3, 3)
    assert opened.base.config._attn_implementation == before


class TestResult:
    def test_two_texts(self, tmp_path: Path) -> None:
        maps = ws.attention_maps("minilm", "I love her much", "I love her smile")
        weights, names = maps.shown()
        assert names == ("I", "love", "her", "much") and weights.shape == (4, 4)
        assert maps.shown(True)[1][-1] == "smile"
        assert float(weights.sum(1).max()) < 1  # what special tokens get is hidden, not shared out
        whole = ws.attention_maps("minilm", "I love her much", special=True)
        assert torch.allclose(whole.shown()[0].sum(1), torch.ones(6), atol=1e-5)
        table = maps.to_dataframe()
        assert len(table) == 32 and set(table["map"]) == {"before", "after"}
        axes = maps.plot()
        assert len([ax for ax in axes.figure.axes if ax.images]) == 2
        maps.save(tmp_path / "maps.json")
        saved = json.loads((tmp_path / "maps.json").read_text())
        assert saved["maps"]["after"]["tokens"] == ["I", "love", "her", "smile"]

    def test_a_word_without_a_move_has_its_mass(self) -> None:
        maps = ws.attention_maps("minilm", TEXT, word=2)
        assert maps.word_text == "waiter" and maps.mass_after is None and maps.targets is None
        assert len(maps.to_dataframe()) == 72

    def test_what_cannot_be_asked_for(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"against": "x y", "word": 1}, "not both"),
            ({"attract": True}, "needs a word"),
            ({"layer": 7}, "layers 1 to 6"),
            ({"head": 13}, "heads 1 to 12"),
            ({"word": "THE"}, "2 times"),
            ({"word": "tea"}, "not in the text"),
            ({"word": 1, "radius": -1.0}, "positive"),
            ({"budget": "huge"}, "quick, default"),
        ]
        for options, words in cases:
            with pytest.raises(ws.InputError, match=words):
                ws.attention_maps("minilm", TEXT, **options)


@pytest.mark.parametrize("texts", [("I love her much", "I love her uncharacteristically nice smile"), (TEXT, None)])
def test_the_picture_cuts_off_no_label(texts: tuple[str, str | None]) -> None:
    figure = ws.attention_maps("minilm", texts[0], texts[1], special=True).plot().figure
    figure.canvas.draw()
    page = figure.bbox
    from matplotlib.text import Text

    texts_shown: list[Any] = figure.findobj(lambda each: isinstance(each, Text) and each.get_text())
    places = [text.get_window_extent() for text in texts_shown if text.get_visible()]
    assert len(places) > 12
    assert all(page.x0 <= p.x0 and p.x1 <= page.x1 and page.y0 <= p.y0 and p.y1 <= page.y1 for p in places)
