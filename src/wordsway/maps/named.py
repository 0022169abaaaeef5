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
    if name not in NAMES:
        raise InputError(f"map={name!r} is not known; use one of: {', '.join(NAMES)}")
    if depth is not None and name != "drf":
        raise InputError(f"depth={depth} has no meaning for map={name!r}; it belongs to drf")
    if name in ("raf", "relu-raf"):
        if activation != "relu":
            raise InputError(f"activation={activation!r} has no meaning for map={name!r}; it belongs to rf and drf")
        score = "softmax" if name == "raf" else "relu"
        return RandomAttention(score, temperature).sample(d=d, n=n, seed=seed)
    if temperature != 1.0:
        raise InputError(f"temperature={temperature} has no meaning for map={name!r}; it belongs to raf")
    layers = 1 if name == "rf" else (2 if depth is None else depth)
    return RandomFeatures(layers, activation=activation).sample(n=n, d=d, seed=seed, device=device)
