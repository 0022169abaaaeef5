"""Studies as data: grids, files with their errors, keys, claims, tables and comparisons."""

import csv
import io
import json
import math
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app
from wordsway.studies.adapt import adapted, narrowed
from wordsway.studies.cells.base import Cell
from wordsway.studies.cells.flip_cell import FlipCell
from wordsway.studies.cells.kinds import kind_of
from wordsway.studies.cells.recipes import RESULT_VERSION, cell_of, key_of, recipe_of
from wordsway.studies.cells.sensitivity_cell import SensitivityCell
from wordsway.studies.claims import Claim, judge
from wordsway.studies.compare_runs import compare_tables
from wordsway.studies.run.tables import Table
from wordsway.studies.toml_files import find_study, load_study
from wordsway.support.names import CELLS, SCALES, paper_figures
from wordsway.support.names import studies as built_in

GRID = {"map": ["rf", "raf"], "n": [4, 8], "d": 16, "trials": 2}


def values(study: ws.Study, panel: str, name: str) -> Any:
    return next(p for p in study.panels if p.id == panel).values[name]


def test_the_published_settings() -> None:
    """PAPER: the grids of Figures 2 to 5."""
    assert paper_figures() == ["fig1", "fig2", "fig3", "fig4", "fig5"]
    fig2, fig3, fig4, fig5 = (find_study(name) for name in ("fig2", "fig3", "fig4", "fig5"))
    assert values(fig2, "left", "n") == list(range(90, 151, 10)) and values(fig2, "left", "d") == [192, 384, 768]
    assert values(fig2, "right", "depth") == [2, 4, 8] and values(fig2, "right", "n") == [50, 60, 70, 80]
    for panel in ("a", "b"):
        assert values(fig3, panel, "n") == [10, 20, 50, 100, 150, 200, 250]
        assert values(fig3, panel, "d") == [192, 384, 768]
    assert {(p.values["map"], p.values["n"]) for p in fig4.panels} == {
        ("rf", 40),
        ("raf", 40),
        ("raf", 120),
        ("relu-raf", 120),
    }
    assert all(p.values["train_size"] == [100, 700, 1300] for p in fig4.panels)
    assert all(p.values["penalties"] == [1.0, 0.1, 0.01] and p.values["train_size"] == 400 for p in fig5.panels)
    published = [p for study in (fig2, fig3, fig4, fig5) for p in study.panels if "encoder" in p.values]
    assert all(p.trials == 10 and p.values["token"] == 0 and p.values["padding"] == "published" for p in published)
    assert sum(1 for p in fig2.panels for _ in p.cells()) == 3 * 7 * 10 + 3 * 4 * 10


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", built_in())
def test_every_bundled_study_is_whole(name: str, scale: str) -> None:
    study = find_study(name, scale)
    panels = [list(panel.cells()) for panel in study.panels]
    cells = [cell for panel in panels for cell in panel]
    assert cells and all(len(set(panel)) == len(panel) for panel in panels)  # panels may share cells
    assert all(cell.memory() > 0 and cell.seconds() > 0 and cell.label for cell in cells)
    assert ws.Study.from_dict(json.loads(json.dumps(study.to_dict()))) == study
    for panel in study.panels:  # every claim can be read off a table
        for claim in study.claims:
            if claim.panel == panel.id and panel.measure == "sensitivity":
                known = {f.name for f in fields(SensitivityCell)} | {"lower", "predicted"}
                assert {claim.of, *claim.each, *claim.where, *((claim.by,) if claim.by else ())} <= known


def test_a_panel_by_its_name() -> None:
    assert [p.id for p in find_study("fig3a").panels] == ["a"]
    assert [p.id for p in find_study("fig2-left").panels] == ["left"]
    with pytest.raises(ws.InputError, match="no panel 'z'"):
        find_study("fig3z")
    with pytest.raises(ws.InputError, match="no study 'table9'"):
        find_study("table9")


def test_a_grid() -> None:
    study = ws.Study("mine", {"map": ["rf", "drf", "raf"], "n": [4, 8], "depth": [2, 3], "d": 8, "trials": 2})
    cells = list(study.panels[0].cells())
    assert [c.recipe()["trial"] for c in cells] == [0] * 8 + [1] * 8  # rf 2, drf 4, raf 2 for each trial
    assert {c.recipe()["depth"] for c in cells if c.recipe()["map"] != "drf"} == {None}
    assert all(c.recipe()["data"] is None and c.recipe()["at_least"] is None for c in cells)  # Gaussian rows
    real = ws.Study("real", {"map": "raf", "n": [4, 8], "encoder": "minilm", "data": "sample"})
    assert {c.recipe()["at_least"] for c in real.panels[0].cells()} == {8}  # one text for all n


