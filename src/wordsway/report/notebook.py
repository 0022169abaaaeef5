"""Results in notebooks: a line, the picture and the first rows, as one piece of HTML that needs no page around it."""

from typing import Any

from wordsway.report.page import render_part, report_of
from wordsway.report.parts import plain_value
from wordsway.report.svg import as_svg
from wordsway.support.result import Result
from wordsway.support.table_files import columns_of

_FIRST_ROWS = 10


def notebook_html(result: Result) -> str:
    """Make the HTML that a notebook shows for a result."""
    rows = result.records()
    columns = [name for name in columns_of(rows) if any(row.get(name) is not None for row in rows)]
    cells: list[list[Any]] = [[plain_value(row.get(name)) for name in columns] for row in rows[:_FIRST_ROWS]]
    report = report_of(result)
    return render_part(
        "notebook.html",
        title=report.title,
        lead=report.lead,
        svg=as_svg(result.plot().figure) if rows else "",
        columns=columns,
        rows=cells,
        count=len(rows),
    )
