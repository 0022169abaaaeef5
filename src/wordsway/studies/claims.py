"""Claims: a number that theory or a figure predicts, the number measured with its interval, and whether they agree.

A claim picks rows of a panel's table (`where`), takes a value of each (`of`, divided by the column `by` where given),
and makes one number of them:

exponent    slope of log value against log `over`
mean        of the values
smallest    the smallest of the means for each value of `over`
share       of the values that are below `below`
ratio       geometric mean of value / value of the row that pairs with it under `against`
difference  mean of value - value of the row that pairs with it under `against`

Intervals are 95%, over trials: what rows of one trial give is averaged first, as they share texts and weights. Then it
is Student's t, for shares Clopper and Pearson's. A claim holds if its interval lies within `at_least`
and `at_most`, does not if the interval lies outside; if the two overlap, or there are too few rows, it was not tested.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from wordsway.studies.estimates import Estimate, fit_exponent, mean_interval, share_interval
from wordsway.support.errors import StudyError

STATISTICS = ("exponent", "mean", "smallest", "share", "ratio", "difference")
HOLDS, FAILS, UNTESTED = "holds", "does not hold", "not tested"
Row = Mapping[str, Any]


def hint(name: str, known: Sequence[str]) -> str:
    """Suggest the closest known name, or list all."""
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


@dataclass(frozen=True)
class Claim:
    """See the module for what the fields mean. `each` makes a line of its own for every value of some columns; `pair`
    are the columns by which rows find their partners under `against`, which may name another panel."""

    says: str
    source: str
    panel: str
    statistic: str
    of: str = "lower"
    by: str | None = None
    over: str = "n"
    where: Mapping[str, Any] = field(default_factory=dict)
    against: Mapping[str, Any] = field(default_factory=dict)
    pair: tuple[str, ...] = ("n", "d", "trial")
    each: tuple[str, ...] = ()
    below: float = 0.5
    predicted: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            known = ", ".join(STATISTICS)
            raise StudyError(f"statistic={self.statistic!r} is not known; use one of: {known}", "statistic")
        if self.at_least is None and self.at_most is None:
            raise StudyError(f"the claim {self.says!r} can never fail: give at_least or at_most")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            message = f"at_least={self.at_least:g} is more than at_most={self.at_most:g}, so nothing can hold"
            raise StudyError(message, "at_least")
        if self.statistic in ("ratio", "difference") and not self.against:
            raise StudyError(f"the claim {self.says!r} needs against, the rows that its {self.statistic} is to")

    @staticmethod
    def make(table: Mapping[str, Any]) -> "Claim":
        """A claim from the keys of a study file, checked."""
        kinds = [f.name for f in fields(Claim)]
        for name in table:
            if name not in kinds:
                raise StudyError(f"a claim has the unknown key {name!r}; {hint(name, kinds)}", name)
        for name in ("says", "source", "panel", "statistic", "of", "by", "over"):
            if not isinstance(table.get(name, "" if name in ("of", "by", "over") else None), str):
                raise StudyError(f"{name} of a claim must be a string, in quotes, got {table.get(name)!r}", name)
        for name in ("where", "against"):
            if not isinstance(table.get(name, {}), Mapping):
                raise StudyError(
                    f"{name} of a claim must be a table such as {{ map = 'raf' }}, got {table[name]!r}", name
                )
            for column, wanted in table.get(name, {}).items():
                for end, value in wanted.items() if isinstance(wanted, Mapping) else ():
                    if end not in ("above", "below") or isinstance(value, bool) or not isinstance(value, int | float):
                        message = f"{column} of {name} takes {{ above = number, below = number }}, got {dict(wanted)}"
                        raise StudyError(message, name)
        for name in ("pair", "each"):
            listed = table.get(name, [])
            if not isinstance(listed, list | tuple) or not all(isinstance(item, str) for item in listed):
                raise StudyError(f"{name} of a claim must be a list of columns, got {listed!r}", name)
        for name in ("below", "predicted", "at_least", "at_most"):
            value = table.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise StudyError(f"{name} of a claim must be a number, got {value!r}", name)
        values: dict[str, Any] = {k: tuple(v) if k in ("pair", "each") else v for k, v in table.items()}
        return Claim(**values)

    def check_columns(self, numbers: Sequence[str], others: Sequence[str]) -> None:
        """Raise an error unless the columns that it is about are there."""
        known = [*numbers, *others]
        for key in ("of", "by", "over"):
            name = getattr(self, key)
            asked = key != "over" or self.statistic in ("exponent", "smallest")
            if name is not None and asked and name not in (numbers if key != "over" else known):
                raise StudyError(f"{key}={name!r} is no column of numbers; {hint(name, numbers)}", key)
        for key in ("where", "against", "each", "pair"):
            if key == "pair" and not self.against:
                continue
            for name in getattr(self, key):
                if name not in known:
                    raise StudyError(f"{key} names {name!r}, which is no column; {hint(name, known)}", key)

    def to_dict(self) -> dict[str, Any]:
        empty: tuple[Any, ...] = (None, {}, ())
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items() if v not in empty}


@dataclass(frozen=True)
class Verdict:
    """One line of the claims table. `low` and `high` are the interval of `measured`; `note` says what is missing."""

    study: str
    panel: str
    source: str
    says: str
    group: str
    predicted: float | None
    wanted: str
    measured: float | None
    low: float | None
    high: float | None
    rows: int
    verdict: str
    note: str = ""


def judge(study: str, claim: Claim, rows: Sequence[Row], missing: str = "") -> Iterator[Verdict]:
    """Verdicts on one claim, one for each group of rows; `missing` is why there may be none."""
    mine = [row for row in rows if row["panel"] == claim.panel]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in mine:
        if _fits(row, claim.where):
            groups.setdefault(tuple(row.get(name) for name in claim.each), []).append(row)
    for values, group in groups.items() or [((), [])]:
        names = ", ".join(f"{name}={value}" for name, value in zip(claim.each, values, strict=False))
        beside = {"panel": claim.panel, **dict(zip(claim.each, values, strict=False)), **claim.against}
        partners = [row for row in rows if _fits(row, {**claim.where, **beside})]
        found = _estimate(claim, group, partners)
        verdict, note = _decide(claim, found)
        if found is None:
            note = missing or ("no rows" if not group else "too few rows for this statistic")
        yield Verdict(
            study,
            claim.panel,
            claim.source,
            claim.says,
            names,
            claim.predicted,
            _wanted(claim),
            None if found is None else found.value,
            None if found is None else found.low,
            None if found is None else found.high,
            len(group),
            verdict,
            note,
        )


def _wanted(claim: Claim) -> str:
    low = "" if claim.at_least is None else f"at least {claim.at_least:g}"
    high = "" if claim.at_most is None else f"at most {claim.at_most:g}"
    return " and ".join(part for part in (low, high) if part)


def _decide(claim: Claim, found: Estimate | None) -> tuple[str, str]:
    if found is None:
        return UNTESTED, ""
    least = -math.inf if claim.at_least is None else claim.at_least
    most = math.inf if claim.at_most is None else claim.at_most
    low = found.value if found.low is None else found.low
    high = found.value if found.high is None else found.high
    if least <= low and high <= most:
        return HOLDS, "" if found.low is not None else "no interval: one trial"
    if high < least or low > most:
        return FAILS, "" if found.low is not None else "no interval: one trial"
    return UNTESTED, "the interval is too wide to decide"


def _fits(row: Row, where: Mapping[str, Any]) -> bool:
    """Whether a row has the values asked for: equal, one of a list, or {below = x} and {above = x}."""
    for name, wanted in where.items():
        value = row.get(name)
        if isinstance(wanted, Mapping):
            if not isinstance(value, int | float) or not wanted.get("above", -math.inf) < value < wanted.get(
                "below", math.inf
            ):
                return False
        elif value not in wanted if isinstance(wanted, list | tuple) else value != wanted:
            return False
    return True


def _value(claim: Claim, row: Row) -> float | None:
    value = row.get(claim.of)
    if value is not None and claim.by is not None:
        other = row.get(claim.by)
        value = None if not other else value / other
    return None if value is None else float(value)


def _estimate(claim: Claim, group: Sequence[Row], partners: Sequence[Row]) -> Estimate | None:
    known = [(row, value) for row in group if (value := _value(claim, row)) is not None]
    if not known:
        return None
    if claim.statistic == "exponent":
        return exponent_over_trials([(row["trial"], row[claim.over], value) for row, value in known])
    if claim.statistic == "mean":
        return _over_trials(known)
    if claim.statistic == "share":
        found = _over_trials([(row, float(value < claim.below)) for row, value in known])
        return share_interval(found.value, len({row["trial"] for row, _ in known}))
    if claim.statistic == "smallest":
        parts: dict[Any, list[tuple[Row, float]]] = {}
        for row, value in known:
            parts.setdefault(row.get(claim.over), []).append((row, value))
        return min((_over_trials(part) for part in parts.values()), key=lambda part: part.value)
    others = {
        tuple(row.get(name) for name in claim.pair): value
        for row in partners
        if (value := _value(claim, row)) is not None
    }
    pairs = [(row, value, others.get(tuple(row.get(name) for name in claim.pair))) for row, value in known]
    both = [(row, a, b) for row, a, b in pairs if b is not None]
    if not both:
        return None
    if claim.statistic == "difference":
        return _over_trials([(row, a - b) for row, a, b in both])
    if min(min(a, b) for _, a, b in both) <= 0:
        return None
    found = _over_trials([(row, math.log(a / b)) for row, a, b in both])
    ends = (None if end is None else math.exp(end) for end in (found.low, found.high))
    return Estimate(math.exp(found.value), *ends)


def _over_trials(known: Sequence[tuple[Row, float]]) -> Estimate:
    """The mean of the trials' means. Rows of one trial share its texts and weights, so only trials count as
    independent."""
    trials: dict[Any, list[float]] = {}
    for row, value in known:
        trials.setdefault(row["trial"], []).append(value)
    return mean_interval([math.fsum(part) / len(part) for part in trials.values()])


def exponent_over_trials(known: Sequence[tuple[Any, float, float]]) -> Estimate | None:
    """The mean of the trials' slopes; of a single trial, its slope with the interval of the fit."""
    slopes = []
    for trial in dict.fromkeys(trial for trial, _, _ in known):
        fit = fit_exponent([x for t, x, _ in known if t == trial], [y for t, _, y in known if t == trial])
        if fit[0] is None:
            return None
        slopes.append(Estimate(fit[0], fit[1], fit[2]))
    return slopes[0] if len(slopes) == 1 else mean_interval([slope.value for slope in slopes])
