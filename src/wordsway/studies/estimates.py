"""Numbers with their 95% intervals: means, shares, exponents."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval, where there is one."""

    value: float
    low: float | None
    high: float | None


def mean_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation; 0 for a single value."""
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))


def mean_interval(values: Sequence[float], together: int = 1) -> Estimate:
    """A mean with its 95% interval from Student's t; without one for a single value. As one of several means, it has
    an interval that holds for all of them `together` (Bonferroni's)."""
    mean, sd = mean_sd(values)
    if len(values) < 2:
        return Estimate(mean, None, None)
    from scipy.stats import t

    half = float(t.ppf(1 - 0.025 / together, len(values) - 1)) * sd / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def share_interval(share: float, trials: int) -> Estimate:
    """Clopper and Pearson's interval, with as many independent draws as there are trials."""
    from scipy.stats import beta

    hits = share * trials
    low = 0.0 if hits <= 0 else float(beta.ppf(0.025, hits, trials - hits + 1))
    high = 1.0 if hits >= trials else float(beta.ppf(0.975, hits + 1, trials - hits))
    return Estimate(share, low, high)


def fit_exponent(n: Sequence[float], values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The slope of log(values) against log(n), with its 95% interval from Student's t; None where it is not
    determined."""
    if len(set(n)) < 2 or min(values) <= 0:
        return None, None, None
    from scipy.stats import linregress, t

    fit: Any = linregress([math.log(k) for k in n], [math.log(v) for v in values])
    if len(n) < 3:
        return float(fit.slope), None, None
    half = float(t.ppf(0.975, len(n) - 2)) * float(fit.stderr)
    return float(fit.slope), float(fit.slope) - half, float(fit.slope) + half
