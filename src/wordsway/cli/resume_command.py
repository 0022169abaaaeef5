"""`wordsway resume`: go on with a run that was stopped."""

from typing import Annotated

import typer

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.options import Debug, Engine, Json, Own, Run, Scheduler, Workers
from wordsway.cli.run_studies import run_and_show


@app.command()
def resume(
    folder: Run,
    failed: Annotated[bool, typer.Option("--failed", help="Try again what failed.")] = False,
    own: Own = None,
    engine: Engine = "processes",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Continue a run that was stopped."""
    with one_line_errors(debug):
        run_and_show(None, folder, engine, workers, scheduler, retry=failed, as_json=as_json)
