"""`wordsway resume`: go on with a run that was stopped."""

from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import RUN, PanelCommand
from wordsway.cli.options import Debug, Engine, Json, Own, Quiet, RunArgument, Scheduler, Workers, option
from wordsway.cli.run_studies import run_and_show


@app.command(cls=PanelCommand)
def resume(
    folder: RunArgument,
    failed: Annotated[bool, option(RUN, None, "Try again what failed.", "--failed")] = False,
    own: Own = None,
    engine: Engine = "processes",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Continue a run that was stopped."""
    with one_line_errors(debug, quiet, folder):
        run_and_show(None, folder, engine, workers, scheduler, retry=failed, as_json=as_json, quiet=quiet)
