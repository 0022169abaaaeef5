"""Differences between two numbers of one row: their 95% intervals where draws are known, or what a search separates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordsway.measures.ranks import rank_ranges

LEVEL = 0.95  # probability with which the intervals of all rows of a comparison hold together


@dataclass(frozen=True)
class Measured:
    """A number of one row with what is known about it.

    A search knows the true value up to its bounds, `low` to `high`, and repeats its answer up to a relative `spread`
    (0 where that is not known). A mean has its `sd` over `count` independent draws, and `draws` with their seeds where
    the file has them. Where nothing is known (`known` is false), two numbers tie only where they are equal.
    """

    value: float
    low: float = -math.inf
    high: float = math.inf
    spread: float = 0.0
    sd: float | None = None
    count: int = 1
    draws: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()
    known: bool = True

    @property
    def averaged(self) -> bool:
        """Whether it is a mean of several draws."""
        return self.sd is not None and self.count > 1


def separated(first: Measured, second: Measured) -> bool:
    """Whether two numbers of searches differ: their bounds do not overlap, or they differ by more than a search
    varies."""
    if first.low > second.high or second.low > first.high:
        return True
    spread = max(first.spread, second.spread)
    largest = max(abs(first.value), abs(second.value))
    return spread > 0 and abs(first.value - second.value) > spread * largest


def paired(first: Measured, second: Measured) -> bool:
    """Whether both have the same draws, so that each can be subtracted from its own."""
    return len(first.draws) > 1 and first.seeds == second.seeds and len(first.draws) == len(second.draws)


def interval(first: Measured, second: Measured, rows: int) -> tuple[float, float] | None:
    """The interval of second minus first, wide enough that those of `rows` rows hold together (Bonferroni): by pairs
    where both have the same draws, else Welch's. None where one of them is no mean of several draws."""
    if not (first.averaged and second.averaged):
        return None
    if paired(first, second):
        apart = [b - a for a, b in zip(first.draws, second.draws, strict=True)]
        middle = math.fsum(apart) / len(apart)
        freedom = float(len(apart) - 1)
        error = math.sqrt(math.fsum((each - middle) ** 2 for each in apart) / freedom / len(apart))
    else:
        middle = second.value - first.value
        assert first.sd is not None and second.sd is not None
        shares = [each.sd**2 / each.count for each in (first, second) if each.sd is not None]
        error = math.sqrt(math.fsum(shares))
        counts = (first.count, second.count)
        rest = math.fsum(share**2 / (count - 1) for share, count in zip(shares, counts, strict=True))
        freedom = math.fsum(shares) ** 2 / rest if rest > 0 else float(min(counts) - 1)
    half = _student(1 - (1 - LEVEL) / (2 * rows), freedom) * error
    return middle - half, middle + half


def ranks_of(values: Sequence[Measured], smallest_first: bool) -> list[tuple[int, int]]:
    """Rank the numbers of one side, as (first possible rank, how many are possible); those that are not separated share
    ranks."""
    sign = -1 if smallest_first else 1

    def above(i: int, j: int) -> bool:
        return sign * (values[i].value - values[j].value) > 0 and separated(values[i], values[j])

    return rank_ranges(len(values), above)


def _student(level: float, freedom: float) -> float:
    """The quantile of Student's t; scipy.stats has it too, but takes long to load."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, level))
