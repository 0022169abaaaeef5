"""Random moves: the cell against the plain map, word sensitivity's own average, and the law of random features."""

import math
from pathlib import Path

import pytest
import torch

import wordsway as ws
from wordsway.search.regions import Sphere
from wordsway.studies.cells.random_change_cell import RandomChangeCell
from wordsway.studies.cells.sensitivity_cell import SensitivityCell
from wordsway.studies.loaded_run import Run
from wordsway.studies.toml_files import find_study


@pytest.mark.parametrize("name", ["raf", "relu-raf", "transformer"])
def test_it_is_the_mean_over_plain_evaluations(name: str) -> None:
    cell = RandomChangeCell(map=name, n=5, d=8, radius=0.5, token=3, draws=7, seed=2, trial=1)
    (row,) = cell.measure().rows
    drawn = cell.drawn()
    base, changes = drawn.phi(drawn.rows), []
    for delta in Sphere(0.5 * math.sqrt(8), 1, 8).sample(7, 2, "random", 3):
        assert float(delta.norm()) == pytest.approx(0.5 * math.sqrt(8), rel=1e-6)
        moved = drawn.rows.clone()
        moved[3] += delta[0]
        changes.append(float((drawn.phi(moved) - base).norm() / base.norm()))
    assert row["change"] == pytest.approx(sum(changes) / 7) and row["largest"] == pytest.approx(max(changes))
    assert row["sd"] == pytest.approx(float(torch.tensor(changes).std()), rel=1e-5) and row["predicted"] is None


@pytest.mark.parametrize("name", ["rf", "raf"])
def test_it_shares_text_weights_and_moves_with_word_sensitivity(name: str) -> None:
    grid = {"map": name, "n": 6, "d": 16, "trial": 2, "seed": 5}
    (searched,) = SensitivityCell(**grid, certificate=False, budget="quick").measure().rows
    (row,) = RandomChangeCell(**grid).measure().rows
    # A lazy map draws what it is asked for, so the search before it changes its random moves' answers a little.
    assert row["change"] == pytest.approx(searched["random_mean"], rel=0.1 if name == "rf" else 1e-4)
    assert row["largest"] < searched["lower"]


def test_random_features_follow_the_law() -> None:
    """A random move of one row in n: the arc-cosine law, which is n^(-1/2) up to 5% of n^(-1/2)."""
    for n in (8, 16, 32, 64):
        rows = [RandomChangeCell(map="rf", n=n, d=64, draws=20, trial=t).measure().rows[0] for t in range(12)]
        row = rows[0]
        assert sum(row["change"] for row in rows) / 12 == pytest.approx(row["predicted"], rel=0.03)
        assert row["predicted"] == pytest.approx(n**-0.5 * (1 - n**-0.5 / (3 * math.pi)), rel=3e-3)
    real = RandomChangeCell(map="rf", n=6, d=32, encoder="minilm", data="sample", token="word", center=True, at_least=9)
    (row,) = real.measure().rows
    assert row["change"] == pytest.approx(row["predicted"], rel=0.15)  # the rows' own norms, whatever they are


def test_what_is_refused() -> None:
    with pytest.raises(ws.InputError, match="draws must be a whole number of at least 2"):
        RandomChangeCell(map="rf", n=4, draws=1)
    with pytest.raises(ws.InputError, match="unknown key 'certificate'"):
        ws.Study("x", {"measure": "random_change", "map": "rf", "n": 4, "certificate": False})


def test_the_study(tmp_path: Path) -> None:
    """It runs, its figure has logarithmic axes with enough ticks, and the report lists its exponents."""
    study = find_study("random", "smoke")
    ws.run(study, tmp_path, "inline")
    run = Run.read(tmp_path)
    typical, worst = run.figure(study).figure.get_axes()
    assert (typical.get_xscale(), typical.get_yscale(), worst.get_yscale()) == ("log", "log", "linear")
    assert typical.get_ylabel() == "typical (random) relative change" and len(typical.get_yticks()) >= 3
    assert {"rf", "raf", "prediction"} <= set(typical.get_legend_handles_labels()[1])
    assert [each.panel for each in run.verdicts] == ["typical", "typical", "typical", "worst"]
    assert all(each.measured is not None for each in run.verdicts)
    page = ws.report_html(tmp_path)
    assert "random typical: exponents in n" in page and "a power of n is a straight line" in page
