"""Maps by name, as the command line and studies write them.

"raf" is a map; "raf:heads=4,causal" is the same with options of its recipe, each NAME=VALUE, or NAME alone for true;
"my_module:make" is a map of one's own (`own_maps`).
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

import torch

from wordsway.maps.attention.random_attention import RandomAttention
from wordsway.maps.base import FeatureMap
from wordsway.maps.features.random_features import RandomFeatures
from wordsway.maps.own_maps import is_own, own_map
from wordsway.maps.transformer.random_transformer import RandomTransformer
from wordsway.support.errors import InputError

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
