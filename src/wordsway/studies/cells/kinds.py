"""Kinds of cells by the name that a study's `measure` has: the one registry.

A new kind is a module in this folder and a line in `BUILT_IN`. One of a user's own is written MODULE:CLASS, and its
module is imported only if it was allowed (`--own MODULE`, `allow_maps`): studies are data, and data must not run code
by itself. Worker processes inherit that.
"""

import importlib
import os
from functools import lru_cache
from typing import Any

from wordsway.maps.named import VARIABLE, revision_of_map
from wordsway.studies.cells.base import Cell
from wordsway.support.errors import InputError, StudyError, one_line

# The class of each kind and its module here, which is imported when the kind is first used.
BUILT_IN = {
    "sensitivity": "sensitivity_cell:SensitivityCell",
    "flips": "flip_cell:FlipCell",
    "layers": "model_cells:LayersCell",
    "attention": "model_cells:AttentionCell",
    "prompts": "model_cells:PromptsCell",
    "states": "states_cell:StatesCell",
    "training": "training_cell:TrainingCell",
    "pairs": "pairs_cell:PairsCell",
    "random_change": "random_change_cell:RandomChangeCell",
}
_HERE = "wordsway.studies.cells"
_NAMES = {f"{_HERE}.{home}": name for name, home in BUILT_IN.items()}


def kind_of(name: str) -> type[Cell]:
    """Find the kind of cell of a name; one of a user's own must be allowed."""
    if name in BUILT_IN:
        return _built_in(name)
    module, colon, _ = name.partition(":")
    if not colon:
        known = ", ".join(BUILT_IN)
        raise StudyError(f"measure={name!r} is not known; use one of: {known}, or MODULE:CLASS of your own", "measure")
    if module not in os.environ.get(VARIABLE, "").split(","):
        raise StudyError(
            f"measure={name!r} is none of {', '.join(BUILT_IN)}; if {module} is code of your own, it is not allowed "
            f"yet: --own {module} on the command line, ws.allow_maps({module!r}) in Python, or {VARIABLE}={module}",
            "measure",
        )
    return _own(name)


def name_of(cell: Cell) -> str:
    """Find the name of a cell's kind."""
    home = f"{type(cell).__module__}:{type(cell).__name__}"
    return _NAMES.get(home, home)


def own_revision(cell: Cell) -> str:
    """Hash the source of a kind that a user's own module has; an empty string for the others."""
    name = name_of(cell)
    return "" if name in BUILT_IN else revision_of_map(name)


@lru_cache
def _built_in(name: str) -> type[Cell]:
    module, _, kind = BUILT_IN[name].partition(":")
    return getattr(importlib.import_module(f"{_HERE}.{module}"), kind)


def _own(name: str) -> type[Cell]:
    """Import a kind of a user's own, and check that it is one."""
    module, _, kind = name.partition(":")
    revision_of_map(name)  # looks for the module, in the current folder too
    try:
        found: Any = getattr(importlib.import_module(module), kind, None)
    except Exception as error:  # it is a user's code, which may raise anything
        raise InputError(f"cannot import {module}: {one_line(error)}") from error
    if not (isinstance(found, type) and issubclass(found, Cell)):
        raise StudyError(f"measure={name!r}: {module} has no subclass {kind!r} of wordsway.Cell", "measure")
    if not isinstance(getattr(found, "first", None), str):
        raise StudyError(f"measure={name!r} does not say which of its columns comes first: first = 'NAME'", "measure")
    return found
