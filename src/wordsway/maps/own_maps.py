"""Maps of one's own in studies and on the command line: "module:function", where function(n, d, seed) makes the map.

A study is data, and data must not run code: a module is imported only if it was allowed, by `allow_maps` (what
`--own MODULE` does) or by naming it in WORDSWAY_OWN. Worker processes inherit that variable and import the module
themselves.
"""

import hashlib
import importlib
import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from wordsway.maps.base import FeatureMap
from wordsway.maps.from_callable import as_map
from wordsway.support.errors import InputError, one_line

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
        if not isinstance(module, str) or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module):
            raise InputError(f"{module!r} is no module's name; for my_maps.py it is my_maps")
        if module.endswith(".py"):
            raise InputError(f"{module!r} is a file; its module's name is {module.removesuffix('.py')!r}")
        _source(module)
    os.environ[VARIABLE] = ",".join(dict.fromkeys([*_allowed(), *modules]))


def check_allowed(name: str) -> None:
    """Raise an InputError unless the module of a map of one's own may be imported."""
    module = name.partition(":")[0]
    if module not in _allowed():
        raise InputError(
            f"map={name!r} is none of {', '.join(_BUILT_IN)}; if {module} is code of your own, it is not allowed yet: "
            f"--own {module} on the command line, ws.allow_maps({module!r}) in Python, or {VARIABLE}={module}"
        )


def own_map(name: str, n: int, d: int, seed: int) -> FeatureMap:
    """What the function makes for texts of n tokens and d coordinates; a map, or any function of a text."""
    module, _, function = name.partition(":")
    check_allowed(name)
    _source(module)
    try:
        make: Any = getattr(importlib.import_module(module), function, None)
    except Exception as error:
        raise InputError(f"cannot import {module}: {one_line(error)}") from error
    if not callable(make):
        raise InputError(f"{module} has no function {function!r} that could make a map")
    try:
        made = make(n=n, d=d, seed=seed)
    except Exception as error:
        message = f"{name} fails when called with n={n}, d={d}, seed={seed}: {one_line(error)}"
        raise InputError(message) from error
    return as_map(made)


def revision_of_map(name: str) -> str:
    """A hash of the module's source, so that results of other code are not taken for this one's. Nothing is run."""
    return f"{name}@{hashlib.sha256(_source(name.partition(':')[0]).read_bytes()).hexdigest()[:12]}"


def _allowed() -> list[str]:
    return [part for part in os.environ.get(VARIABLE, "").split(",") if part]


def _source(module: str) -> Path:
    """The file of a module; packages above it are not imported to find it."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    importlib.invalidate_caches()
    where, name, spec = None, "", None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, where)
        if spec is None:
            break
        where = spec.submodule_search_locations
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise InputError(f"there is no module {module!r} in this folder or among the installed ones")
    return Path(spec.origin)