STUDY = """name = "mine"
title = "A study"

[[panel]]
map = ["rf", "raf"]
n = [4, 8]
d = 16
trials = 2

[panel.smoke]
n = [4]

[[claim]]
says = "falls"
source = "Theorem 1"
panel = "1"
statistic = "exponent"
at_most = -0.5
"""


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(STUDY)
    study = load_study(file)
    assert study.panels == ws.Study("mine", GRID).panels and len(study.claims) == 1
    assert [c.recipe()["n"] for c in load_study(file, "smoke").panels[0].cells()] == [4] * 4


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("n = [4, 8]", "ns = [4, 8]", 6, "unknown key 'ns'; did you mean 'n'?"),
        ("n = [4, 8]", 'n = "many"', 6, "n must be a whole number, or a list of them, got 'many'"),
        ("n = [4, 8]", "n = [4, 8.5]", 6, "got 8.5"),
        ("n = [4, 8]", "n = [4, true]", 6, "got True"),
        ("n = [4, 8]", "n = []", 6, "n is empty"),
        ("n = [4, 8]", "n = [4, 4]", 6, "twice"),
        ("n = [4, 8]", "n = [4, 0]", 6, "n must be a whole number of at least 1, got 0"),
        ("n = [4, 8]", "", 4, "n is missing"),
        ("n = [4]", "n = [4.5]", 11, "got 4.5"),
        ('map = ["rf", "raf"]', 'map = "rnn"', 5, "rnn"),
        ("d = 16", 'd = 16\ntoken = "verb"', 8, "token='verb' is not known"),
        ("d = 16", "d = 16\ntoken = 7", 8, "token 7 is out of range"),
        ("d = 16", "d = 16\ndepth = 3", 8, "depth is for drf, transformer, which is not among the maps"),
        ("n = [4, 8]", 'n = [4, 300]\nencoder = "minilm"\npadding = "published"', 6, "n=300 is more than the 256"),
        ("d = 16", "d = 16\nradius = -1.0", 8, "radius must be a positive number"),
        ("d = 16", 'd = 16\nmeasure = "mood"', 8, "measure='mood' is not known"),
        ("d = 16", 'd = 16\nencoder = "minilm"\ndata = "../secrets.csv"', 9, "outside the study's folder"),
        ("d = 16", 'd = 16\nencoder = "/etc"', 8, "outside the study's folder"),
        ("d = 16", 'd = 16\nencoder = "minilm"\ndata = "none.csv"', 9, "no file or folder 'none.csv'"),
        ("trials = 2", "trials = 0", 8, "trials must be a whole number of at least 1"),
        ('title = "A study"', "title = 3", 2, "title must be a string"),
        ('title = "A study"', "colour = 3", 2, "unknown key 'colour'"),
        ('title = "A study"', 'layout = [["z"]]', 2, "names 'z', which is no panel"),
        ('name = "mine"', 'name = "../up"', 1, "a study's name"),
        ('statistic = "exponent"', 'statistic = "mood"', 17, "statistic='mood' is not known"),
        ('statistic = "exponent"', 'statistics = "mood"', 17, "unknown key 'statistics'; did you mean 'statistic'?"),
        ("at_most = -0.5", "predicted = -0.5", 13, "can never fail"),
        ("at_most = -0.5", 'at_most = "low"', 18, "at_most of a claim must be a number"),
        ('panel = "1"', 'panel = "2"', 16, "panel='2' is no panel"),
        ('panel = "1"', "panel = 1", 16, "panel of a claim must be a string, in quotes, got 1"),
        ("at_most = -0.5", "at_most = -0.5\nat_least = 1", 19, "nothing can hold"),
        ("at_most = -0.5", 'at_most = -0.5\nof = "loower"', 19, "did you mean 'lower'?"),
        ("at_most = -0.5", 'at_most = -0.5\nof = "checked"', 19, "no column of numbers"),
        ("at_most = -0.5", 'at_most = -0.5\neach = ["radiuss"]', 19, "did you mean 'radius'?"),
        ("at_most = -0.5", 'at_most = -0.5\nwhere = { mapp = "raf" }', 19, "did you mean 'map'?"),
        ("at_most = -0.5", "at_most = -0.5\nwhere = { n = { abov = 1 } }", 19, "above = number"),
        ("at_most = -0.5", 'at_most = -0.5\nwhere = { n = { above = "x" } }', 19, "above = number"),
        ("[panel.smoke]", "[panel.tiny]", 10, "'tiny' is no scale; those are: smoke, laptop, paper"),
        ("n = [4]", "m = [4]", 11, "unknown key 'm'"),  # of another scale than the one that is asked for
        ("trials = 2", "trials = 10000000", 8, "000,000 cells are too many"),
        ("d = 16", "d = 16]", 7, "column"),
    ],
)
def test_bad_files_are_errors_with_a_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    file = tmp_path / "mine.toml"
    assert old in STUDY
    file.write_text(STUDY.replace(old, new, 1))
    scale = "smoke" if "4.5" in new else "paper"
    with pytest.raises(ws.InputError) as caught:
        load_study(file, scale)
    assert message in str(caught.value)
    assert f"line {line}" in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "mine.toml"
    file.write_text(example, encoding="utf-8")
    sizes = {scale: sum(1 for _ in load_study(file, scale).panels[0].cells()) for scale in SCALES}
    assert sizes == {"smoke": 2 * 2 * 5 * 2, "laptop": 3 * 2 * 5 * 5, "paper": 3 * 2 * 5 * 5}
    for kind in map(kind_of, CELLS):  # the table of fields is whole
        for name in (f.name for f in fields(kind) if f.name not in ("trial", "seed")):
            assert re.search(rf"\b{name}\b", page), name


