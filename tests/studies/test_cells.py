"""Cells: each is the library's own function on its own texts and weights, and stands alone."""

import math
from pathlib import Path

import pytest
import torch

import wordsway as ws
from wordsway.datasets.training_sets import labelled_tokens
from wordsway.models.encoding.encode import find_encoder
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.studies.cells.flip_cell import FlipCell
from wordsway.studies.cells.model_cells import AttentionCell, LayersCell, PromptsCell, word_at
from wordsway.studies.cells.passages import passage
from wordsway.studies.cells.recipes import revision_of
from wordsway.studies.cells.sensitivity_cell import SensitivityCell
from wordsway.support.seeds import stream

CPU = torch.device("cpu")


def minilm() -> PretrainedEncoder:
    found = find_encoder("minilm", None, CPU)
    assert isinstance(found, PretrainedEncoder)
    return found


def test_padding_is_the_models_own() -> None:
    """[PAD] rows as the model embeds them when its tokenizer pads, beside the rows of the text."""
    encoder, texts = minilm(), ["I love her smile", "No"]
    asked = encoder.tokenizer(texts, padding="max_length", max_length=12, return_tensors="pt")
    with torch.no_grad():
        expected = encoder.model(**asked, output_hidden_states=True).hidden_states[0]
    found = list(encoder.padded(texts, 12))
    for tokens, rows in zip(found, expected, strict=True):
        torch.testing.assert_close(tokens.X, rows, rtol=1e-5, atol=1e-6)
    assert found[0].tokens[6:] == ("[PAD]",) * 6 and found[0].special.tolist() == [True] + [False] * 4 + [True] * 7
    assert found[0].words == ("I", "love", "her", "smile")
    with pytest.raises(ws.InputError, match="6 tokens, more than the 5"):
        list(encoder.padded(texts, 5))


def test_a_trial_has_one_text_whatever_else_is_asked() -> None:
    ask = {"data": "sample", "encoder": "minilm", "layer": 0, "padding": "none", "at_least": 12, "seed": 3}
    some = [passage(**ask, trial=trial) for trial in (2, 40, 0, 15)]
    again = [passage(**ask, trial=trial) for trial in (0, 2, 15, 40)]
    assert [t.text for t in some] == [again[k].text for k in (1, 3, 0, 2)]
    assert len({t.text for t in some}) == 4
    shuffled = ws.load_texts("sample", count=50, seed=3, at_least=12, shorter_than=None, balance=False)
    assert [t.text for t in again] == [shuffled.texts[trial] for trial in (0, 2, 15, 40)]
    assert all(t[:12].special.tolist() == [True] + [False] * 11 for t in again if len(t) > 12)  # no closing token
    short = passage("sample", "minilm", 0, "published", 12, 3, 1)
    assert len(short) == 256 and short.tokens[-1] == "[PAD]"
    torch.testing.assert_close(short.X.norm(dim=1), torch.full((256,), math.sqrt(384)), rtol=1e-5, atol=0)
    with pytest.raises(ws.InputError, match="texts of at least n=12 tokens, but trial 100001"):
        passage(**ask, trial=100_000)


@pytest.mark.parametrize("name", ["rf", "raf"])
def test_a_sensitivity_cell(name: str) -> None:
    cell = SensitivityCell(map=name, n=6, d=16, radius=0.5, token=2, seed=4, trial=1)
    (row,) = cell.measure().rows
    X = ws.synthetic_tokens(6, 16, stream(4, "curve", 16, 6, 1, "text"))
    phi = ws.named_map(name, 6, 16, stream(4, "curve", 16, 6, 1, "weights"))
    r = ws.word_sensitivity(phi, X, 2, radius=2.0, seed=4)
    assert (row["lower"], row["upper"], row["moved_token"]) == (r.lower, r.upper, 2)
    assert row["predicted"] == pytest.approx(row["lower"], rel=0.5)
    real = SensitivityCell(map=name, n=6, d=16, encoder="minilm", data="sample", token="word", at_least=12)
    (row,) = real.measure().rows
    assert row["moved_token"] == 1 and (row["predicted"] is None) == (name == "raf")
    assert revision_of(real).startswith("minilm@") and revision_of(cell) == ""


def test_a_file_of_texts_is_part_of_the_revision(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("text,label\ngood,1\nbad,0\n")
    cell = SensitivityCell(map="raf", n=3, encoder="minilm", data=str(file))
    before = revision_of(cell)
    file.write_text("text,label\ngood,1\nsad,0\n")
    assert revision_of(cell) != before


@pytest.mark.slow
def test_a_flip_cell() -> None:
    cell = FlipCell(map="raf", n=4, train_size=8, d=16, trial=2, seed=5, objectives=("align", "penalized")).settle()
    rows = cell.measure().rows
    X, y = labelled_tokens(9, 4, 16, stream(5, "generalize", 2))
    phi = ws.named_map("raf", 4, 16, stream(5, "generalize", 16, 4, 2, "weights"))
    learner = ws.Generalization(phi, X[1:], y[1:])
    for row, (training, objective, penalty) in zip(rows, cell.questions(), strict=True):
        flip = learner.flip(
            X[0], int(y[0]), token=0, training=training, objective=objective, penalty=penalty or 0.0, seed=5
        )
        assert (row["err"], row["gamma"], row["training"]) == (flip.err, flip.gamma, training)
    assert [row["penalty"] for row in rows] == [None, 0.1, None, 0.1]
    full = FlipCell(map="raf", n=2, train_size=20, d=4, trainings=("retrain",), objectives=("align",)).settle()
    assert full.measure().rows[0]["err"] is None  # as many texts as features: tried, not defined
    padded = FlipCell(map="raf", n=100, train_size=6, encoder="minilm", data="sample", padding="published", token=0)
    first, second = padded.settle().measure().rows, padded.settle().measure().rows
    assert [row["err"] for row in first] == [row["err"] for row in second] and first[0]["moved_token"] == 0


def test_an_attention_cell() -> None:
    outcome = AttentionCell(text="I love her much", against="I love her smile").measure()
    maps = ws.attention_maps("minilm", "I love her much", "I love her smile")
    assert torch.equal(outcome.arrays["before"], maps.shown()[0]) and outcome.arrays["after"].shape == (4, 4)
    assert outcome.rows[0]["after_tokens"] == "I love her smile"
    gap = (maps.shown(True)[0] - maps.shown()[0]).abs().max()
    assert outcome.rows[0]["largest_change"] == pytest.approx(float(gap))
    with pytest.raises(ws.InputError, match="either"):
        AttentionCell(text="I love her")
    assert word_at("minilm", "I love her", 2) == 2
    with pytest.raises(ws.InputError, match="no word"):
        word_at("minilm", "I love her", 0)
    with pytest.raises(ws.InputError, match="is not there"):
        word_at("minilm", "I love her", 9)


@pytest.mark.slow
def test_cells_about_models(smollm2: str) -> None:
    rows = LayersCell(text="One word in a long text counts.", token=2, noise_draws=4).measure().rows
    assert [row["layer"] for row in rows] == list(range(7)) and {row["word"] for row in rows} == {"word"}
    assert all(row["searched"] >= row["attracting"] for row in rows)
    moved = AttentionCell(text="One word in a long text counts.", token=2, head=1, budget="quick").measure().rows[0]
    assert moved["mass_after"] > moved["mass_before"]
    (row,) = PromptsCell(model=str(smollm2), before="Say good.", after="Say bad.", answer_tokens=5).measure().rows
    assert row["differs"] in (0.0, 1.0) and row["kl"] > 0 and isinstance(row["answer_before"], str)
