"""Kinds of cells by the name that a study's `measure` has, as `support/names.py` lists them.

One of a user's own is written MODULE:CLASS, and its module is imported only if it was allowed (`support/own_code.py`).
"""

from typing import Any

from wordsway.studies.cells.base import Cell
from wordsway.support.errors import InputError
from wordsway.support.names import CELLS
from wordsway.support.own_code import revision_of

_NAMES = {home: name for name, home in CELLS.homes.items()}


def kind_of(name: str) -> type[Cell]:
    """Find the kind of cell of a name; one of a user's own must be allowed."""
    kind: Any = CELLS.load(name)
    if not (isinstance(kind, type) and issubclass(kind, Cell)):
        raise InputError(f"measure={name!r} is no subclass of wordsway.Cell", argument="measure")
    if not isinstance(getattr(kind, "first", None), str):
        raise InputError(
            f"measure={name!r} does not say which of its columns comes first: first = 'NAME'", argument="measure"
        )
    return kind


def name_of(cell: Cell) -> str:
    """Find the name of a cell's kind."""
    home = f"{type(cell).__module__}:{type(cell).__name__}"
    return _NAMES.get(home, home)


def own_revision(cell: Cell) -> str:
    """Hash the source of a kind that a user's own module has; an empty string for the others."""
    name = name_of(cell)
    return "" if name in CELLS else revision_of(name)
