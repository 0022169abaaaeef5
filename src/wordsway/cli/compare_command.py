"""`wordsway compare`: two runs side by side."""

import json
from pathlib import Path
from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import OUTPUT, RUN, PanelCommand
from wordsway.cli.options import Debug, Json, Own, argument, option


@app.command(cls=PanelCommand)
def compare(
    first: Annotated[Path, argument(RUN, "FIRST", "The folder of a run.")],
    second: Annotated[Path, argument(RUN, "SECOND", "The folder of another.")],
    of: Annotated[
        str | None, option(OUTPUT, "COLUMN", "The column that is compared.", "--of", show_default="lower, err, ...")
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
