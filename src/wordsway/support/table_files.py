"""Rows, as dicts, as the content of CSV and Parquet files."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from wordsway.support.errors import InputError

_ATTRIBUTES = "PANDAS_ATTRS"  # where pandas keeps the attrs of a data frame in a Parquet file
Rows = Sequence[Mapping[str, Any]]


def columns_of(rows: Rows) -> list[str]:
    """List the columns of some rows, in the order in which they first occur."""
    return list(dict.fromkeys(name for row in rows for name in row))


def csv_of(rows: Rows) -> str:
    """Write rows as CSV, with a line of headings; what is not there is an empty field."""
    columns, lines = columns_of(rows), io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if row.get(name) is None else flat(row[name]) for name in columns])
    return lines.getvalue()


def parquet_of(rows: Rows, attributes: Mapping[str, Any] | None = None) -> bytes:
    """Write rows as a Parquet file. pandas reads `attributes` as the attrs of the data frame."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("a Parquet file needs pyarrow: pip install 'wordsway[data]'; csv needs nothing") from None
    columns = {name: [flat(row.get(name)) for row in rows] for name in columns_of(rows)}
    out = io.BytesIO()
    table = pyarrow.table({name: _column(values) for name, values in columns.items()})
    if attributes:
        table = table.replace_schema_metadata({_ATTRIBUTES: json.dumps(attributes)})
    parquet.write_table(table, out)
    return out.getvalue()


def flat(value: Any) -> Any:
    """Make one field of a list."""
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


def _column(values: Sequence[Any]) -> Any:
    """Make a column of one type: one that mixes numbers and words is one of words."""
    import pyarrow

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and float in kinds:
        return pyarrow.array([None if value is None else float(value) for value in values], pyarrow.float64())
    if len(kinds) > 1:
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.string())
    return pyarrow.array(list(values))
