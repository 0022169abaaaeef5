"""Kinds of cells: each of the registry passes the kit's tests, and a user's own is one file."""

import importlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wordsway as ws
from docs_blocks import all_blocks
from wordsway.cli.main import app
from wordsway.studies.cells.base import Shelf
from wordsway.studies.cells.flip_cell import FlipCell
from wordsway.studies.cells.kinds import kind_of, name_of
from wordsway.studies.cells.recipes import RESULT_VERSION, cell_of, recipe_of, revision_of
from wordsway.studies.run.worker import execute
from wordsway.support.names import CELLS
from wordsway.support.own_code import VARIABLE
from wordsway.testing.cell_tests import CellTests

TEXT = "One word in a long text counts."
# Of every kind a small cell, and values that it must refuse.
EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sensitivity": ({"map": "raf", "n": 4, "d": 8, "budget": "quick"}, {"n": 0, "radius": -1.0, "budget": "long"}),
    "flips": ({"map": "raf", "n": 3, "train_size": 4, "d": 8}, {"train_size": 1, "trainings": ("sleep",)}),
    "layers": ({"text": TEXT, "token": 2, "noise_draws": 3}, {"token": -1, "noise_draws": 1}),
    "attention": ({"text": TEXT, "against": "One word in a short text counts."}, {"budget": "long"}),
    "prompts": ({"before": "Say good.", "after": "Say bad.", "answer_tokens": 3}, {"answer_tokens": 0}),
    "states": ({"n": 8, "data": "sample", "noise_draws": 3}, {"n": 3, "kind": "verb", "radius": 0.0}),
    "training": (
        {"steps": 2, "eval_every": 2, "d": 16, "layers": 1, "heads": 2, "probes": 1, "train_pairs": 4,
         "train_reviews": 4},
        {"regime": "loud", "steps": 0},
    ),
    "pairs": ({"map": "mean", "n": 16, "pairs": 4, "test_pairs": 4}, {"pairs": 1, "position": "end"}),
    "answers": ({"text": TEXT, "map": "raf", "budget": "quick"}, {"radius": -1.0, "budget": "long", "text": " "}),
    "random_change": ({"map": "rf", "n": 4, "d": 8, "draws": 5}, {"draws": 1, "n": 0}),
}  # fmt: skip
# A kind that is about a map and a text needs no example of its own.
EXAMPLES |= {
    name: ({"map": "raf", "n": 4, "d": 8}, {"n": 0})
    for name in CELLS
    if name not in EXAMPLES and issubclass(kind_of(name), ws.TextCell)
}
SLOW = ("flips", "layers", "attention", "prompts", "states", "training", "pairs")  # these load models or search long


def test_every_kind_has_an_example() -> None:
    assert set(EXAMPLES) == set(CELLS), "a new kind brings an example, and is tested by it"


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in EXAMPLES], scope="class"
)
def example(request: pytest.FixtureRequest) -> Iterator[None]:
    fields, refused = EXAMPLES[request.param]
    if request.param == "prompts":
        fields = {**fields, "model": str(request.getfixturevalue("smollm2"))}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    case: Any = request.cls
    case.cell, case.refused = kind_of(request.param)(**values), refused
    yield


@pytest.mark.usefixtures("example")
class TestBuiltIn(CellTests):
    """The kit, for every kind of the registry."""


def test_kinds_by_name() -> None:
    for name in CELLS:
        assert kind_of(name).__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
    assert name_of(FlipCell(map="raf", n=2, train_size=2)) == "flips"
    with pytest.raises(
        ws.InputError, match=r"measure='mood' is not known; use one of: sensitivity, .*MODULE:NAME of your own"
    ):
        kind_of("mood")


def test_a_shelf_keeps_one_of_each() -> None:
    shelf = Shelf()
    assert (
        shelf.keep(list) is shelf.keep(list) and shelf.keep(dict) == {} and Shelf().keep(list) is not shelf.keep(list)
    )


