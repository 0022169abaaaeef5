"""`wordsway compare`: two runs side by side."""

import json
from pathlib import Path
from typing import Annotated

import typer

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.options import Debug, Json, Own


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="The folder of another.", show_default=False)],
    of: Annotated[
        str | None, typer.Option("--of", help="The column to compare; lower, err and so on unless given.")
    ] = None,
    own: Own = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the cells that two runs share, and show their differences with 95% intervals."""
    with one_line_errors(debug):
        from wordsway.cli.show_runs import show_differences
        from wordsway.studies.compare_runs import compare_tables
        from wordsway.studies.run.store import Store
        from wordsway.studies.run.tables import read_table

        tables = []
        for folder in (first, second):
            with Store.read(folder) as store:
                tables.append(read_table(store))
        found = compare_tables(tables[0], tables[1], of)
        if as_json:
            print(json.dumps(found.to_dict(), allow_nan=False))
        else:
            show_differences(found)
