"""The paper's maps by the names that the command line uses."""

import torch

from wordsway.errors import InputError
from wordsway.maps.base import FeatureMap
from wordsway.maps.random_attention import RandomAttention
from wordsway.maps.random_features import RandomFeatures

NAMES = ("rf", "drf", "raf", "relu-raf")


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
    """RF, deep RF (depth 2 unless given), softmax RAF or ReLU-RAF, with weights drawn for texts of n tokens."""
    recipe = named_recipe(name, depth=depth, activation=activation, temperature=temperature)
    if isinstance(recipe, RandomAttention):
        return recipe.sample(d=d, n=n, seed=seed)
    return recipe.sample(n=n, d=d, seed=seed, device=device)


def named_recipe(
    name: str, *, depth: int | None = None, activation: str = "relu", temperature: float = 1.0
) -> RandomAttention | RandomFeatures:
    """The same without weights; what has no meaning for a map is an error."""
    if name not in NAMES:
        raise InputError(f"map={name!r} is not known; use one of: {', '.join(NAMES)}")
    if depth is not None and name != "drf":
        raise InputError(f"depth={depth} has no meaning for map={name!r}; it belongs to drf")
    if name in ("raf", "relu-raf"):
        if activation != "relu":
            raise InputError(f"activation={activation!r} has no meaning for map={name!r}; it belongs to rf and drf")
        return RandomAttention("softmax" if name == "raf" else "relu", temperature)
    if temperature != 1.0:
        raise InputError(f"temperature={temperature} has no meaning for map={name!r}; it belongs to raf")
    return RandomFeatures(1 if name == "rf" else (2 if depth is None else depth), activation=activation)
