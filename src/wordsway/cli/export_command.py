"""`wordsway export`: the table of a run."""

import sys

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import PanelCommand
from wordsway.cli.options import Debug, Json, Out, Own, RunArgument, SkipDamaged
from wordsway.cli.saving import TABLES, check_files


@app.command(cls=PanelCommand)
def export(
    folder: RunArgument,
    skip_damaged: SkipDamaged = False,
    own: Own = None,
    out: Out = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Export the whole table of a run, with the provenance of every row.

    Without --out it is printed, as CSV or JSON.
    """
    with one_line_errors(debug):
        from wordsway.studies.run.store import Store
        from wordsway.studies.run.tables import read_table
        from wordsway.support.files import is_stdout, write_bytes
        from wordsway.support.result import suffix_of

        check_files(out, (*TABLES, ".json"))
        with Store.read(folder) as store:
            table = read_table(store, skip_damaged=skip_damaged)
        for file in out or ():
            write_bytes(file, table.export(suffix_of(file)[1:]))
            if not is_stdout(file):
                print(f"wrote {file} ({len(table)} rows)")
        if as_json or not out:
            sys.stdout.buffer.write(table.export("json" if as_json else "csv"))
        if table.missing or table.failed:
            print(
                f"wordsway: note: {table.missing} cells are not measured yet, {len(table.failed)} failed",
                file=sys.stderr,
            )
