"""Kinds of cells by the name that a study's `measure` has: the one registry.

A new kind is a module in this folder and a line in `_BUILT_IN`. A user's own module registers one with
`register_cell`, and is imported where a name is not known, if it was allowed (`--own MODULE`, `allow_maps`): studies
are data, and data must not run code by itself.
"""

import importlib
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

from wordsway.maps.named import VARIABLE, revision_of_map
from wordsway.studies.cells.base import Cell
from wordsway.support.errors import InputError, StudyError, one_line

# The class of each kind and its module, which is imported when the kind is first used.
_BUILT_IN = {
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
_kinds: dict[str, type[Cell]] = {}  # those used so far, and those of own modules
_Kind = TypeVar("_Kind", bound=type[Cell])


def kind_names() -> list[str]:
    """List all kinds: the built-in ones, then those that were registered."""
    return list(dict.fromkeys([*_BUILT_IN, *_kinds]))


def kind_of(name: str) -> type[Cell]:
    """Find the kind of cell of a name. Own modules that are allowed are imported where it is not known."""
    if name not in _kinds and name in _BUILT_IN:
        module, _, cell = _BUILT_IN[name].partition(":")
        _kinds[name] = getattr(importlib.import_module(f"wordsway.studies.cells.{module}"), cell)
    if name not in _kinds:
        _import_own()
    if name not in _kinds:
        raise StudyError(
            f"measure={name!r} is not known; use one of: {', '.join(kind_names())} (if it is in a module of your own, "
            "allow that with --own MODULE)",
            "measure",
        )
    return _kinds[name]


def name_of(cell: Cell) -> str:
    """Find the name of a cell's kind."""
    for name in kind_names():
        if name not in _kinds and _BUILT_IN[name].endswith(f":{type(cell).__name__}"):
            kind_of(name)
        if _kinds.get(name) is type(cell):
            return name
    raise InputError(f"{type(cell).__name__} is no kind of cell that was registered; see register_cell")


def register_cell(name: str) -> Callable[[_Kind], _Kind]:
    """Decorate a subclass of `Cell`: studies can then name it as `measure`. For modules of your own.

    Registered again (a module that is loaded twice), the newer class counts; a built-in name is refused.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"a kind of cell has a name of letters, digits and '_', got {name!r}")
    if name in _BUILT_IN:
        raise InputError(f"there is a built-in kind of cell {name!r}; choose another name")

    def register(kind: Any) -> Any:
        if not (isinstance(kind, type) and issubclass(kind, Cell)):
            raise InputError(f"register_cell({name!r}) is for a subclass of Cell, got {kind!r}")
        if not isinstance(getattr(kind, "first", None), str):
            raise InputError(f'the kind of cell {name!r} must say which of its columns comes first, as first = "lower"')
        _kinds[name] = kind
        return kind

    return register


def own_revision(cell: Cell) -> str:
    """Hash the source of a kind that a user's own module has; an empty string for the others."""
    module = type(cell).__module__
    if module.partition(".")[0] == "wordsway":
        return ""
    if module == "__main__" or find_spec(module) is None:
        return f"{module}:{type(cell).__name__}"  # of a script or a notebook, whose text may change unseen
    return revision_of_map(f"{module}:{type(cell).__name__}")


def _import_own() -> None:
    """Import the modules that were allowed."""
    for module in (part for part in os.environ.get(VARIABLE, "").split(",") if part):
        revision_of_map(f"{module}:")  # looks for it, in the current folder too
        try:
            importlib.import_module(module)
        except Exception as error:  # it is a user's code, which may raise anything
            raise InputError(f"cannot import {module}: {one_line(error)}") from error
