"""Minimal pairs: what is made, what a readout of them is held against, and the cell that puts it together."""

import csv
import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from wordsway.datasets import minimal_pairs
from wordsway.datasets.minimal_pairs import draw_pairs, given_pairs, material, parted
from wordsway.learning.pairwise import compare_features, shuffled, swapped, tell_apart
from wordsway.learning.readout import Readout
from wordsway.studies.cells.base import Cell
from wordsway.studies.cells.pairs_cell import PairsCell
from wordsway.studies.cells.recipes import cell_of, recipe_of, revision_of
from wordsway.studies.figures.draw import draw_study
from wordsway.studies.run.tables import Table
from wordsway.support.seeds import stream

SIDES = (("good", 1), ("bad", 0))
GOOD = minimal_pairs._content()["good"]
SMALL: dict[str, Any] = {"n": 20, "pairs": 12, "test_pairs": 10, "d": 24}


def encoded(texts: Any, n: int, **options: Any) -> list[ws.Tokens]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.TextWarning)
        return ws.encode(list(texts), max_tokens=n, cache=False, **options)


class TestGenerator:
    @pytest.mark.parametrize("position", minimal_pairs.POSITIONS)
    @pytest.mark.parametrize("n", [16, 75])
    def test_one_token_decides(self, n: int, position: str) -> None:
        """Both sides have n tokens after cropping and differ in one row, which is the marked word's."""
        made = ws.minimal_pairs(40, n, position=position)
        assert len(made) == 80 and len(made.pairs()) == 40
        rows = encoded(made.texts, n)
        good, bad = (minimal_pairs._content()[name] for name in ("good", "bad"))
        places = []
        for negative, positive in made.pairs():
            low, high = rows[negative], rows[positive]
            assert len(low) == len(high) == n
            (place,) = (low.X != high.X).any(1).nonzero().flatten().tolist()
            places.append(place)
            for side, words, tokens in ((negative, bad, low), (positive, good, high)):
                span = made.deciding[side]
                assert span is not None and tokens.offsets[place] == span
                assert made.texts[side][slice(*span)] in words
        if position == "start":
            assert max(places) < 12
        elif n == 75:
            assert min(places) < 15 and max(places) > 60 and 28 < sum(places) / 40 < 48

    def test_seeds(self) -> None:
        first = ws.minimal_pairs(6, 30, seed=1)
        assert first == ws.minimal_pairs(6, 30, seed=1) and first != ws.minimal_pairs(6, 30, seed=2)
        assert ws.minimal_pairs(4, 30, seed=1).texts == first.texts[:8]

    def test_what_is_tested_was_not_trained_on(self) -> None:
        whole = material("minilm")
        train, seen, new = parted(whole, (0, "x"))
        assert not set(train.subjects) & set(seen.subjects) and seen.subjects == new.subjects
        for label in (-1, 1):
            assert seen.words[label] == train.words[label] and not set(new.words[label]) & set(train.words[label])
            assert len(new.words[label]) >= 8
            assert sorted([*train.words[label], *new.words[label]]) == sorted(whole.words[label])
        assert parted(whole, (1, "x"))[0] != train
        pairs = [draw_pairs(30, 40, "minilm", "random", part, (0, "y")) for part in (train, new)]
        contexts = [{pair.before + pair.after for pair in part} for part in pairs]
        assert not contexts[0] & contexts[1]
        for pair in pairs[1]:
            text, flipped, same = pair.compared()
            assert len({text, flipped, same}) == 3 and {text, flipped} == set(pair.sides())
            assert pair.same in new.words[pair.anchor] and pair.words[-pair.anchor] in new.words[-pair.anchor]

    def test_refusals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ws.InputError, match=r"n=11 is too short.*at least n=12"):
            ws.minimal_pairs(1, 11)
        assert len(ws.minimal_pairs(30, 12)) == 60
        with pytest.raises(ws.InputError, match="position='middle' is not known; use one of: random, start"):
            ws.minimal_pairs(1, position="middle")
        with pytest.raises(ws.InputError, match="count must be"):
            ws.minimal_pairs(0)
        known = minimal_pairs._lengths("minilm")
        monkeypatch.setattr(minimal_pairs, "_lengths", lambda encoder: {**known, **dict.fromkeys(GOOD[:40], 2)})
        with pytest.raises(ws.InputError, match="only 8 of the judgements"):
            material("minilm")