def test_more_coordinates_than_there_are(tmp_path: Path) -> None:
    file = tmp_path / "wide.toml"
    file.write_text(STUDY.replace("d = 16", 'd = [16, 400]\nencoder = "minilm"\ndata = "sample"'))
    done = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2 and "d=16, 400 is too wide; it could be d=16, 384, as minilm has 384" in done.stderr


@pytest.mark.parametrize("cell", [SensitivityCell(map="raf", n=3, d=4), FlipCell(map="raf", n=3, train_size=4, d=4)])
def test_a_kind_says_which_columns_its_rows_have(cell: Cell) -> None:
    for row in cell.settle().measure().rows:
        assert set(row) == {*cell.numbers, *cell.names}
        assert all(row[name] is None or isinstance(row[name], int | float) for name in cell.numbers)


def test_no_panel_no_file_no_scale(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(ws.InputError, match="at least one"):
        load_study(tmp_path / "empty.toml")
    with pytest.raises(ws.InputError, match="no study file"):
        load_study(tmp_path / "nothing.toml")
    with pytest.raises(ws.InputError, match="scale='huge'"):
        find_study("fig2", "huge")
    done = CliRunner().invoke(app, ["run", str(tmp_path / "empty.toml"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2 and not (tmp_path / "out").exists()


FIELDS = st.fixed_dictionaries(
    {
        "map": st.sampled_from(["rf", "raf", "relu-raf"]),
        "n": st.integers(3, 50),
        "d": st.integers(1, 50),
        "radius": st.floats(0.1, 3.0),
        "token": st.integers(0, 2),
        "certificate": st.booleans(),
        "trial": st.integers(0, 5),
        "seed": st.integers(0, 2**40),
    }
)
OTHERS: dict[str, Any] = {
    "measure": "flips", "map": "other", "n": 51, "d": 51, "depth": 9, "temperature": 0.25, "radius": 4.0,
    "encoder": "mpnet", "data": "sample", "layer": 3, "padding": "published", "at_least": 77, "token": "word",
    "center": True, "correlation": 0.5, "structure": "ar1", "tokens_at_once": 2, "choose": "random", "ball": "shared",
    "certificate": "neither", "budget": "quick", "keep_delta": True, "trial": 6, "seed": 2**41,
}  # fmt: skip


@given(FIELDS, st.randoms())
def test_a_key_is_the_whole_recipe_and_nothing_else(chosen: dict[str, Any], random: Any) -> None:
    recipe = recipe_of(SensitivityCell(**chosen))
    key = key_of(recipe, "minilm@1")
    shuffled = list(recipe.items())
    random.shuffle(shuffled)
    assert key_of(dict(shuffled), "minilm@1") == key
    assert key_of(recipe_of(cell_of(json.loads(json.dumps(recipe)))), "minilm@1") == key
    assert set(OTHERS) == set(recipe)
    changed = {key_of({**recipe, name: other}, "minilm@1") for name, other in OTHERS.items()}
    assert len(changed) == len(recipe) and key not in changed
    assert key_of(recipe, "minilm@2") != key != key_of(recipe, "minilm@1", RESULT_VERSION + 1)


def test_other_encoder_data_and_trials() -> None:
    study = adapted(find_study("fig3"), encoder="synthetic", trials=3, seed=5)
    assert [p.skip is None for p in study.panels] == [True, True, False, False]
    assert {(c.recipe()["encoder"], c.recipe()["seed"]) for c in study.panels[0].cells()} == {("synthetic", 5)}
    assert [p.trials for p in study.panels] == [3, 3, 1, 1]
    follows = adapted(find_study("fig3"), encoder="minilm", padding="none")
    assert [p.values.get("encoder", p.values.get("model")) for p in follows.panels] == ["minilm"] * 4
    assert {c.recipe()["at_least"] for c in follows.panels[0].cells()} == {250}
    smaller, notes = narrowed(follows)
    assert smaller.panels[0].values["d"] == [192, 384] and "384 coordinates" in notes[0]
    with pytest.raises(ws.InputError, match="padding='some' is not known"):
        adapted(find_study("fig3"), encoder="minilm", padding="some")
    with pytest.raises(ws.InputError, match="about real texts"):
        adapted(find_study("fig3"), encoder="synthetic", data="sample")
    chat = adapted(find_study("fig1", "laptop"), chat_model="x")
    assert chat.panels[1].skip is None and chat.panels[1].values["model"] == "x"


def rows_for(**columns: Any) -> list[dict[str, Any]]:
    found = []
    for n in (10, 20, 40, 80):
        for trial in range(5):
            row = {"panel": "a", "n": n, "d": 8, "trial": trial, "map": "rf"}
            found.append(row | {k: f(n, trial) if callable(f) else f for k, f in columns.items()})
    return found


def verdict(rows: list[dict[str, Any]], **claim: Any) -> Any:
    (found,) = judge("s", Claim(**{"says": "x", "source": "y", "panel": "a", **claim}), rows)
    return found


def test_verdicts() -> None:
    rows = rows_for(lower=lambda n, trial: n ** -(0.6 + 0.01 * (trial - 2)))
    found = verdict(rows, statistic="exponent", predicted=-0.5, at_most=-0.5)
    assert found.verdict == "holds" and found.measured == pytest.approx(-0.6, abs=1e-9) and found.rows == 20
    assert found.high - found.low == pytest.approx(2 * 2.776 * 0.01 * math.sqrt(2.5 / 5), rel=1e-3)  # t over 5 slopes
    assert verdict(rows, statistic="exponent", at_least=-0.5).verdict == "does not hold"
    assert verdict(rows, statistic="exponent", at_least=-0.6).verdict == "not tested"
    alone = verdict([row for row in rows if row["trial"] == 2], statistic="exponent", at_most=-0.5)
    assert alone.measured == pytest.approx(-0.6) and alone.low == pytest.approx(-0.6)
    smallest = verdict(rows, statistic="smallest", at_least=0.05)
    assert smallest.measured == pytest.approx(sum(80 ** -(0.6 + 0.01 * k) for k in range(-2, 3)) / 5)
    assert verdict(rows, statistic="mean", where={"n": 10}, at_most=1).rows == 5
    assert verdict(rows, statistic="mean", where={"n": {"above": 10, "below": 80}}, at_most=1).rows == 10
    nothing = verdict(rows, statistic="mean", where={"n": 7}, at_most=1)
    assert nothing.verdict == "not tested" and nothing.note == "no rows" and nothing.measured is None
    one = verdict(rows[:1], statistic="mean", at_most=1)
    assert one.verdict == "holds" and one.low is None and "one trial" in one.note


def test_rows_of_a_trial_are_not_independent() -> None:
    """Copies of the same trials in more rows make no interval narrower."""
    few = [row for row in rows_for(lower=lambda n, trial: 1 + trial, err=lambda n, trial: trial / 4) if row["n"] == 10]
    many = rows_for(lower=lambda n, trial: 1 + trial, err=lambda n, trial: trial / 4)
    for claim in ({"statistic": "mean"}, {"statistic": "share", "of": "err"}):
        first, second = verdict(few, **claim, at_least=0), verdict(many, **claim, at_least=0)
        assert (first.measured, first.low, first.high) == (second.measured, second.low, second.high)


def test_shares_and_pairs() -> None:
    rows = rows_for(err=lambda n, trial: trial / 4, bound=1.0)
    share = verdict(rows, statistic="share", of="err", by="bound", at_least=0.1)
    exact = binomtest(2, 5).proportion_ci(0.95, method="exact")
    assert share.measured == pytest.approx(0.4)
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))  # two of five trials
    none = verdict(rows, statistic="share", of="err", below=-1.0, at_most=0.6)
    assert (none.measured, none.low) == (0, 0) and none.high == pytest.approx(1 - 0.025 ** (1 / 5))
    first = rows_for(lower=lambda n, trial: n * (1 + trial))
    second = rows_for(lower=lambda n, trial: 3 * n * (1 + trial), map="raf", panel="b")
    ratio = verdict([*first, *second], statistic="ratio", against={"panel": "b", "map": "raf"}, at_most=1)
    assert ratio.measured == pytest.approx(1 / 3) and ratio.high == pytest.approx(1 / 3)
    gap = verdict([*first, *second], statistic="difference", against={"panel": "b"}, pair=("n", "trial"), at_most=0)
    assert gap.measured == pytest.approx(-2 * 3 * (10 + 20 + 40 + 80) / 4)
    with pytest.raises(ws.InputError, match="needs against"):
        Claim("x", "y", "a", "ratio", at_most=1)
    groups = list(judge("s", Claim("x", "y", "a", "mean", each=("n",), at_least=0), first))
    assert [g.group for g in groups] == ["n=10", "n=20", "n=40", "n=80"]


def table(shift: float = 0.0, trials: int = 4, encoder: str = "minilm") -> Table:
    rows = [
        {"study": "s", "panel": "a", "measure": "sensitivity", "map": "raf", "n": n, "encoder": encoder, "token": 0 if
         n == 10 else "word", "trial": t, "seed": 0, "lower": n + 0.1 * t + shift, "upper": None, "seconds": 0.1 * t}
        for n in (10, 20) for t in range(trials)
    ]  # fmt: skip
    return Table(tuple(rows))


def test_tables_as_files() -> None:
    import pyarrow.parquet

    found = table()
    read = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(read) == 8 and float(read[3]["lower"]) == found.rows[3]["lower"] and read[0]["upper"] == ""
    assert json.loads(found.to_json()) == [dict(row) for row in found.rows]
    parquet = pyarrow.parquet.read_table(io.BytesIO(found.export("parquet"))).to_pylist()
    assert [row["lower"] for row in parquet] == [row["lower"] for row in found.rows]
    assert {row["token"] for row in parquet} == {"0", "word"} and parquet[0]["upper"] is None
    with pytest.raises(ws.InputError, match="format='xls'"):
        found.export("xls")


def test_comparisons() -> None:
    same = compare_tables(table(), replace(table()))
    assert same.equal and all(each.difference == each.low == each.high == 0 for each in same.cells)
    moved = compare_tables(table(), table(0.5, encoder="mpnet"))
    assert moved.settings == {"encoder": ("minilm", "mpnet")} and not moved.equal
    assert [each.cell["n"] for each in moved.cells] == [10, 20]
    assert all(each.paired and each.low == pytest.approx(0.5) == each.high for each in moved.cells)
    fewer = compare_tables(table(), table(0.5, trials=3)).cells[0]
    assert not fewer.paired and fewer.trials == (4, 3) and fewer.low is not None and fewer.low < fewer.difference
    assert fewer.difference == pytest.approx(0.45) and not math.isnan(fewer.low)
    flips = [
        {"study": "s", "panel": "a", "measure": "flips", "map": "raf", "n": 4, "training": "retrain", "penalty": None,
         "objective": "align", "trial": t, "seed": 0, "err": 1.0 + t, "before": 0.1 * t, "after": 0.2 * t}
        for t in range(3)
    ]  # fmt: skip
    (flip,) = compare_tables(Table(tuple(flips)), Table(tuple({**r, "before": 9.0} for r in flips))).cells
    assert flip.trials == (3, 3) and flip.difference == 0  # what came out is not part of what a cell is
    with pytest.raises(ws.InputError, match="no cell in common"):
        compare_tables(table(), Table(tuple({**row, "n": row["n"] + 1} for row in table().rows)))
    with pytest.raises(ws.InputError, match="no results"):
        compare_tables(table(), Table(()))
