"""A run as it was read: plan, table, verdicts and figures, each made once for everybody who shows them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from wordsway.studies.claims import Verdict, judge
from wordsway.studies.figures.draw import StudyFigure, draw_study
from wordsway.studies.run.store import Result, Store, load_arrays
from wordsway.studies.run.tables import Table, joined_tables, table_of
from wordsway.studies.study import Study


@dataclass(frozen=True)
class Run:
    """The studies of a run's folder with all that was measured of them. `command` is the one that was given last."""

    folder: Path
    studies: tuple[Study, ...]
    results: Mapping[str, Result]
    tables: Mapping[str, Table]  # by study
    command: str | None = None
    _figures: dict[str, StudyFigure] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def of(store: Store, studies: Sequence[Study] | None = None, skip_damaged: bool = False) -> "Run":
        """Read a store once; `studies` is its plan, where that is known already."""
        plan, results = tuple(store.plan() if studies is None else studies), store.results(skip_damaged)
        tables = {study.name: table_of(study, results) for study in plan}
        return Run(store.folder, plan, results, tables, store.fact("command"))

    @staticmethod
    def read(folder: str | os.PathLike[str], skip_damaged: bool = False) -> "Run":
        """Read a run's folder. Damaged rows are an error unless they are to be skipped."""
        with Store.read(folder) as store:
            return Run.of(store, skip_damaged=skip_damaged)

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Join the tables of some studies, or of all."""
        return joined_tables(
            [self.tables[study.name] for study in self.studies if names is None or study.name in names]
        )

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Judge the claims of all studies."""
        found: list[Verdict] = []
        for study in self.studies:
            rows = self.tables[study.name].rows
            skipped = {panel.id: panel.skip or "" for panel in study.panels}
            for claim in study.claims:
                found += judge(study.name, claim, rows, skipped.get(claim.panel, ""))
        return tuple(found)

    def figure(self, study: Study) -> StudyFigure:
        """Return the figure of a study, drawn when it is first asked for."""
        if study.name not in self._figures:
            self._figures[study.name] = draw_study(study, self.tables[study.name], self.arrays)
        return self._figures[study.name]

    def arrays(self, name: str) -> dict[str, Any]:
        """Read the arrays of a result, by the file name in its row."""
        return load_arrays(self.folder, name)
