"""Code of a user's own, imported by leave only.

A study is data, and data must not run code: a module of one's own is imported only if it was allowed, by `allow_maps`
(what `--own MODULE` does) or by naming it in WORDSWAY_OWN. Worker processes inherit that variable and import the module
themselves. A thing in such a module is written MODULE:NAME.
"""

import hashlib
import importlib
import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from wordsway.support.errors import InputError, one_line
from wordsway.support.public_gate import public

VARIABLE = "WORDSWAY_OWN"
_found: dict[tuple[str, ...], Path] = {}  # the files of modules, by module and sys.path
_SPEC = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def is_spec(name: str) -> bool:
    """Whether a name is written as MODULE:NAME."""
    return _SPEC.fullmatch(name) is not None


@public
def allow_maps(*modules: str) -> None:
    """Allow studies and the command line to import these modules of yours, for maps, scores and outputs written as
    MODULE:NAME, here and in workers. They are looked for as any import is, and in the current folder."""
    for module in modules:
        if not isinstance(module, str) or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module):
            raise InputError(f"{module!r} is no module's name; for my_maps.py it is my_maps", argument="own")
        if module.endswith(".py"):
            name = module.removesuffix(".py")
            raise InputError(f"{module!r} is a file; its module's name is {name!r}", argument="own")
        _source(module)
    os.environ[VARIABLE] = ",".join(dict.fromkeys([*_allowed(), *modules]))


def check_allowed(spec: str, kind: str, known: tuple[str, ...]) -> None:
    """Raise an InputError unless the module of MODULE:NAME may be imported; `kind` is what was asked for, `known` are
    the names that need no leave."""
    module = spec.partition(":")[0]
    if module not in _allowed():
        raise InputError(
            f"{kind}={spec!r} is none of {', '.join(known)}; if {module} is code of your own, it is not allowed yet: "
            f"--own {module} on the command line, ws.allow_maps({module!r}) in Python, or {VARIABLE}={module}",
            argument=kind,
        )


def load_own(spec: str, kind: str) -> Any:
    """Import MODULE and get NAME from it. Check first that it is allowed."""
    module, _, name = spec.partition(":")
    _source(module)
    try:
        loaded = importlib.import_module(module)
    except Exception as error:  # a user's module may raise anything
        raise InputError(f"cannot import {module}: {one_line(error)}", argument=kind) from error
    if not hasattr(loaded, name):
        raise InputError(f"{module} has no {name!r}, which {kind}={spec!r} asks for", argument=kind)
    return getattr(loaded, name)


def revision_of(spec: str) -> str:
    """Hash the source of MODULE, so that results of other code are not taken for this one's. Nothing is run."""
    return f"{spec}@{hashlib.sha256(_source(spec.partition(':')[0]).read_bytes()).hexdigest()[:12]}"


def _allowed() -> list[str]:
    return [part for part in os.environ.get(VARIABLE, "").split(",") if part]


def _source(module: str) -> Path:
    """Find the file of a module; packages above it are not imported to find it."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    place = (module, *sys.path)  # to search all of them for each cell of a study would take longer than a small cell
    if place not in _found or not _found[place].is_file():
        _found[place] = _searched(module)
    return _found[place]


def _searched(module: str) -> Path:
    importlib.invalidate_caches()
    where, name, spec = None, "", None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, where)
        if spec is None:
            break
        where = spec.submodule_search_locations
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise InputError(f"there is no module {module!r} in this folder or among the installed ones", argument="own")
    return Path(spec.origin)
