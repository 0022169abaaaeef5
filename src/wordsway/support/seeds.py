"""One root seed, an independent generator for every key: no global random state.

Numbers are drawn on the CPU, so that a device does not change them, from a generator that is keyed by
(seed, *names): asking for one stream neither moves nor depends on any other.
"""

import hashlib

import torch
from torch import Tensor

Key = tuple[int | str, ...]


def stream(*key: int | str) -> int:
    """A 63-bit seed for `key`; integers and strings are told apart, so (1,) and ("1",) differ."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(*key: int | str) -> torch.Generator:
    """A CPU generator that belongs to `key` alone."""
    return torch.Generator().manual_seed(stream(*key))


def normal(shape: tuple[int, ...], *key: int | str, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal numbers on the CPU, always the same for the same key, shape and dtype."""
    return torch.randn(shape, generator=generator(*key), dtype=dtype)
