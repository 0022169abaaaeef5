"""The table of a run: one row a measured number, with its recipe and where it came from."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from wordsway.studies.run.store import PROVENANCE, Result, Store
from wordsway.studies.study import Job, Study
from wordsway.support.errors import InputError
from wordsway.support.files import write_text
from wordsway.support.registry import load_home
from wordsway.support.result import Result as Saved
from wordsway.support.table_files import columns_of, csv_of, flat, parquet_of

FORMATS = ("csv", "parquet", "json")
_PICTURE = "wordsway.studies.figures.grid_figures:plot_rows"  # figures lie above tables
_TIMES = ("seconds", "peak_bytes", "started", "machine", "arrays", "versions")


@dataclass(frozen=True, repr=False)
class Table(Saved):
    """Rows as dicts, in the order of the plan. `failed` is the error of each cell that failed, `missing` how many have
    not been run."""

    format: ClassVar[str] = "wordsway.table/1"

    rows: tuple[dict[str, Any], ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, study: str, panel: str | None = None) -> list[dict[str, Any]]:
        """The rows of a study, or of one of its panels."""
        return [r for r in self.rows if r["study"] == study and panel in (None, r["panel"])]

    def summary(self) -> str:
        """Say how much was measured."""
        more = f", {len(self.failed)} failed" if self.failed else ""
        return f"{len(self.rows):,} rows, {len(self.columns)} columns; {self.missing:,} cells missing{more}"

    def records(self) -> list[dict[str, Any]]:
        """List the rows; a list in a row is one field."""
        return [{name: flat(row.get(name)) for name in self.columns} for row in self.rows]

    def plot(self, ax: Any = None) -> Any:
        """Draw the first panel of the first study: the number that its kind of cell names first. Returns the axes; all
        panels are drawn by `wordsway report`."""
        return load_home(_PICTURE)(self.rows, ax)

    @property
    def columns(self) -> list[str]:
        return columns_of(self.rows)

    def numbers(self) -> list[dict[str, Any]]:
        """The rows without what differs from run to run: times, memory, machine."""
        return [{k: v for k, v in row.items() if k not in _TIMES and not k.endswith("_seconds")} for row in self.rows]

    def to_csv(self) -> str:
        """Write the table as CSV."""
        return csv_of(self.rows)

    def to_json(self) -> str:
        """Write the rows as a JSON list."""
        return json.dumps([dict(row) for row in self.rows], indent=1, allow_nan=False) + "\n"

    def export(self, format: str) -> bytes:
        """The table as the content of a file."""
        if format not in FORMATS:
            raise InputError(f"format={format!r} is not known; use one of: {', '.join(FORMATS)}")
        if format == "parquet":
            return parquet_of(self.rows)
        return (self.to_csv() if format == "csv" else self.to_json()).encode()


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """A CSV file of dataclasses."""
    write_text(path, Table(tuple(asdict(row) for row in rows)).to_csv())


def read_table(store: Store, studies: Sequence[Study] | None = None, skip_damaged: bool = False) -> Table:
    """Read the table of some studies of a run (all unless given), as far as it is measured. Damaged rows are an error
    unless they are to be skipped."""
    plan, results = store.plan() if studies is None else studies, store.results(skip_damaged)
    return joined_tables([table_of(study, results) for study in plan])


def table_of(study: Study, results: Mapping[str, Result]) -> Table:
    """Make the table of a study of what was measured, by key."""
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    missing = 0
    for label, panel, job in labelled_jobs(study):
        result = results.get(job.key)
        if result is None:
            missing += 1
        elif not result.done:
            failed[label] = result.error or ""
        else:
            provenance = {name: result.provenance[name] for name in PROVENANCE}
            for number, row in enumerate(result.rows):
                own = {"study": study.name, "panel": panel, **result.recipe, "part": number}
                rows.append({**own, **row, **provenance})
    return Table(tuple(rows), failed, missing)


def labelled_jobs(study: Study) -> Iterator[tuple[str, str, Job]]:
    """Yield the jobs of a study with their panels and labels; a number tells labels apart that are the same."""
    seen: Counter[str] = Counter()
    for panel, job in study.jobs():
        label = f"{study.name} {panel}: {job.cell.label}"
        seen[label] += 1
        yield (label if seen[label] == 1 else f"{label} ({seen[label]})"), panel, job


def joined_tables(tables: Sequence[Table]) -> Table:
    """Put the tables of several studies below one another."""
    rows = tuple(row for table in tables for row in table.rows)
    failed = {label: error for table in tables for label, error in table.failed.items()}
    return Table(rows, failed, sum(table.missing for table in tables))