class TestTellingApart:
    def test_against_the_plain_definition(self, rng: torch.Generator) -> None:
        """Every permutation is what training on those labels gives."""
        train = torch.randn(16, 40, generator=rng, dtype=torch.float64)
        negative, positive = torch.randn(2, 9, 40, generator=rng, dtype=torch.float64)
        labels = torch.tensor([-1.0, 1.0]).double().repeat(8)
        others = swapped(labels, rng, 30)
        found = tell_apart(Readout.fit(train, labels), negative, positive, others)

        def plain(y: torch.Tensor) -> tuple[float, float]:
            theta = torch.linalg.pinv(train) @ y
            wins = [float(b @ theta > a @ theta) for a, b in zip(negative, positive, strict=True)]
            right = [float(a @ theta < 0) for a in negative] + [float(b @ theta > 0) for b in positive]
            return sum(wins) / 9, sum(right) / 18

        assert (found.accuracy, found.single) == pytest.approx(plain(labels))
        every = sorted(plain(y)[0] for y in others)
        assert found.permuted == pytest.approx(sum(every) / 30)
        assert found.permuted_sd == pytest.approx(float(torch.tensor(every, dtype=torch.float64).std()))
        assert every[0] <= found.permuted_low <= found.permuted_high <= every[-1]
        assert found.p_value == pytest.approx((1 + sum(value >= found.accuracy for value in every)) / 31)

    def test_ties_count_half(self) -> None:
        train = torch.eye(4).double()
        labels = torch.tensor([-1.0, 1.0, -1.0, 1.0]).double()
        found = tell_apart(Readout.fit(train, labels), train[:2], train[:2], labels.repeat(2, 1))
        assert found.accuracy == found.permuted == 0.5

    def test_labels_without_meaning(self, rng: torch.Generator) -> None:
        labels = torch.tensor([-1.0, 1.0]).double().repeat(50)
        found = swapped(labels, rng, 400)
        assert bool((found[:, 0::2] == -found[:, 1::2]).all())
        assert abs(float(found.mean(0).abs().max())) < 0.25  # a pair is swapped as often as not
        assert bool((shuffled(labels, rng, 20).sum(1) == 0).all())

    def test_cosines(self, rng: torch.Generator) -> None:
        text, flipped, same = torch.randn(3, 7, 5, generator=rng, dtype=torch.float64)
        found = compare_features(text, flipped, same)
        near = [float(a @ b / (a.norm() * b.norm())) for a, b in zip(text, same, strict=True)]
        far = [float(a @ b / (a.norm() * b.norm())) for a, b in zip(text, flipped, strict=True)]
        assert found.auc == pytest.approx(sum(a > b for a in near for b in far) / 49)
        assert found.closer == pytest.approx(sum(a > b for a, b in zip(near, far, strict=True)) / 7)
        sizes = [float((b - a).norm() / a.norm()) for a, b in zip(text, flipped, strict=True)]
        assert found.change == pytest.approx(sum(sizes) / 7)
        assert compare_features(text, same, text).closer == 1.0


