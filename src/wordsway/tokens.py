"""Texts as n x d embeddings: checking, the paper's row normalisation, synthetic rows.

Index conventions: n tokens, d coordinates; a text is X of shape (n, d), a row is a token.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.errors import InputError
from wordsway.memory import require
from wordsway.seeds import normal


def as_text(X: Any, name: str = "X") -> Float[Tensor, "n d"]:
    """X as a float64 tensor on the CPU, or an InputError that says what is wrong with it."""
    try:
        tensor = torch.as_tensor(X)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be an (n, d) array of numbers, got {type(X).__name__}: {error}") from None
    if tensor.dim() != 2:
        raise InputError(f"{name} must have shape (n, d), got shape {tuple(tensor.shape)}")
    if tensor.shape[0] < 1 or tensor.shape[1] < 1:
        raise InputError(f"{name} is empty: shape {tuple(tensor.shape)}; it needs at least one row and one column")
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(f"{name} must hold real numbers, got dtype {tensor.dtype}")
    tensor = tensor.detach().to("cpu", torch.float64)
    bad = ~torch.isfinite(tensor)
    if bad.any():
        row, column = (int(k) for k in bad.nonzero()[0])
        raise InputError(
            f"{name} has {int(bad.sum())} entries that are NaN or infinite, the first at row {row}, column {column}"
        )
    zero = (tensor == 0).all(1)
    if zero.any():
        raise InputError(f"{name} has a zero row (row {int(zero.nonzero()[0])}); every token needs a direction")
    return tensor


def normalize_rows(X: Any) -> Float[Tensor, "n d"]:
    """Rescale every row to norm sqrt(d), as the paper assumes; keeps a tensor's dtype and device."""
    text = as_text(X)
    # Rows are scaled by their largest entry first: the norm of a row of tiny numbers must not underflow.
    text = text / text.abs().amax(1, keepdim=True)
    text = text * (math.sqrt(text.shape[1]) / text.norm(dim=1, keepdim=True))
    if isinstance(X, Tensor) and X.is_floating_point():
        return text.to(X.device, X.dtype)
    return text


def synthetic_tokens(n: int, d: int, seed: int = 0) -> Float[Tensor, "n d"]:
    """n independent Gaussian rows, each rescaled to norm sqrt(d); float64."""
    check_size(n, "n")
    check_size(d, "d")
    require(32.0 * n * d, f"a synthetic text of {n} x {d}", "use fewer tokens or coordinates")
    return normalize_rows(normal((n, d), seed, "synthetic_tokens", dtype=torch.float64))


def check_size(value: Any, name: str, least: int = 1) -> int:
    """`value` as a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def check_tokens(tokens: Sequence[int], n: int) -> tuple[int, ...]:
    """Distinct token indices in 0..n-1; negative indices count from the end."""
    found = []
    for token in tokens:
        if isinstance(token, bool) or not isinstance(token, int):
            raise InputError(f"a token must be a whole number, got {token!r}")
        if not -n <= token < n:
            raise InputError(f"token {token} is out of range: the text has {n} tokens, so use 0 to {n - 1}")
        found.append(token % n)
    if not found:
        raise InputError("no token given; name at least one")
    if len(set(found)) != len(found):
        raise InputError(f"a token is named twice in {list(tokens)}")
    return tuple(found)
