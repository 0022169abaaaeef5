"""Maps by name, as the command line and studies write them.

"raf" is a map; "raf:heads=4,causal" is the same with options of its recipe, each NAME=VALUE, or NAME alone for true;
"softplus-raf" is raf with that score; "my_module:make" is a map of one's own, where make(n=, d=, seed=) makes the map,
and "raf:score=my_module:Cauchy" has a score of one's own. What of one's own may be imported: `support/own_code.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, get_type_hints

import torch

from wordsway.maps.attention.kernel import LinearAttention
from wordsway.maps.attention.random_attention import RandomAttention
from wordsway.maps.base import FeatureMap
from wordsway.maps.features.random_features import RandomFeatures
from wordsway.maps.from_callable import as_map
from wordsway.maps.transformer.random_transformer import RandomTransformer
from wordsway.support import own_code
from wordsway.support.errors import InputError, one_line
from wordsway.support.names import ATTENTION, MAPS, SCORES, MapName
from wordsway.support.public_gate import public
from wordsway.support.registry import load_home

Recipe = RandomAttention | LinearAttention | RandomFeatures | RandomTransformer


@public
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
    if _is_own_map(name):
        _no_options(name, depth, activation, temperature)
        return own_map(name, n, d, seed)
    recipe = named_recipe(name, depth=depth, activation=activation, temperature=temperature)
    if isinstance(recipe, RandomFeatures):
        return recipe.sample(n=n, d=d, seed=seed, device=device)
    return recipe.sample(d=d, n=n, seed=seed)


def check_name(name: str, d: int | None = None, **options: Any) -> None:
    """Raise an InputError unless there is such a map with such options (for texts of d coordinates, where that is
    known); one of your own is not made."""
    if not isinstance(name, str):
        raise InputError(f"map must be a name, got {type(name).__name__}", argument="map")
    if _is_own_map(name):
        return _no_options(name, **options)
    recipe = named_recipe(name, **options)
    if d is not None and not isinstance(recipe, RandomFeatures):
        recipe.check_width(d)


def is_map(name: str) -> bool:
    """Tell whether a name is one of a map, rather than of a model; nothing is imported."""
    own = _is_own_map(name) and not name.startswith("reinit:")  # which is how a model's weights are drawn anew
    return _find_name(base_name(name)) is not None or own


def base_name(name: str) -> str:
    """Cut the options off a map's name."""
    return name.split(":", 1)[0]


def copies(name: str) -> int:
    """Count the features of a map for each number of a text, about: one for each head."""
    recipe = None if _is_own_map(name) else named_recipe(name)
    return recipe.heads if isinstance(recipe, RandomAttention | LinearAttention) else 1


def split_names(text: str) -> tuple[str, ...]:
    """Split names by commas; options of a name have commas too, but are no names of maps."""
    names: list[str] = []
    for part in (piece.strip() for piece in text.split(",") if piece.strip()):
        if names and ":" in names[-1] and _find_name(base_name(part)) is None and not _is_own_map(part):
            names[-1] += f",{part}"
        else:
            names.append(part)
    return tuple(names)


def named_recipe(name: str, *, depth: int | None = None, activation: str = "relu", temperature: float = 1.0) -> Recipe:
    """Make the recipe of a map, without weights; what has no meaning for a map is an error."""
    base, _, text = name.partition(":")
    entry = _find_name(base)
    if entry is None:
        near = get_close_matches(base, [*MAPS, *(f"{score}-raf" for score in SCORES)], 1)
        meant = f"did you mean {near[0]!r}? Else " if near else ""
        raise InputError(
            f"map={name!r} is not known; {meant}use one of: {', '.join(MAPS)}, with options as in raf:heads=4,causal, "
            "or a map of your own as module:function",
            argument="map",
        )
    if name.endswith(":"):
        raise InputError(f"map={name!r} has no options after the colon; leave it out", argument="map")
    make: Callable[..., Recipe] = load_home(entry.recipe)
    options = {**entry.usual, **entry.fixed, **_options(name, text, make, entry.fixed)}
    for key, value, unless in (
        ("depth", depth, None),
        ("activation", activation, "relu"),
        ("temperature", temperature, 1.0),
    ):
        if value != unless:
            if key not in _known(make) or key in entry.fixed:
                owners = [each for each, own in MAPS.items() if key in _known(load_home(own.recipe)) - own.fixed.keys()]
                raise InputError(
                    f"{key}={value} has no meaning for map={name!r}; it belongs to {', '.join(owners)}", argument=key
                )
            if key in text.replace("=", ",").split(","):
                raise InputError(f"{key} is given twice: in map={name!r}, and as {value}", argument=key)
            options[key] = value
    return make(**options)


