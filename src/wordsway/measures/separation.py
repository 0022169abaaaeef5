"""Separation of words over independent draws of a map's weights: which differences are more than luck of the draw.

Every word is measured on every draw, so words are compared within draws: a draw on which all words are large says
nothing about their order. The model is x[word, draw] = word + draw + rest, a randomized block design, and the intervals
are Tukey's: all differences between words lie within their intervals together with probability `LEVEL`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from wordsway.measures.ranks import LEVEL


@dataclass(frozen=True)
class Separation:
    """The half-width of the interval of every difference between two words' means; `freedom` is the number of degrees
    of freedom of what is left when words and draws are accounted for. Two words are separated where their means differ
    by more than `margin`."""

    margin: float
    freedom: int


def separation(values: Sequence[Sequence[float]]) -> Separation | None:
    """Find the separation of some words, each with a value for each draw; None for one word or one draw."""
    words, draws = len(values), len(values[0])
    if words < 2 or draws < 2:
        return None
    means = [math.fsum(row) / draws for row in values]
    blocks = [math.fsum(row[k] for row in values) / words for k in range(draws)]
    overall = math.fsum(means) / words
    rest = math.fsum(
        (value - mean - block + overall) ** 2
        for row, mean in zip(values, means, strict=True)
        for value, block in zip(row, blocks, strict=True)
    )
    freedom = (words - 1) * (draws - 1)
    quantile = studentized_range(LEVEL, words, freedom)
    return Separation(quantile * math.sqrt(rest / freedom / draws), freedom)


@lru_cache(maxsize=256)
def studentized_range(level: float, words: int, freedom: int) -> float:
    """The quantile of the range of `words` standard normal numbers over an independent estimate of their standard
    deviation with `freedom` degrees of freedom. SciPy has it too, but loading scipy.stats takes longer than measuring a
    short text."""
    nodes, shares = _gauss_legendre(160)
    off = 9 / math.sqrt(2 * freedom)  # the estimate is within 9 of its own standard deviations
    low, high = max(0.0, 1 - off), 1 + off
    s, z = low + (high - low) * nodes, -9 + 18 * nodes
    half = freedom / 2
    log_density = math.log(2) + half * math.log(half) - math.lgamma(half) + (freedom - 1) * s.log() - half * s.square()
    of_s = (high - low) * shares * log_density.exp()
    of_z = 18 * shares * words * torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    below, above = 0.0, 100.0 * words
    for _ in range(60):
        middle = 0.5 * (below + above)
        within = torch.special.ndtr(z) - torch.special.ndtr(z - middle * s[:, None])
        reached = float(of_s @ (within ** (words - 1) @ of_z))
        below, above = (middle, above) if reached < level else (below, middle)
    return above


def _gauss_legendre(count: int) -> tuple[Tensor, Tensor]:
    """Nodes in [0, 1] and weights, from the eigenvectors of the Jacobi matrix."""
    k = torch.arange(1, count, dtype=torch.float64)
    beside = k / (4 * k.square() - 1).sqrt()
    values, vectors = torch.linalg.eigh(torch.diag(beside, 1) + torch.diag(beside, -1))
    return 0.5 * (values + 1), vectors[0].square()
