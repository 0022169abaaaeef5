"""Separation of words over independent draws of a map's weights: which differences are more than luck of the draw.

Every word is measured on every draw, so words are compared within draws: a draw on which all words are large says
nothing about their order. The model is x[word, draw] = word + draw + rest, a randomized block design, and the intervals
are Tukey's: all differences between words lie within their intervals together with probability `LEVEL`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95  # probability with which all intervals of one text and map hold together


@dataclass(frozen=True)
class Separation:
    """The half-width of the interval of every difference between two words' means; `freedom` is the number of degrees
    of freedom of what is left when words and draws are accounted for. Two words are separated where their means differ
    by more than `margin`."""

    margin: float
    freedom: int

    def above(self, first: float, second: float) -> bool:
        """Whether the first mean is separated from the second and above it."""
        return first - second > self.margin


def separation(values: Sequence[Sequence[float]]) -> Separation | None:
    """Find the separation of some words, each with a value for each draw; None for one word or one draw."""
    words, draws = len(values), len(values[0])
    if words < 2 or draws < 2:
        return None
    from scipy.stats import studentized_range

    means = [math.fsum(row) / draws for row in values]
    blocks = [math.fsum(row[k] for row in values) / words for k in range(draws)]
    overall = math.fsum(means) / words
    rest = math.fsum(
        (value - mean - block + overall) ** 2
        for row, mean in zip(values, means, strict=True)
        for value, block in zip(row, blocks, strict=True)
    )
    freedom = (words - 1) * (draws - 1)
    quantile = float(studentized_range.ppf(LEVEL, words, freedom))
    return Separation(quantile * math.sqrt(rest / freedom / draws), freedom)
