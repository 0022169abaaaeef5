"""Maps by name, as the command line and studies write them.

"raf" is a map; "raf:heads=4,causal" is the same with options of its recipe, each NAME=VALUE, or NAME alone for true;
"my_module:make" is a map of one's own, where make(n=, d=, seed=) makes the map.

A study is data, and data must not run code: a module of one's own is imported only if it was allowed, by `allow_maps`
(what `--own MODULE` does) or by naming it in WORDSWAY_OWN. Worker processes inherit that variable and import the module
themselves.
"""

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, get_type_hints

import torch

from wordsway.maps.attention.random_attention import RandomAttention
from wordsway.maps.base import FeatureMap
from wordsway.maps.features.random_features import RandomFeatures
from wordsway.maps.from_callable import as_map
from wordsway.maps.transformer.random_transformer import RandomTransformer
from wordsway.support.errors import InputError, one_line

NAMES = ("rf", "drf", "raf", "relu-raf", "transformer")
Recipe = RandomAttention | RandomFeatures | RandomTransformer
# What each name fixes of its recipe, and the recipe.
_RECIPES: dict[str, tuple[Callable[..., Recipe], dict[str, Any]]] = {
    "rf": (RandomFeatures, {"depth": 1}),
    "drf": (RandomFeatures, {}),
    "raf": (RandomAttention, {}),
    "relu-raf": (RandomAttention, {"score": "relu"}),
    "transformer": (RandomTransformer, {}),
}
VARIABLE = "WORDSWAY_OWN"
_SPEC = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def named_map(
    name: str,
    n: int,
    d: int,
    seed: int = 0,
    *,
    depth: int | None = None,
    activation: str = "relu",
    temperature: float = 1.0,
    device: torch.device | str = "cpu",
) -> FeatureMap:
    """A map with weights drawn for texts of n tokens and d coordinates: RF, deep RF (depth 2 unless given), softmax
    RAF, ReLU-RAF, a transformer, any of them with options, or one of your own."""
    if is_own(name):
        _no_options(name, depth, activation, temperature)
        return own_map(name, n, d, seed)
    recipe = named_recipe(name, depth=depth, activation=activation, temperature=temperature)
    if isinstance(recipe, RandomFeatures):
        return recipe.sample(n=n, d=d, seed=seed, device=device)
    return recipe.sample(d=d, n=n, seed=seed)


def check_name(name: str, d: int | None = None, **options: Any) -> None:
    """Raise an InputError unless there is such a map with such options (for texts of d coordinates, where that is
    known); one of your own is not made."""
    if is_own(name):
        return _no_options(name, **options)
    recipe = named_recipe(name, **options)
    if d is not None and not isinstance(recipe, RandomFeatures):
        recipe.check_width(d)


def base_name(name: str) -> str:
    """A map's name without its options."""
    return name.split(":", 1)[0]


def copies(name: str) -> int:
    """How many times as many features as numbers of a text a map has, about: one for each head."""
    recipe = None if is_own(name) else named_recipe(name)
    return recipe.heads if isinstance(recipe, RandomAttention) else 1


def split_names(text: str) -> tuple[str, ...]:
    """Names by commas; options of a name have commas too, but are no names of maps."""
    found: list[str] = []
    for part in (piece.strip() for piece in text.split(",") if piece.strip()):
        if found and ":" in found[-1] and base_name(part) not in NAMES and not is_own(part):
            found[-1] += f",{part}"
        else:
            found.append(part)
    return tuple(found)


def named_recipe(name: str, *, depth: int | None = None, activation: str = "relu", temperature: float = 1.0) -> Recipe:
    """The same without weights; what has no meaning for a map is an error."""
    base, _, text = name.partition(":")
    if base not in NAMES:
        raise InputError(
            f"map={name!r} is not known; use one of: {', '.join(NAMES)}, with options as in raf:heads=4,causal, or a "
            "map of your own as module:function"
        )
    if name.endswith(":"):
        raise InputError(f"map={name!r} has no options after the colon; leave it out")
    make, fixed = _RECIPES[base]
    options = {**fixed, **_options(name, text, make, fixed)}
    for key, value, unless in (
        ("depth", depth, None),
        ("activation", activation, "relu"),
        ("temperature", temperature, 1.0),
    ):
        if value != unless:
            if key not in _known(make) or key in fixed:
                owners = [other for other, (maker, own) in _RECIPES.items() if key in _known(maker) and key not in own]
                raise InputError(f"{key}={value} has no meaning for map={name!r}; it belongs to {', '.join(owners)}")
            if key in text.replace("=", ",").split(","):
                raise InputError(f"{key} is given twice: in map={name!r}, and as {value}")
            options[key] = value
    if base == "drf":
        options.setdefault("depth", 2)
    return make(**options)


def _known(make: Callable[..., Recipe]) -> dict[str, Any]:
    """The options that a name may have, with their types; sizes of texts come from elsewhere."""
    hints = get_type_hints(make)
    return {f.name: hints[f.name] for f in fields(make) if f.name != "d"}  # pyright: ignore[reportArgumentType]


def _options(name: str, text: str, make: Callable[..., Recipe], fixed: dict[str, Any]) -> dict[str, Any]:
    known = {key: hint for key, hint in _known(make).items() if key not in fixed}
    found: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in known:
            raise InputError(f"map={name!r} has the option {key!r}, which is not known; use: {', '.join(known)}")
        if key in found:
            raise InputError(f"map={name!r} has the option {key!r} twice")
        found[key] = _value(name, key, value if equals else "true", known[key])
    return found


def _value(name: str, key: str, text: str, hint: Any) -> Any:
    if hint is bool:
        if text not in ("true", "false"):
            raise InputError(f"map={name!r}: {key} is true or false, got {text!r}")
        return text == "true"
    if hint is str:
        return text
    try:
        return float(text) if hint is float else int(text)
    except ValueError:
        kind = "a number" if hint is float else "a whole number"
        raise InputError(f"map={name!r}: {key} must be {kind}, got {text!r}") from None


def _no_options(name: str, depth: int | None = None, activation: str = "relu", temperature: float = 1.0) -> None:
    if depth is not None or activation != "relu" or temperature != 1.0:
        raise InputError(f"depth, activation and temperature have no meaning for map={name!r}, which is your own")


def is_own(name: str) -> bool:
    """Whether a map's name is that of one's own."""
    return _SPEC.fullmatch(name) is not None and name.split(":")[0] not in NAMES


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
            f"map={name!r} is none of {', '.join(NAMES)}; if {module} is code of your own, it is not allowed yet: "
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
