"""`wordsway report`: results and runs as a page."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.options import Debug
from wordsway.support.errors import InputError
from wordsway.support.files import check_target


@app.command()
def report(
    source: Annotated[
        Path, typer.Argument(help="A run's folder, or a result: what --out of a command wrote.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path("report.html"),
    debug: Debug = False,
) -> None:
    """One page with everything in a result or a run: coloured words, figures, claims, tables, how it was made.

    The file needs no network and no other file.
    """
    with one_line_errors(debug):
        write_report(source, out)


def check_page(path: Path | None) -> None:
    """Before any work: is that a file for a page, and can it be written?"""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a report is a file that ends in .html, got {str(path)!r}")
    check_target(path)


def write_report(source: Any, out: Path, quiet: bool = False) -> None:
    """Make the page of a result or a path, and say where it is."""
    from wordsway.report.page import report_html
    from wordsway.support.files import write_text
    from wordsway.support.memory import show_bytes
    from wordsway.support.progress import waiting

    check_page(out)
    with waiting("making the report"):
        page = report_html(source)
    write_text(out, page)
    if not quiet:
        print(f"wrote {out} ({show_bytes(len(page.encode()))})")
