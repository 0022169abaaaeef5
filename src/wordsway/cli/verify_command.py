"""`wordsway verify`: whether all that a run has stored is whole."""

import json

import typer

from wordsway.cli.command import app, one_line_errors, printable
from wordsway.cli.help_pages import PanelCommand
from wordsway.cli.options import Debug, Json, RunArgument


@app.command(cls=PanelCommand)
def verify(folder: RunArgument, as_json: Json = False, debug: Debug = False) -> None:
    """Check every row and array of a run against its checksum.

    Ends with code 1 when something is damaged. `wordsway resume` measures it again.
    """
    with one_line_errors(debug):
        from wordsway.studies.run.store import Store

        with Store.read(folder) as store:
            content = store.content(arrays=True)
            if not content.plans and not content.damaged:
                store.plan()  # says that there is none
        damaged = content.damaged_plans + content.damaged_results
        if as_json:
            shown = {
                "folder": str(folder),
                "whole": not content.damaged,
                "plans": len(content.plans),
                "results": len(content.results),
                "damaged_rows": damaged,
                "damaged_arrays": content.damaged_arrays,
                "without_checksum": content.unchecked,
                "problems": content.problems,
            }
            print(json.dumps(shown))
        else:
            plans, results = len(content.plans), len(content.results)
            plural = "" if plans == 1 else "s", "" if results == 1 else "s"
            print(f"{plans} plan{plural[0]} and {results} result{plural[1]} are whole")
            if content.unchecked:
                print(
                    f"{content.unchecked} of these rows carry no checksum: an earlier version wrote them, and a "
                    "changed number in them cannot be seen"
                )
            if content.damaged:
                print(f"damaged: {printable(content.describe())}")
                print(f"measure again what is lost with: wordsway resume {folder}")
        if content.damaged:
            raise typer.Exit(1)
