"""`wordsway export`: the table of a run."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.options import Debug, Own, Run
from wordsway.support.errors import InputError


@app.command()
def export(
    folder: Run,
    format: Annotated[
        str | None, typer.Option("--format", help="csv, parquet or json; by the suffix of --out, else csv.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; else on stdout.")] = None,
    own: Own = None,
    debug: Debug = False,
) -> None:
    """Export the whole table of a run, with the provenance of every row."""
    with one_line_errors(debug):
        from wordsway.studies.run.store import Store
        from wordsway.studies.run.tables import FORMATS, read_table
        from wordsway.support.files import write_bytes

        if format is None:
            suffix = out.suffix.lstrip(".") if out is not None else ""
            format = suffix if suffix in FORMATS else "csv"
        if format == "parquet" and out is None and sys.stdout.isatty():
            raise InputError("a Parquet file is no text for a terminal; give --out FILE")
        with Store.read(folder) as store:
            table = read_table(store)
        content = table.export(format)
        if out is not None:
            write_bytes(out, content)
            print(f"written: {out} ({len(table)} rows)")
        else:
            sys.stdout.buffer.write(content)
        if table.missing or table.failed:
            print(
                f"wordsway: note: {table.missing} cells are not measured yet, {len(table.failed)} failed",
                file=sys.stderr,
            )
