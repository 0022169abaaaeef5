"""A run is read once: each panel validated, its table made and its figure drawn one time, whoever asks for them."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app
from wordsway.report.runs import of_run
from wordsway.studies import loaded_run
from wordsway.studies.cells.sensitivity_cell import SensitivityCell
from wordsway.studies.loaded_run import Run
from wordsway.studies.panels.scene import Picture, Scene
from wordsway.studies.reproduce import write_files
from wordsway.studies.study import Panel, Study


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often panels are validated and drawn, and tables made."""
    found: Counter[str] = Counter()
    checked, made, picture = Panel.checked, loaded_run.table_of, SensitivityCell.picture
    assert isinstance(picture, Picture)

    def check(panel: Panel) -> Panel:
        found[f"{panel.id} validated"] += 1
        return checked(panel)

    def read(study: Study, results: Any) -> ws.Table:
        found[f"{study.name} read"] += 1
        return made(study, results)

    def draw(scene: Scene) -> None:
        found[f"{scene.title} drawn"] += 1
        picture.draw(scene)

    monkeypatch.setattr(Panel, "checked", check)
    monkeypatch.setattr(loaded_run, "table_of", read)
    monkeypatch.setattr(SensitivityCell, "picture", replace(picture, draw=draw))
    return found


@pytest.mark.parametrize("options", [[], ["--seed", "3", "--encoder", "synthetic"]])
def test_reproduce_does_everything_once(counted: Counter[str], options: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    call = ["reproduce", "fig2", "--scale", "smoke", "--engine", "inline", "--out", str(out), *options]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    once = ("left validated", "right validated", "fig2 read", "RF drawn", "DRF drawn")
    assert counted == dict.fromkeys(once, 1)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg aria-hidden") == 2  # each panel alone, cut out of the figure
    counted.clear()
    assert CliRunner().invoke(app, ["report", str(out), "--out", str(tmp_path / "page.html")]).exit_code == 0
    assert counted == dict.fromkeys(once, 1)
    counted.clear()
    state = json.loads(CliRunner().invoke(app, ["status", str(out), "--json"]).stdout)
    assert state["studies"]["fig2"]["left"] == 0 and not any("drawn" in name for name in counted)
    assert set(counted.values()) == {1}


def test_a_run_has_all_its_studies_and_gives_some(tmp_path: Path) -> None:
    grid = {"map": "raf", "n": [3, 4, 5], "d": 8, "trials": 2, "certificate": False}
    claim = {"says": "x", "source": "y", "panel": "1", "statistic": "mean", "at_least": 0}
    studies = [ws.Study("a", grid, claims=[claim]), ws.Study("b", {**grid, "n": [3, 4]}, claims=[claim])]
    ws.run(studies, tmp_path, "inline")
    run = Run.read(tmp_path)
    assert [study.name for study in run.studies] == ["a", "b"] and [len(t) for t in run.tables.values()] == [6, 4]
    assert run.table().rows == ws.run(studies, tmp_path, "inline").rows and len(run.table(["b"])) == 4
    written = write_files(run, ["b"])
    names = {path.name for path in written.paths}
    assert {"b.png", "b.csv", "claims.csv"} <= names and "a.png" not in names
    assert [each.study for each in run.verdicts] == ["a", "b"] and [each.study for each in written.verdicts] == ["b"]
    titles = [part.title for part in of_run(run).parts if hasattr(part, "title")]
    assert "a 1: exponents in n" in titles and "b 1: exponents in n" not in titles  # three lengths, and two


def test_a_panel_that_the_layout_leaves_out_is_in_the_report(tmp_path: Path) -> None:
    panels = [{"id": name, "map": "raf", "n": 3, "d": 8, "certificate": False} for name in ("shown", "left-out")]
    ws.run(ws.Study("mine", panels, layout=[["shown"]]), tmp_path, "inline")
    assert ws.report_html(tmp_path).count("<svg aria-hidden") == 2
