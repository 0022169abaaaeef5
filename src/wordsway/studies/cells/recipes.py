"""Recipes of cells, and their keys: the same recipe, code and encoder give the same key, anything else another one."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from wordsway.datasets.labelled_texts import check_source
from wordsway.maps.map_names import is_own, revision_of_map
from wordsway.models.loading.installed import SENTIMENT
from wordsway.models.loading.locate import locate
from wordsway.studies.cells.base import Cell
from wordsway.studies.cells.kinds import kind_of, name_of, own_revision

# Raised whenever a change of the code changes what a cell gives, so that old results are not taken for new ones.
RESULT_VERSION = 2  # 2: bounds shrink with the radius, and models that end in a norm have one


def recipe_of(cell: Cell) -> dict[str, Any]:
    """Write a cell down as JSON values."""
    return {"measure": name_of(cell), **cell.recipe()}


def cell_of(recipe: dict[str, Any]) -> Cell:
    """Make the cell of a recipe."""
    kind = kind_of(recipe["measure"])
    hints = _hints(kind)
    values: dict[str, Any] = {name: value for name, value in recipe.items() if name != "measure"}
    values = {k: tuple(v) if get_origin(hints[k]) is tuple else v for k, v in values.items()}
    return kind(**values)


@lru_cache(maxsize=64)
def _hints(kind: type[Cell]) -> dict[str, Any]:
    """Find the types of a kind's fields, once: every cell asks for them."""
    return get_type_hints(kind)


def key_of(recipe: dict[str, Any], revision: str = "", version: int = RESULT_VERSION) -> str:
    """Hash a recipe (whatever the order of its keys), the version of results, and the revision of what it uses."""
    text = json.dumps([version, revision, recipe], sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def revision_of(cell: Cell) -> str:
    """Name the revisions of the encoders, models, own code and files that a cell's result depends on."""
    parts = [f"{name}@{_model_revision(name)}" for name in cell.models()]
    parts += [revision_of_map(name) for name in cell.maps() if is_own(name)]
    for source in cell.texts():
        check_source(source)
        path = Path(source).expanduser()
        if path.is_file():
            parts.append(f"{source}@{_file_revision(path, path.stat().st_mtime_ns)}")
    code = own_revision(cell)
    return " ".join([*parts, code] if code else parts)


@lru_cache(maxsize=16)
def _model_revision(name: str) -> str:
    return locate("minilm" if name == SENTIMENT else name).revision


@lru_cache(maxsize=16)
def _file_revision(path: Path, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def is_axis(kind: type[Cell], name: str) -> bool:
    """Whether a list of values for a field means one cell each; a field that is a list itself is none."""
    return get_origin(_hints(kind)[name]) is not tuple


def allows(kind: type[Cell], name: str, value: Any) -> bool:
    """Whether a value has the type that a field asks for; a whole number is a number, but true and false are none."""
    return _allows(_hints(kind)[name], value)


def _allows(hint: Any, value: Any) -> bool:
    if get_origin(hint) is tuple:
        return isinstance(value, list | tuple) and all(_allows(get_args(hint)[0], item) for item in value)
    options = get_args(hint) or (hint,)
    if isinstance(value, bool):
        return bool in options
    if isinstance(value, int):
        return int in options or float in options
    return any(isinstance(value, option) for option in options)


def wants(kind: type[Cell], name: str) -> str:
    """Describe what a field takes, for an error message."""
    words = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
    hint = _hints(kind)[name]
    if get_origin(hint) is tuple:
        return f"a list, each {words[get_args(hint)[0]]}"
    return " or ".join(words[option] for option in (get_args(hint) or (hint,)) if option in words)
