"""Text that is printed about results side by side."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable
from wordsway.cli.show import MOST_ROWS, more
from wordsway.cli.show_runs import plain_cell
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name
from wordsway.support.digits import three

if TYPE_CHECKING:
    from wordsway.measures.comparison import ComparedRow, Comparison


def show_comparison(found: "Comparison") -> None:
    """Print results side by side: what each one's numbers are, a row for each word or cell, and what differs."""
    console = Console(highlight=False)

    def say(line: str) -> None:
        console.print(plain_cell(line), soft_wrap=True)

    say(found.title)
    quantities = list(dict.fromkeys(side.quantity for side in found.sides))
    for side in found.sides:
        say(f"{side.name}: {side.about}" + (f"; {side.quantity}" if len(quantities) > 1 else ""))
    if len(quantities) == 1:
        say(quantities[0])
    console.print()
    console.print(_table(found))
    more(console, len(found.compared_rows) - MOST_ROWS, "rows")
    say(f"{found.finding[:1].upper()}{found.finding[1:]}.")
    say(found.reading)
    for line in found.only_lines:
        say(line)
    if found.ranked_by is not None:
        say(found.ranked_by)
        say(NOT_IMPORTANCE)


def _table(found: "Comparison") -> Table:
    table = Table(box=None, padding=(0, 1), collapse_padding=True)
    rows = found.compared_rows
    alike = len({side.short for side in found.sides}) == 1  # the line above the table says it
    for name in _keys(rows[0].key):
        table.add_column(plain_cell(name), overflow="fold")
    for side, rank in zip(found.sides, rows[0].ranks, strict=True):
        if rank is not None:
            table.add_column("rank", no_wrap=True)
        heading = Text(printable(side.name) + ("" if alike else f":\n{printable(side.short)}"))
        table.add_column(heading, justify="right", overflow="fold")
    intervals = any(row.low is not None for row in rows)
    if found.same:
        table.add_column("difference", justify="right", no_wrap=True)
        if intervals:
            table.add_column("95% interval", no_wrap=True)
        table.add_column("")
    for row in rows[:MOST_ROWS]:
        table.add_row(*_cells(found, row, intervals))
    return table


def _cells(found: "Comparison", row: "ComparedRow", intervals: bool) -> list[Any]:
    cells: list[Any] = [plain_cell(str(value)) for value in _keys(row.key).values()]
    for side, value, rank in zip(found.sides, row.values, row.ranks, strict=True):
        cells += [] if rank is None else [rank_name(*rank)]
        cells.append(side.nothing if value is None else three(value))
    if found.same:
        cells.append(_signed(row.difference))
        if intervals:
            cells.append("-" if row.low is None else f"{_signed(row.low)} to {_signed(row.high)}")
        cells.append("tied" if row.tied else "")
    return cells


def _keys(key: dict[str, Any]) -> dict[str, Any]:
    """Write what tells rows apart as the table shows it: a word with its number behind it."""
    if not {"word", "text"} <= set(key):
        return key
    shown = {name: value for name, value in key.items() if name not in ("word", "text")}
    return shown | {"word": key["text"], "": f"#{key['word']}"}


def _signed(value: float | None) -> str:
    return ("+" if value is not None and value > 0 else "") + three(value)
