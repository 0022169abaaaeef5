"""Tests of a kind of cell. A subclass in a test file brings a small cell, and values that it must refuse.

class TestErased(CellTests):
    cell = ErasedCell(map="raf", n=4, d=8)
    refused = {"keep": 2.0}
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from wordsway.report.page import html_of
from wordsway.report.runs import of_run
from wordsway.studies.cells.base import Cell, Outcome, Shelf
from wordsway.studies.cells.kinds import kind_of, name_of
from wordsway.studies.cells.recipes import cell_of, key_of, recipe_of, revision_of
from wordsway.studies.loaded_run import Run
from wordsway.studies.run.runner import run
from wordsway.studies.study import Study
from wordsway.studies.toml_files import load_study
from wordsway.support.errors import InputError
from wordsway.support.own_code import VARIABLE, allow_maps


class CellTests:
    """Tests that every kind of cell passes. `cell` is a small one, measured a few times; `refused` are values that its
    fields must not have, each with an error that begins with the field's name."""

    cell: ClassVar[Cell]
    refused: ClassVar[Mapping[str, Any]]

    @pytest.fixture(autouse=True)
    def _allowed(self) -> Iterator[None]:
        """Allow a kind of an own module, here and in worker processes."""
        before, module = os.environ.get(VARIABLE), type(self.cell).__module__
        if not module.startswith("wordsway."):
            allow_maps(module)
        yield
        os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})

    def study(self) -> Study:
        """Make a study of the one cell."""
        return Study("kit", {"measure": name_of(self.cell), **self._values()})

    def _values(self) -> dict[str, Any]:
        """Write the cell's fields as a study has them, without those that have their default."""
        defaults = {f.name: f.default for f in fields(self.cell)}
        return {k: v for k, v in self.cell.recipe().items() if k != "trial" and getattr(self.cell, k) != defaults[k]}

    def test_its_recipe_survives_json(self) -> None:
        cell = self.cell.settle()
        assert kind_of(name_of(self.cell)) is type(cell)
        recipe, revision = recipe_of(cell), revision_of(cell)
        again = cell_of(json.loads(json.dumps(recipe)))
        assert again == cell and again.settle() == cell and hash(again) == hash(cell)
        assert key_of(recipe_of(again), revision_of(again)) == key_of(recipe, revision)
        other = replace(cell, trial=cell.trial + 1)
        assert key_of(recipe_of(other), revision) != key_of(recipe, revision)

    def test_refusals_name_the_field(self, tmp_path: Path) -> None:
        assert self.refused, "name at least one value that the kind must refuse"
        for name, value in self.refused.items():
            with pytest.raises(InputError, match=rf"^{name}\b"):
                replace(self.cell, **{name: value})
            values = {name: value, "measure": name_of(self.cell)}
            for field, own in self._values().items():  # a file may not point elsewhere, and nothing is loaded here
                values.setdefault(field, "minilm" if field in self.cell.paths and os.sep in str(own) else own)
            file = tmp_path / "refused.toml"
            file.write_text("\n".join(["[[panel]]", *(f"{k} = {json.dumps(v)}" for k, v in values.items())]))
            with pytest.raises(InputError, match=rf"refused\.toml, line 2: {name}\b"):
                load_study(file)

    def test_its_columns_are_there(self) -> None:
        rows = outcome_of(self.cell).rows
        kind, own = type(self.cell), {f.name for f in fields(self.cell)}
        assert rows and kind.first in kind.numbers and set(kind.within) <= {*kind.numbers, *kind.names}
        assert not own & {*kind.numbers, *kind.names}, "a column has the name of a field"
        for row in rows:
            assert set(row) <= {*kind.numbers, *kind.names}
            assert all(row.get(name) is None or isinstance(row[name], int | float) for name in kind.numbers)
        assert any(row.get(kind.first) is not None for row in rows)
        assert len({tuple(row.get(name) for name in kind.within) for row in rows}) == len(rows)
        assert json.loads(json.dumps(rows, allow_nan=False)) == rows

    def test_equal_seeds_give_equal_results(self) -> None:
        again = replace(self.cell).settle().measure_with(Shelf())
        assert untimed(again) == untimed(outcome_of(self.cell))

    def test_it_says_what_it_needs(self) -> None:
        cell = self.cell.settle()
        assert cell.memory() > 0 and cell.seconds() > 0 and cell.label

    def test_a_worker_process_gives_the_same_and_it_is_drawn(self, tmp_path: Path) -> None:
        """The whole way: a process measures it, the store keeps it, the figure and the report show it."""
        study = self.study()
        table = run(study, tmp_path, "processes", workers=1)
        assert not table.failed, table.failed
        assert not table.missing
        expected = untimed(outcome_of(self.cell))
        assert [{k: row.get(k) for k in each} for row, each in zip(table.rows, expected, strict=True)] == expected
        read = Run.read(tmp_path)
        figure = read.figure(study).figure
        figure.canvas.draw()
        assert figure.get_axes() and any(axes.has_data() or axes.texts for axes in figure.get_axes())
        page = html_of(of_run(read))
        filled = {column for row in expected for column, value in row.items() if value is not None}
        assert "<svg" in page and all(column in page for column in filled)


@lru_cache(maxsize=32)
def outcome_of(cell: Cell) -> Outcome:
    """Measure a cell once for several tests."""
    return cell.settle().measure()


def untimed(outcome: Outcome) -> list[dict[str, Any]]:
    """Take times, which differ from run to run, out of rows."""
    return [{k: v for k, v in row.items() if not k.endswith("_seconds")} for row in outcome.rows]
