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
from wordsway.maps.map_names import check_allowed, find_name, is_own_map, no_options
from wordsway.maps.transformer.random_transformer import RandomTransformer
from wordsway.support import own_code
from wordsway.support.errors import InputError, one_line
from wordsway.support.names import MAPS, SCORES
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
    if is_own_map(name):
        no_options(name, depth, activation, temperature)
        return own_map(name, n, d, seed)
    recipe = named_recipe(name, depth=depth, activation=activation, temperature=temperature)
    if isinstance(recipe, RandomFeatures):
        return recipe.sample(n=n, d=d, seed=seed, device=device)
    return recipe.sample(d=d, n=n, seed=seed)


def check_recipe(name: str, d: int | None = None, **options: Any) -> None:
    """Raise an InputError unless a map's recipe can be made with such options, for texts of d coordinates."""
    recipe = named_recipe(name, **options)
    if d is not None and not isinstance(recipe, RandomFeatures):
        recipe.check_width(d)


def copies(name: str) -> int:
    """Count the features of a map for each number of a text, about: one for each head."""
    recipe = None if is_own_map(name) else named_recipe(name)
    return recipe.heads if isinstance(recipe, RandomAttention | LinearAttention) else 1


def named_recipe(name: str, *, depth: int | None = None, activation: str = "relu", temperature: float = 1.0) -> Recipe:
    """Make the recipe of a map, without weights; what has no meaning for a map is an error."""
    base, _, text = name.partition(":")
    entry = find_name(base)
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
