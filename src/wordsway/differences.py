"""Two runs side by side: the same cells, how far their means differ, with 95% intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsway.cells.recipes import KINDS
from wordsway.claims import Estimate, mean_interval
from wordsway.errors import InputError
from wordsway.tables import Table

Row = Mapping[str, Any]
_WITHIN = ("training", "objective", "penalty", "layer")  # what tells the rows of one cell apart
_FIRST = {
    "sensitivity": "lower",
    "flips": "err",
    "layers": "attracting",
    "attention": "largest_change",
    "prompts": "kl",
}


@dataclass(frozen=True)
class Difference:
    """The trials of one cell in both runs: means of a column, second minus first, and its interval (by pairs where both
    have the same trials, else Welch's)."""

    cell: dict[str, Any]
    column: str
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    trials: tuple[int, int]
    paired: bool


@dataclass(frozen=True)
class Differences:
    """`settings` are values that all of one run has and none of the other: they are what the two are compared for.
    `only` counts cells that one run has and the other has not."""

    cells: tuple[Difference, ...]
    settings: dict[str, tuple[Any, Any]]
    only: tuple[int, int]
    equal: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_tables(first: Table, second: Table, column: str | None = None) -> Differences:
    """Match the cells of two tables by all that identifies them but seed and trial, and compare a column's means."""
    if not first.rows or not second.rows:
        raise InputError("one of the runs has no results yet, so there is nothing to compare")
    names = ["study", "panel", *_identity([*first.rows, *second.rows])]
    settings = {}
    for name in [*names, "seed"]:
        values = [{repr(row.get(name)) for row in table.rows} for table in (first, second)]
        if all(len(each) == 1 for each in values) and values[0] != values[1]:
            settings[name] = (first.rows[0].get(name), second.rows[0].get(name))
    names = [name for name in names if name not in settings]
    groups = [_groups(table.rows, names, column) for table in (first, second)]
    shared = [key for key in groups[0] if key in groups[1]]
    if not shared:
        raise InputError("the two runs have no cell in common")
    varied = _telling(names, [key[0] for key in shared])
    found = []
    for key in shared:
        values, name = key
        found.append(_difference({names[k]: values[k] for k in varied}, name, groups[0][key], groups[1][key]))
    only = (len(groups[0]) - len(shared), len(groups[1]) - len(shared))
    return Differences(tuple(found), settings, only, first.numbers() == second.numbers())


def cell_means(table: Table, column: str | None = None) -> list[tuple[dict[str, Any], str, Estimate, int]]:
    """For every cell: what tells it from the others, a column's name, its mean over trials, and their number."""
    if not table.rows:
        return []
    names = ["study", "panel", *_identity(table.rows)]
    groups = _groups(table.rows, names, column)
    varied = _telling(names, [key[0] for key in groups])
    return [
        ({names[k]: values[k] for k in varied}, name, mean_interval(list(trials.values())), len(trials))
        for (values, name), trials in groups.items()
    ]


def _identity(rows: Iterable[Row]) -> list[str]:
    """Columns that say which cell a row belongs to."""
    fields = {name for kind in KINDS.values() for name in kind.__dataclass_fields__} - {"trial", "seed"}
    return [n for n in dict.fromkeys(n for row in rows for n in row) if n in fields or n in (*_WITHIN, "measure")]


def _telling(names: Sequence[str], values: Sequence[Sequence[Any]]) -> list[int]:
    """Which columns tell cells apart: those of several values. Whole texts do not fit into a table."""
    several = [k for k in range(len(names)) if len({repr(each[k]) for each in values}) > 1]
    return [k for k in several if not any(isinstance(each[k], str) and len(each[k]) > 40 for each in values)]


def _groups(rows: Iterable[Row], names: Sequence[str], column: str | None) -> dict[tuple[Any, str], dict[Any, float]]:
    """By cell and column, the value of every trial."""
    found: dict[tuple[Any, str], dict[Any, float]] = {}
    for row in rows:
        name = column or _FIRST[row["measure"]]
        if isinstance(row.get(name), int | float) and not isinstance(row.get(name), bool):
            identity = tuple(tuple(v) if isinstance(v := row.get(each), list) else v for each in names)
            found.setdefault((identity, name), {})[row["trial"]] = float(row[name])
    if not found:
        raise InputError(f"no row has a number in the column {column!r}")
    return found


def _difference(
    cell: dict[str, Any], column: str, first: Mapping[Any, float], second: Mapping[Any, float]
) -> Difference:
    a, b = mean_interval(list(first.values())), mean_interval(list(second.values()))
    paired = first.keys() == second.keys()
    low: float | None
    high: float | None
    if paired:
        gap = mean_interval([second[trial] - first[trial] for trial in first])
        low, high = gap.low, gap.high
    else:
        low, high = _welch(list(first.values()), list(second.values()))
    return Difference(cell, column, a.value, b.value, b.value - a.value, low, high, (len(first), len(second)), paired)


def _welch(first: Sequence[float], second: Sequence[float]) -> tuple[float | None, float | None]:
    if len(first) < 2 or len(second) < 2:
        return None, None
    from scipy.stats import ttest_ind

    result: Any = ttest_ind(second, first, equal_var=False)
    interval = result.confidence_interval(0.95)
    if math.isnan(interval.low):  # no spread at all
        gap = sum(second) / len(second) - sum(first) / len(first)
        return gap, gap
    return float(interval.low), float(interval.high)
