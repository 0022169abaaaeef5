"""Maps of one's own in studies and on the command line: "module:function", where function(n, d, seed) makes the map.

A study is data, and data must not run code: a module is imported only if it was allowed, by `allow_maps` (what
`--own MODULE` does) or by naming it in WORDSWAY_OWN. Worker processes inherit that variable and import the module
themselves.
"""

import hashlib
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

from wordsway.errors import InputError, one_line
from wordsway.maps.base import FeatureMap
from wordsway.maps.own import as_map

VARIABLE = "WORDSWAY_OWN"
_SPEC = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_BUILT_IN = ("rf", "drf", "raf", "relu-raf", "transformer")


def is_own(name: str) -> bool:
    """Whether a map's name is that of one's own."""
    return _SPEC.fullmatch(name) is not None and name.split(":")[0] not in _BUILT_IN


def allow_maps(*modules: str) -> None:
    """Allow studies and the command line to import these modules for maps of your own, here and in workers. They are
    looked for as any import is, and in the current folder."""
    for module in modules:
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module):
            raise InputError(f"{module!r} is no module's name; for my_maps.py it is my_maps")
        _source(module)
    os.environ[VARIABLE] = ",".join(dict.fromkeys([*_allowed(), *modules]))


def own_map(name: str, n: int, d: int, seed: int) -> FeatureMap:
    """What the function makes for texts of n tokens and d coordinates; a map, or any function of a text."""
    module, _, function = name.partition(":")
    _allowed_source(name)
    try:
        make: Any = getattr(importlib.import_module(module), function, None)
    except Exception as error:
        raise InputError(f"cannot import {module}: {one_line(error)}") from error
    if not callable(make):
        raise InputError(f"{module} has no function {function!r} that could make a map")
    return as_map(make(n=n, d=d, seed=seed))


def revision_of_map(name: str) -> str:
    """A hash of the module's source, so that results of other code are not taken for this one's."""
    return f"{name}@{hashlib.sha256(_allowed_source(name).read_bytes()).hexdigest()[:12]}"


def _allowed_source(name: str) -> Path:
    module = name.partition(":")[0]
    if module not in _allowed():
        raise InputError(
            f"map={name!r} is code of your own, and {module} is not allowed yet: --own {module} on the command line, "
            f"ws.allow_maps({module!r}) in Python, or {VARIABLE}={module}"
        )
    return _source(module)


def _allowed() -> list[str]:
    return [part for part in os.environ.get(VARIABLE, "").split(",") if part]


def _source(module: str) -> Path:
    """The file of a module."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise InputError(f"there is no module {module!r} in this folder or among the installed ones")
    return Path(spec.origin)
