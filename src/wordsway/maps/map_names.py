"""Names of maps, without the maps: which names there are, what they ask for, which code of a user's own they need.

`named` makes the maps. Nothing here needs torch, so a study can be read, planned and shown without it.
"""

from typing import Any

from wordsway.maps.recipe_numbers import check_depth, check_temperature
from wordsway.support import own_code
from wordsway.support.errors import InputError
from wordsway.support.names import ATTENTION, MAPS, SCORES, MapName
from wordsway.support.registry import load_home

_CHECK = "wordsway.maps.named:check_recipe"  # recipes lie above their names, and load torch
_DEEP, _WARM = ("drf", "transformer"), ("raf", "transformer")  # maps with a depth, with a temperature


def is_map(name: str) -> bool:
    """Tell whether a name is one of a map, rather than of a model; nothing is imported."""
    own = is_own_map(name) and not name.startswith("reinit:")  # which is how a model's weights are drawn anew
    return find_name(base_name(name)) is not None or own


def base_name(name: str) -> str:
    """Cut the options off a map's name."""
    return name.split(":", 1)[0]


def check_name(name: str, d: int | None = None, **options: Any) -> None:
    """Raise an InputError unless there is such a map with such options (for texts of d coordinates, where that is
    known); one of your own is not made."""
    if not isinstance(name, str):
        raise InputError(f"map must be a name, got {type(name).__name__}", argument="map")
    if is_own_map(name):
        return no_options(name, **options)
    if name in MAPS and _is_usual(name, **options):
        return
    load_home(_CHECK)(name, d, **options)


def _is_usual(name: str, depth: int | None = None, activation: str = "relu", temperature: float = 1.0) -> bool:
    """Whether nothing is asked of a listed name that only its recipe can check: recipes load torch, and the many cells
    of a study need not wait for it."""
    if depth is not None and name in _DEEP:
        check_depth(depth)
    if temperature != 1.0 and name in _WARM:
        check_temperature(temperature)
    plain = (depth is None or name in _DEEP) and (temperature == 1.0 or name in _WARM)
    return plain and activation == "relu"


def split_names(text: str) -> tuple[str, ...]:
    """Split names by commas; options of a name have commas too, but are no names of maps."""
    names: list[str] = []
    for part in (piece.strip() for piece in text.split(",") if piece.strip()):
        if names and ":" in names[-1] and find_name(base_name(part)) is None and not is_own_map(part):
            names[-1] += f",{part}"
        else:
            names.append(part)
    return tuple(names)


def find_name(base: str) -> MapName | None:
    """Find what a name without options stands for; None where there is no such name."""
    score = base.removesuffix("-raf")
    if base not in MAPS and score != base and score in SCORES:
        return MapName(ATTENTION, f"attention with {score} scores", fixed={"score": score})
    return MAPS.get(base)


def no_options(name: str, depth: int | None = None, activation: str = "relu", temperature: float = 1.0) -> None:
    if depth is not None or activation != "relu" or temperature != 1.0:
        raise InputError(
            f"depth, activation and temperature have no meaning for map={name!r}, which is your own", argument="map"
        )


def is_own_map(name: str) -> bool:
    return own_code.is_spec(name) and find_name(base_name(name)) is None


def _own_code(name: str) -> tuple[str, str] | None:
    """Find which code of one's own a map's name asks for, as (kind, MODULE:NAME): the map itself, or its score."""
    if is_own_map(name):
        return "map", name
    options = (part.strip().partition("=") for part in name.partition(":")[2].split(","))
    asked = [value.strip() for key, _, value in options if key.strip() == "score"]
    return next((("score", score) for score in asked if SCORES.is_own(score)), None)


def is_own(name: str) -> bool:
    """Whether a map's name asks for code of one's own: the map itself, or its score."""
    return _own_code(name) is not None


def check_allowed(name: str) -> None:
    """Raise an InputError unless the code of one's own that a map's name asks for may be imported."""
    asked = _own_code(name)
    if asked is not None:
        kind, spec = asked
        own_code.check_allowed(spec, kind, tuple(MAPS) if kind == "map" else SCORES.names)


def revision_of_map(name: str) -> str:
    """Hash the source of the code of one's own that a map's name asks for, so that results of other code are not taken
    for this one's. Nothing is run."""
    asked = _own_code(name)
    return own_code.revision_of(asked[1] if asked else name)