class TestCell:
    def test_against_the_plain_definition(self) -> None:
        """All of it again by public functions and a pseudo-inverse."""
        cell = PairsCell(map="raf", **SMALL, trial=1, seed=3).settle()
        rows = {(row["words"], row["sides"]): row for row in cell.measure().rows}
        assert set(rows) == {(words, sides) for words in ("seen", "new") for sides in ("both", "one")}
        training, seen, new = parted(material("minilm"), (3, "pairs", 1))
        drawn: dict[str, Any] = {
            name: draw_pairs(count, 20, "minilm", "random", parts, (3, "pairs", 1, name))
            for name, count, parts in (("train", 12, training), ("seen", 10, seen), ("new", 10, new))
        }
        phi = ws.named_map("raf", 20, 24, stream(3, "pairs", 24, 20, 1, "weights"))

        def features(texts: list[str]) -> torch.Tensor:
            rows = [tokens.first_dims(24).X.double() for tokens in encoded(texts, 20)]
            return torch.stack([phi(X).flatten() for X in rows])

        train = features([text for pair in drawn["train"] for text in pair.sides()])
        theta = torch.linalg.pinv(train) @ torch.tensor([-1.0, 1.0]).double().repeat(12)
        for words in ("seen", "new"):
            low, high = (features([pair.sides()[k] for pair in drawn[words]]) @ theta for k in (0, 1))
            row = rows[words, "both"]
            assert row["accuracy"] == pytest.approx(float((high > low).double().mean()))
            assert row["single"] == pytest.approx(float(torch.cat([high > 0, low < 0]).double().mean()))
            anchors, flipped = (features([pair.compared()[k] for pair in drawn[words]]) for k in (0, 1))
            change = ((flipped - anchors).norm(dim=1) / anchors.norm(dim=1)).mean()
            assert row["change"] == pytest.approx(float(change), rel=1e-5)
            assert row["rank"] == 24 and rows[words, "one"]["rank"] == 12 and row["width"] == 480

    @pytest.mark.parametrize("name", ["rf", "relu-raf", "mean", "states", "pooled"])
    def test_every_map(self, name: str) -> None:
        cell: Cell = PairsCell(map=name, **SMALL).settle()
        rows = cell.measure().rows
        assert rows == cell_of(json.loads(json.dumps(recipe_of(cell)))).measure().rows
        for row in rows:
            assert set(row) == {*cell.numbers, *cell.names}
            assert all(row[key] is None or isinstance(row[key], int | float) for key in cell.numbers)
            assert 0 <= row["accuracy"] <= 1 and 0 <= row["auc"] <= 1 and 0 < row["p_value"] <= 1
            assert row["change"] > 0 and row["available"] is None and row["moved_tokens"] == 1
        assert rows[0]["width"] == {"mean": 24, "states": 20 * 384, "pooled": 384}.get(name, 480)

    @pytest.mark.slow
    def test_where_the_word_stands_matters_to_rf_alone(self) -> None:
        """What a readout of RF learns at one place says nothing about others; attention mixes places."""

        def mean(name: str, position: str) -> float:
            cells = [
                PairsCell(map=name, n=64, pairs=40, test_pairs=30, d=32, position=position, trial=t) for t in (0, 1)
            ]
            return sum(row["accuracy"] for cell in cells for row in cell.measure().rows[:1]) / 2

        at_random = mean("rf", "random")
        assert mean("rf", "start") > at_random + 0.1  # by 0.4 and more
        assert mean("raf", "random") > at_random + 0.1

    @pytest.mark.slow
    def test_labels_without_meaning_are_chance(self) -> None:
        rows = [row for t in range(3) for row in PairsCell(map="raf", **SMALL, trial=t).measure().rows]
        assert 0.44 < sum(row["permuted"] for row in rows) / len(rows) < 0.56

    def test_refusals(self) -> None:
        for bad, words in (
            ({"map": "rnn"}, "map='rnn' is not known; use one of: rf, drf, raf, .*one of: mean, states, pooled"),
            ({"depth": 2}, "depth=2 has no meaning"),
            ({"map": "mean", "depth": 2}, "depth=2 has no meaning for map='mean'"),
            ({"pairs": 1}, "pairs must be a whole number of at least 2"),
            ({"test_pairs": 0}, "test_pairs must be"),
            ({"position": "end"}, "position='end' is not known; use one of: random, start"),
            ({"encoder": "synthetic"}, "encoder='synthetic' has no tokens to count"),
        ):
            with pytest.raises(ws.InputError, match=words):
                PairsCell(**{"map": "raf", **SMALL, **bad})
        with pytest.raises(ws.InputError, match="d=400 is more than the 384"):
            PairsCell(map="raf", **{**SMALL, "d": 400}).measure()

    def test_what_has_no_meaning_is_left_out(self) -> None:
        assert PairsCell(map="pooled", **SMALL).settle() == PairsCell(map="pooled", **{**SMALL, "d": None}).settle()
        given = [PairsCell(map="raf", **SMALL, data="sample", position=where).settle() for where in ("start", "random")]
        assert given[0] == given[1]
        assert "generated" not in revision_of(PairsCell(map="raf", **SMALL))


