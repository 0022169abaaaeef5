"""`wordsway report`: results and runs as a page."""

from pathlib import Path
from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import OUTPUT, RUN, PanelCommand
from wordsway.cli.options import Debug, Own, SkipDamaged, argument, option
from wordsway.cli.output import write_report


@app.command(cls=PanelCommand)
def report(
    source: Annotated[
        Path, argument(RUN, "RESULT", "A run's folder, or a result: a .json that --out of a command wrote.")
    ],
    out: Annotated[
        Path, option(OUTPUT, "FILE", "The page to write, a .html file.", "--out", "-o", show_default="report.html")
    ] = Path("report.html"),
    skip_damaged: SkipDamaged = False,
    own: Own = None,
    debug: Debug = False,
) -> None:
    """Write one page with everything in a result or a run: coloured words, figures, claims, tables, how it was made.

    The file needs no network and no other file.
    """
    with one_line_errors(debug):
        if skip_damaged and source.is_dir():
            from wordsway.report.runs import of_run
            from wordsway.studies.loaded_run import Run

            return write_report(of_run(Run.read(source, skip_damaged=True)), out)
        write_report(source, out)