@pytest.fixture
def erasing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files of docs/extending.md, in which nothing is allowed yet."""
    for block in all_blocks():
        if block.page.endswith("extending.md") and block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(VARIABLE, "")
    sys.modules.pop("erasing", None)  # of another folder
    yield tmp_path
    sys.modules.pop("erasing", None)


def wordsway(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


@pytest.mark.slow
def test_a_kind_of_ones_own_works_everywhere(erasing: Path) -> None:
    """In worker processes, in all commands about runs, in the figure and the report; by leave only."""
    call = ("run", "erasing.toml", "--out", "out", "--workers", "1", "--json")
    refused = wordsway(*call)
    assert refused.exit_code == 2 and "erasing.toml, line 6: measure='erasing:ErasedCell' is none of" in refused.stderr
    assert "--own erasing on the command line" in refused.stderr and "erasing" not in sys.modules
    done = wordsway(*call, "--own", "erasing")
    assert done.exit_code == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == 18 and all(0 < row["change"] < 2 and row["keep"] == 0 for row in rows)
    assert all("erasing:ErasedCell@" in row["revision"] for row in rows)
    assert json.loads(done.stdout)["claims"][0]["measured"] == pytest.approx(-0.5, abs=0.1)
    assert (erasing / "out" / "erasing.png").stat().st_size > 10_000
    page = (erasing / "out" / "report.html").read_text(encoding="utf-8")
    assert "exponents in n" in page and "relative change when a token is erased" in page
    for command in (["status"], ["resume", "--engine", "inline"], ["export"], ["report"], ["compare", "out"]):
        name, *rest = command
        again = wordsway(name, "out", *rest, "--own", "erasing")
        assert again.exit_code == 0, (command, again.stderr)
    # Other code, other results: they are measured again.
    source = erasing / "erasing.py"
    source.write_text(source.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    state = json.loads(wordsway("status", "out", "--json", "--own", "erasing").stdout)
    assert state["studies"]["erasing"] == {"cells": 18, "done": 0, "failed": 0, "left": 18}


def test_without_leave_a_run_of_ones_own_says_what_to_do(erasing: Path) -> None:
    ws.allow_maps("erasing")
    grid = {"measure": "erasing:ErasedCell", "map": "raf", "n": [3, 4], "d": 8}
    assert len(ws.run(ws.Study("mine", grid), erasing / "out", "inline")) == 2
    sys.modules.pop("erasing")
    os.environ[VARIABLE] = ""
    for command in ("status", "export", "report"):
        refused = wordsway(command, "out")
        assert refused.exit_code == 2 and "not allowed yet: --own erasing" in refused.stderr, command
    (erasing / "broken.py").write_text("1 / 0\n")
    ws.allow_maps("erasing", "broken")
    for kind, message in (
        ("broken:Cell", "cannot import broken: division by zero"),
        ("erasing:Nothing", "erasing has no 'Nothing', which measure='erasing:Nothing' asks for"),
        ("erasing:dataclass", "is no subclass of wordsway.Cell"),
    ):
        with pytest.raises(ws.InputError, match=message):
            ws.Study("x", {"measure": kind, "map": "raf", "n": 3})


@pytest.mark.slow
def test_the_kit_in_the_hands_of_a_user(erasing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test file of docs/extending.md passes, and fails for a kind that is not what it should be."""
    shutil.copy(erasing / "erasing.py", erasing / "kept.py")
    importlib.invalidate_caches()
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "-n", "0", str(erasing / "test_erasing.py")]
    assert run_pytest(quiet) == 0
    good = (erasing / "kept.py").read_text(encoding="utf-8")
    for old, new in (
        ('numbers = ("change",)', 'numbers = ("changes",)'),  # a column that is not there
        ("*= self.keep", "*= __import__('random').random()"),  # another result each time
        ('f"keep must', 'f"a share must'),  # a refusal that does not name the field
    ):
        assert old in good
        (erasing / "erasing.py").write_text(good.replace(old, new), encoding="utf-8")
        assert run_pytest(quiet) == 1, new


def run_pytest(arguments: list[str]) -> int:
    """Run pytest in a process of its own; returns its exit code."""
    import subprocess

    done = subprocess.run([sys.executable, "-m", "pytest", *arguments], capture_output=True, text=True, timeout=300)
    return done.returncode


def test_a_column_that_is_not_listed_is_an_error(erasing: Path) -> None:
    """A table would not show it, and the run would end as if all were well."""
    code = (erasing / "erasing.py").read_text(encoding="utf-8").replace('"change": float', '"chnge": float')
    (erasing / "erasing.py").write_text(code, encoding="utf-8")
    ws.allow_maps("erasing")
    kind: Any = kind_of("erasing:ErasedCell")
    recipe = recipe_of(kind(map="raf", n=3, d=8).settle())
    report = execute(recipe, revision_of(cell_of(recipe)), RESULT_VERSION)
    assert report.error is not None and "column 'chnge' that it does not list" in report.error
