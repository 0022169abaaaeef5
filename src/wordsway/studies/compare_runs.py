"""Two runs side by side: the same cells, how far their means differ, with 95% intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from wordsway.studies.cells.kinds import kind_of
from wordsway.studies.estimates import Estimate, mean_interval
from wordsway.studies.run.tables import Table
from wordsway.support.errors import InputError
from wordsway.support.plotting import MOST_BARS, dots
from wordsway.support.result import Result

Row = Mapping[str, Any]


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


@dataclass(frozen=True, repr=False)
class Differences(Result):
    """Two runs side by side, cell by cell. `settings` are values that all of one run has and none of the other: they
    are what the two are compared for. `only` counts cells that one run has and the other has not."""

    format: ClassVar[str] = "wordsway.differences/1"

    cells: tuple[Difference, ...]
    settings: dict[str, tuple[Any, Any]]
    only: tuple[int, int]
    equal: bool
    made: dict[str, Any] | None = None

    @property
    def apart(self) -> int:
        """The number of cells whose interval of the difference does not hold 0."""
        return sum(each.low is not None and each.high is not None and each.low * each.high > 0 for each in self.cells)

    def summary(self) -> str:
        """Say how many cells differ."""
        return f"{len(self.cells)} cells in both runs; in {self.apart} the interval of the difference does not hold 0"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a cell."""
        names = ("column", "first", "second", "difference", "low", "high", "paired")
        return [
            {**each.cell, **{name: getattr(each, name) for name in names}}
            | {"first_trials": each.trials[0], "second_trials": each.trials[1]}
            for each in self.cells
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw the difference of each cell with its interval, the largest first. Returns the axes."""
        ordered = sorted(self.cells, key=lambda each: -abs(each.difference))[:MOST_BARS]
        labels = [_label(each.cell) for each in ordered]
        spans = [None if each.low is None or each.high is None else (each.low, each.high) for each in ordered]
        more = "" if len(ordered) == len(self.cells) else f" ({len(ordered)} of {len(self.cells)} cells shown)"
        label = f"{self.cells[0].column}, second - first, with 95% intervals{more}"
        title = f"The 95% interval leaves out 0 in {self.apart} of {len(self.cells)} cells"
        return dots(ax, labels, [each.difference for each in ordered], spans, 0.0, label, title)


def _label(cell: Mapping[str, Any]) -> str:
    """Name a cell in a picture."""
    own = [f"{name} {value}" for name, value in cell.items() if name not in ("study", "panel")]
    return ", ".join([*(str(cell[name]) for name in ("study", "panel") if name in cell), *own])


def compare_tables(first: Table, second: Table, column: str | None = None) -> Differences:
    """Match cells by all that identifies them but seed and trial, and compare a column's means. Panels that both have
    are compared one by one; where they have none in common, everything with everything."""
    if not first.rows or not second.rows:
        raise InputError("one of the runs has no results yet, so there is nothing to compare")
    tables = (first.rows, second.rows)
    panels = [list(dict.fromkeys((row["study"], row["panel"]) for row in rows)) for rows in tables]
    shared = [panel for panel in panels[0] if panel in panels[1]]
    parts = [[[r for r in rows if (r["study"], r["panel"]) == panel] for rows in tables] for panel in shared]
    found: list[Difference] = []
    settings: dict[str, tuple[Any, Any]] = {}
    counts, known = [0, 0], 0
    for one, other in parts or [list(tables)]:
        where = {"study": one[0]["study"], "panel": one[0]["panel"]} if shared else {}
        apart, groups = _matched(one, other, column)
        settings |= apart
        cells, values = _shown([key for key in groups[0] if key in groups[1]])
        for key, cell in zip(values, cells, strict=True):
            found.append(_difference({**where, **cell}, key[1], groups[0][key], groups[1][key]))
        known += len(values)
        counts = [count + len(group) for count, group in zip(counts, groups, strict=True)]
    if not found:
        raise InputError("the two runs have no cell in common")
    for k, rows in enumerate(tables):
        outside = [row for row in rows if shared and (row["study"], row["panel"]) not in shared]
        counts[k] += len(_groups(outside, ["study", "panel", *_identity(outside)], None))
    only = (counts[0] - known, counts[1] - known)
    return Differences(tuple(found), settings, only, first.numbers() == second.numbers())


Groups = dict[tuple[tuple[tuple[str, Any], ...], str], dict[Any, float]]  # by cell and column, each trial's value


def _matched(
    first: Sequence[Row], second: Sequence[Row], column: str | None
) -> tuple[dict[str, tuple[Any, Any]], tuple[Groups, Groups]]:
    """Find what all of one side has and none of the other, and both sides' values by what else tells cells apart."""
    names = _identity([*first, *second])
    settings = {}
    for name in [*names, "seed"]:
        values = [{repr(row.get(name)) for row in rows} for rows in (first, second)]
        if all(len(each) == 1 for each in values) and values[0] != values[1]:
            settings[name] = (first[0].get(name), second[0].get(name))
    names = [name for name in names if name not in settings]
    return settings, (_groups(first, names, column), _groups(second, names, column))


def _shown(keys: Sequence[tuple[tuple[tuple[str, Any], ...], str]]) -> tuple[list[dict[str, Any]], list[Any]]:
    """For each cell the values that tell it from the others. Whole texts do not fit into a table."""
    values: dict[str, list[Any]] = {}
    for identity, _ in keys:
        for name, value in identity:
            values.setdefault(name, []).append(value)
    several = {name for name, each in values.items() if len({repr(value) for value in each}) > 1}
    several -= {name for name, each in values.items() if any(isinstance(v, str) and len(v) > 40 for v in each)}
    return [{k: v for k, v in identity if k in several} for identity, _ in keys], list(keys)


def cell_means(table: Table, column: str | None = None) -> list[tuple[dict[str, Any], str, Estimate, int]]:
    """For every cell: what tells it from the others, a column's name, its mean over trials, and their number."""
    if not table.rows:
        return []
    groups = _groups(table.rows, ["study", "panel", *_identity(table.rows)], column)
    cells, keys = _shown(list(groups))
    return [
        (cell, key[1], mean_interval(list(groups[key].values())), len(groups[key]))
        for cell, key in zip(cells, keys, strict=True)
    ]


def _identity(rows: Iterable[Row]) -> list[str]:
    """Columns that say which cell a row belongs to: the fields of its kind of cell, and what tells its rows apart."""
    found: dict[str, None] = {}
    for measure in dict.fromkeys(row["measure"] for row in rows):
        kind = kind_of(measure)
        fields = kind.__dataclass_fields__
        found |= dict.fromkeys(["measure", *(name for name in fields if name not in ("trial", "seed"))])
        found |= dict.fromkeys(kind.within)
    return list(found)


def _groups(rows: Iterable[Row], names: Sequence[str], column: str | None) -> Groups:
    found: Groups = {}
    for row in rows:
        name = column or kind_of(row["measure"]).first
        if isinstance(row.get(name), int | float) and not isinstance(row.get(name), bool):
            values = ((each, tuple(v) if isinstance(v := row.get(each), list) else v) for each in names)
            found.setdefault((tuple(values), name), {})[row["trial"]] = float(row[name])
    if not found and column is not None:
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