def write_pairs(path: Path, column: str = "pair") -> Path:
    """Twenty pairs that differ early, one that differs late, one that is short, one without its other side."""
    long = "and then we all went home by train and slept until the next day began with rain"
    rows = [(f"Story number {k} was {word} {long}", label, k) for k in range(20) for word, label in SIDES]
    rows += [(f"This was seen {long} and it was {word}", label, "late") for word, label in SIDES]
    rows += [(f"It was {word}", label, "short") for word, label in SIDES]
    rows += [(f"Alone it was good {long}", 1, "alone")]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", column])
        writer.writerows(rows)
    return path


class TestGivenPairs:
    def test_which_pairs_are_taken(self, tmp_path: Path) -> None:
        path = write_pairs(tmp_path / "pairs.csv", "batch_id")
        found = given_pairs(str(path), 12, "minilm")
        assert len(found) == 20 and {moved for _, _, moved in found} == {1}
        assert all("bad" in negative and "good" in positive for negative, positive, _ in found)
        joined = ws.load_texts(path, balance=False, pair_column="batch_id")
        assert len(joined.pairs()) == 22 and len(joined) == 45
        assert ws.load_texts(path, balance=False).pairs() == []
        assert given_pairs("sample", 12, "minilm")

    def test_the_cell(self, tmp_path: Path) -> None:
        path = write_pairs(tmp_path / "pairs.csv")
        cell = PairsCell(map="raf", n=12, pairs=12, test_pairs=8, d=24, data=str(path)).settle()
        rows = cell.measure().rows
        assert [(row["words"], row["sides"]) for row in rows] == [("given", "both"), ("given", "one")]
        assert all(row["available"] == 20 and row["auc"] is None and row["accuracy"] == 1.0 for row in rows)
        assert str(path) in revision_of(cell)
        with pytest.raises(ws.InputError, match=r"has 20 pairs of at least n=12.*pairs=15 and test_pairs=6 take 21"):
            PairsCell(map="raf", n=12, pairs=15, test_pairs=6, d=24, data=str(path)).measure()

    def test_refusals(self, tmp_path: Path) -> None:
        path = write_pairs(tmp_path / "pairs.csv", "number")
        with pytest.raises(ws.InputError, match=r"no column 'pair' or 'batch_id'.*its other columns: 'number'"):
            given_pairs(str(path), 12, "minilm")
        with pytest.raises(ws.InputError, match="nowhere"):
            revision_of(PairsCell(map="raf", n=12, data="nowhere.csv"))

    @pytest.mark.slow
    def test_counterfactual_reviews(self) -> None:
        path = Path(os.environ.get("WORDSWAY_DATA", "/nowhere")) / "imdb_counterfactual_pairs.parquet"
        if not path.is_file():
            pytest.skip("WORDSWAY_DATA does not name a folder with the counterfactual pairs")
        assert len(given_pairs(str(path), 256, "minilm")) == 665


def test_the_picture() -> None:
    """Panels with and without similarity are drawn, a line for each map."""
    grid = {"measure": "pairs", "map": ["rf", "raf"], "n": [16, 32], "trials": 2}
    study = ws.Study("p", [{**grid, "id": "a", "title": "any"}, {**grid, "id": "b", "data": "sample"}])
    numbers = dict.fromkeys(PairsCell.numbers, 0.5)
    rows = []
    for panel, kinds in (("a", ("seen", "new")), ("b", ("given",))):
        for cell in next(p for p in study.panels if p.id == panel).cells():
            for words in kinds:
                for sides in ("both", "one"):
                    auc = {"auc": None} if panel == "b" else {}
                    own = {"study": "p", "panel": panel, "words": words, "sides": sides}
                    rows.append({**cell.recipe(), **numbers, **auc, **own})
    figure = draw_study(study, Table(tuple(rows)), lambda name: {}).figure
    titles = [axes.get_title(loc="left") for axes in figure.get_axes()]
    assert titles == [
        *("any: known words", "any: new words", "any: one side a pair", "any: similarity"),
        *("b: given pairs", "b: one side a pair"),
    ]
    assert {"rf", "raf", "chance"} <= set(figure.get_axes()[0].get_legend_handles_labels()[1])


def test_the_bundled_study() -> None:
    smoke = ws.find_study("pairs", "smoke")
    assert {cell.position for panel in smoke.panels for cell in panel.cells() if isinstance(cell, PairsCell)} == {
        "random",
        "start",
    }
    assert all(claim.where["data"] == "generated" for claim in smoke.claims)  # given pairs are another question