def _find_name(base: str) -> MapName | None:
    """Find what a name without options stands for; None where there is no such name."""
    score = base.removesuffix("-raf")
    if base not in MAPS and score != base and score in SCORES:
        return MapName(ATTENTION, f"attention with {score} scores", fixed={"score": score})
    return MAPS.get(base)


def _known(make: Callable[..., Recipe]) -> dict[str, Any]:
    """Find the options that a name may have, with their types; sizes of texts come from elsewhere."""
    hints = get_type_hints(make)
    return {f.name: hints[f.name] for f in fields(make) if f.name != "d"}  # pyright: ignore[reportArgumentType]


def _options(name: str, text: str, make: Callable[..., Recipe], fixed: Mapping[str, Any]) -> dict[str, Any]:
    known = _known(make)
    given: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        read = _value(name, key, value if equals else "true", known[key]) if key in known else None
        if key not in known or (key in fixed and fixed[key] != read):  # what the name says already may be said again
            free = [each for each in known if each not in fixed]
            raise InputError(
                f"map={name!r} has the option {key!r}, which is not known; use: {', '.join(free)}",
                argument="map",
            )
        if key in given:
            raise InputError(f"map={name!r} has the option {key!r} twice", argument="map")
        given[key] = read
    return given


def _value(name: str, key: str, text: str, hint: Any) -> Any:
    if hint is bool:
        if text not in ("true", "false"):
            raise InputError(f"map={name!r}: {key} is true or false, got {text!r}", argument="map")
        return text == "true"
    if hint is str:
        return text
    try:
        return float(text) if hint is float else int(text)
    except ValueError:
        kind = "a number" if hint is float else "a whole number"
        raise InputError(f"map={name!r}: {key} must be {kind}, got {text!r}", argument="map") from None


def _no_options(name: str, depth: int | None = None, activation: str = "relu", temperature: float = 1.0) -> None:
    if depth is not None or activation != "relu" or temperature != 1.0:
        raise InputError(
            f"depth, activation and temperature have no meaning for map={name!r}, which is your own", argument="map"
        )


def _is_own_map(name: str) -> bool:
    return own_code.is_spec(name) and _find_name(base_name(name)) is None


def _own_code(name: str) -> tuple[str, str] | None:
    """Find which code of one's own a map's name asks for, as (kind, MODULE:NAME): the map itself, or its score."""
    if _is_own_map(name):
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


def own_map(name: str, n: int, d: int, seed: int) -> FeatureMap:
    """Make a map of one's own for texts of n tokens and d coordinates; a map, or any function of a text."""
    check_allowed(name)
    make = own_code.load_own(name, "map")
    if not callable(make):
        module, _, function = name.partition(":")
        raise InputError(f"{module} has no function {function!r} that could make a map", argument="map")
    try:
        made = make(n=n, d=d, seed=seed)
    except Exception as error:  # a user's function may raise anything
        message = f"{name} fails when called with n={n}, d={d}, seed={seed}: {one_line(error)}"
        raise InputError(message, argument="map") from error
    return as_map(made)


def revision_of_map(name: str) -> str:
    """Hash the source of the code of one's own that a map's name asks for, so that results of other code are not taken
    for this one's. Nothing is run."""
    asked = _own_code(name)
    return own_code.revision_of(asked[1] if asked else name)
