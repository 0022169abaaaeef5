"""`wordsway report`: results and runs as a page."""

from pathlib import Path
from typing import Annotated

import typer

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.options import Debug, Own
from wordsway.cli.output import write_report


@app.command()
def report(
    source: Annotated[
        Path, typer.Argument(help="A run's folder, or a result: what --out of a command wrote.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    own: Own = None,
    debug: Debug = False,
) -> None:
    """Write one page with everything in a result or a run: coloured words, figures, claims, tables, how it was made.

    The file needs no network and no other file.
    """
    with one_line_errors(debug):
        write_report(source, out)
