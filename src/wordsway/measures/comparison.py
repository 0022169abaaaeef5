"""The public function `compare_results`: results of two or more models, maps or settings side by side, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from wordsway import __version__
from wordsway.support.errors import InputError
from wordsway.support.plotting import paired_bars
from wordsway.support.result import Result


@dataclass(frozen=True)
class ComparedRow:
    """One row that all results have: what tells it apart (`key`), the value of each result (None where there is none),
    and the difference of the last from the first. They tie where that is no more than the search varies."""

    key: dict[str, Any]
    values: tuple[float | None, ...]
    difference: float | None
    tied: bool | None


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Results side by side. `names` are what is compared, `column` the number; `tie` is the relative difference up to
    which two values tie: the larger of the searches' own spreads. `only` counts the rows that a result has and not all
    others."""

    format: ClassVar[str] = "wordsway.comparison/1"

    names: tuple[str, ...]
    kind: str
    column: str
    compared_rows: tuple[ComparedRow, ...]
    tie: float
    only: tuple[int, ...]
    version: str = __version__
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say how many rows differ."""
        known = [row for row in self.compared_rows if row.difference is not None]
        ties = sum(bool(row.tied) for row in known)
        return f"{' and '.join(self.names)}, {self.column}: {len(self.compared_rows)} rows, {ties} of {len(known)} tie"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row for each that all results have."""
        return [
            {
                **row.key,
                **dict(zip(self.names, row.values, strict=True)),
                "difference": row.difference,
                "tied": row.tied,
            }
            for row in self.compared_rows
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw bars side by side, the largest difference first. Returns the axes."""
        ordered = sorted(self.compared_rows, key=lambda row: -abs(row.difference or 0.0))
        labels = [_label(row.key) for row in ordered]
        series = {name: [row.values[k] for row in ordered] for k, name in enumerate(self.names)}
        return paired_bars(ax, labels, series, self.column, f"{' and '.join(self.names)}: {self.column}")


def compare_results(results: Sequence[Result], names: Sequence[str] = (), column: str | None = None) -> Comparison:
    """Compare results of one kind, row by row: words by their numbers and letters, layers by theirs. `names` are how
    they are called (first, second, ... unless given), `column` the number of their tables that is compared."""
    if len(results) < 2:
        raise InputError("a comparison needs two results or more", argument="results")
    kinds = {type(result) for result in results}
    if len(kinds) > 1:
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(f"results of one kind are compared, not {listed}", argument="results")
    (kind,) = kinds
    if kind.compared is None:
        raise InputError(f"results of the kind {kind.__name__} have no rows that two of them share", argument="results")
    called = _names(results, names)
    keys, usual = results[0].compared or kind.compared
    chosen = column or usual
    tables = [_by_key(result, keys, chosen) for result in results]
    shared = [key for key in tables[0] if all(key in table for table in tables[1:])]
    if not shared:
        raise InputError("the results have no row in common: are they about one text?", argument="results")
    tie = max(float(getattr(result, "spread", 0.0)) if _has_spread(result) else 0.0 for result in results)
    rows = tuple(_row(dict(zip(keys, key, strict=True)), [table[key] for table in tables], tie) for key in shared)
    return Comparison(called, kind.__name__, chosen, rows, tie, tuple(len(table) - len(shared) for table in tables))


def _has_spread(result: Result) -> bool:
    return isinstance(getattr(result, "spread", None), float)


def _names(results: Sequence[Result], names: Sequence[str]) -> tuple[str, ...]:
    usual = ("first", "second", "third")
    made = tuple(names) or tuple(usual[k] if k < 3 else f"result {k + 1}" for k in range(len(results)))
    if len(made) != len(results) or len(set(made)) < len(made):
        raise InputError(f"names must be one for each result, and differ, got {list(made)}", argument="names")
    reserved = {"difference", "tied", *(results[0].compared or ((), ""))[0]}
    return tuple(f"{name} (value)" if name in reserved else name for name in made)


def _by_key(result: Result, keys: tuple[str, ...], column: str) -> dict[tuple[Any, ...], float | None]:
    rows = result.records()
    if rows and column not in rows[0]:
        known = ", ".join(name for name in rows[0] if name not in keys)
        raise InputError(f"there is no column {column!r}; the results have: {known}", argument="column")
    found: dict[tuple[Any, ...], float | None] = {}
    for row in rows:
        value = row[column]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"the column {column!r} has no numbers, but {value!r}", argument="column")
        found[tuple(row.get(key) for key in keys)] = None if value is None else float(value)
    return found


def _row(key: dict[str, Any], values: Sequence[float | None], tie: float) -> ComparedRow:
    first, last = values[0], values[-1]
    if first is None or last is None:
        return ComparedRow(key, tuple(values), None, None)
    return ComparedRow(key, tuple(values), last - first, abs(last - first) <= tie * max(abs(first), abs(last)))


def _label(key: dict[str, Any]) -> str:
    word = key.get("text", key.get("word_text"))
    if word is None:
        return ", ".join(f"{name} {value}" for name, value in key.items())
    rest = ", ".join(str(value) for name, value in key.items() if name not in ("text", "word_text", "word"))
    return f"{word} (#{key.get('word')})" + (f", {rest}" if rest else "")
