"""The table of a run: one row a measured number, with its recipe and where it came from."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wordsway.studies.run.store import PROVENANCE, Result, Store
from wordsway.studies.study import Study
from wordsway.support.dataframes import frame
from wordsway.support.errors import InputError
from wordsway.support.files import write_text

FORMATS = ("csv", "parquet", "json")
_TIMES = ("seconds", "peak_bytes", "started", "machine", "arrays", "versions")


@dataclass(frozen=True)
class Table:
    """Rows as dicts, in the order of the plan. `failed` is the error of each cell that failed, `missing` how many have
    not been run."""

    rows: tuple[dict[str, Any], ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, study: str, panel: str | None = None) -> list[dict[str, Any]]:
        """The rows of a study, or of one of its panels."""
        return [r for r in self.rows if r["study"] == study and panel in (None, r["panel"])]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def numbers(self) -> list[dict[str, Any]]:
        """The rows without what differs from run to run: times, memory, machine."""
        return [{k: v for k, v in row.items() if k not in _TIMES and not k.endswith("_seconds")} for row in self.rows]

    def to_dataframe(self) -> Any:
        """A pandas DataFrame."""
        return frame([{name: _flat(row.get(name)) for name in self.columns} for row in self.rows])

    def to_csv(self) -> str:
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow(["" if row.get(name) is None else _flat(row[name]) for name in self.columns])
        return lines.getvalue()

    def to_json(self) -> str:
        return json.dumps([dict(row) for row in self.rows], indent=1, allow_nan=False) + "\n"

    def to_parquet(self) -> bytes:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise InputError("a Parquet file needs pyarrow: pip install 'wordsway[data]'; csv needs nothing") from None
        columns = {name: [_flat(row.get(name)) for row in self.rows] for name in self.columns}
        out = io.BytesIO()
        parquet.write_table(pyarrow.table({k: _column(v) for k, v in columns.items()}), out)
        return out.getvalue()

    def export(self, format: str) -> bytes:
        """The table as the content of a file."""
        if format not in FORMATS:
            raise InputError(f"format={format!r} is not known; use one of: {', '.join(FORMATS)}")
        if format == "parquet":
            return self.to_parquet()
        return (self.to_csv() if format == "csv" else self.to_json()).encode()


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    """A CSV file of dataclasses."""
    write_text(path, Table(tuple(asdict(row) for row in rows)).to_csv())


def _flat(value: Any) -> Any:
    """A list as one field of a table."""
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


def _column(values: Sequence[Any]) -> Any:
    """Values of one type: a column that mixes numbers and words is one of words."""
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and float in kinds:
        return pyarrow.array([None if value is None else float(value) for value in values], pyarrow.float64())
    if len(kinds) > 1:
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.string())
    return pyarrow.array(list(values))


def read_table(store: Store, studies: Sequence[Study] | None = None) -> Table:
    """Read the table of some studies of a run (all unless given), as far as it is measured."""
    results = store.results()
    return joined_tables([table_of(study, results) for study in (store.studies() if studies is None else studies)])


def table_of(study: Study, results: Mapping[str, Result]) -> Table:
    """Make the table of a study of what was measured, by key."""
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    missing = 0
    for panel, job in study.jobs():
        result = results.get(job.key)
        if result is None:
            missing += 1
        elif not result.done:
            failed[f"{study.name} {panel}: {job.cell.label}"] = result.error or ""
        else:
            provenance = {name: result.provenance[name] for name in PROVENANCE}
            for number, row in enumerate(result.rows):
                own = {"study": study.name, "panel": panel, **result.recipe, "part": number}
                rows.append({**own, **row, **provenance})
    return Table(tuple(rows), failed, missing)


def joined_tables(tables: Sequence[Table]) -> Table:
    """Put the tables of several studies below one another."""
    rows = tuple(row for table in tables for row in table.rows)
    failed = {label: error for table in tables for label, error in table.failed.items()}
    return Table(rows, failed, sum(table.missing for table in tables))
