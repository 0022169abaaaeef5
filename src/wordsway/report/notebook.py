"""Results in notebooks: a line, the coloured text, the first rows and the picture, as one piece of HTML that needs no
page around it."""

from collections.abc import Sequence
from typing import Any

from wordsway.measures.flip_radii import FlipRadii
from wordsway.measures.profile_result import RadiusProfile
from wordsway.report.page import render_part, report_of
from wordsway.report.parts import Grid, Report, Words
from wordsway.report.svg import as_svg
from wordsway.support.result import Result

_FIRST_ROWS = 10
_DETAILS = ("to", "certified")  # columns of a page's table that a notebook leaves to the data frame
# A background and the colour of letters on it for each shade of a word: those of a page in light colours.
_SHADES = tuple(
    f"background:#{paper};color:#{ink}"
    for paper, ink in zip(
        ("f2f7fc", "deebf7", "c6dbef", "9ecae1", "6baed6", "4f9fd0", "2171b5", "08519c", "08306b"),
        (*["101820"] * 6, *["ffffff"] * 3),
        strict=True,
    )
)


def notebook_html(result: Result) -> str:
    """Make the HTML that a notebook shows for a result."""
    report = report_of(result)
    columns, rows = _table(result, report)
    return render_part(
        "notebook.html",
        title=report.title,
        lead=report.lead,
        words=next((part for part in report.parts if isinstance(part, Words)), None),
        shades=_SHADES,
        svg=as_svg(result.plot().figure) if rows else "",
        columns=columns,
        rows=rows[:_FIRST_ROWS],
        count=len(rows),
    )


def _table(result: Result, report: Report) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Return the columns and rows to show: of the answer about a model's text those of its page, a row a word with its
    rank, of others those of the data frame."""
    if isinstance(result, FlipRadii | RadiusProfile):
        page = next(part for part in report.parts if isinstance(part, Grid))
        kept = [k for k, name in enumerate(page.columns) if name not in _DETAILS]
        return [page.columns[k] for k in kept], [[row[k] for k in kept] for row in page.rows]
    table = Grid.of("", "", result.records())
    return table.columns, table.rows
