"""The result of `compare_results`: two or more models, maps or settings side by side, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from wordsway import __version__
from wordsway.measures.ranks import rank_name
from wordsway.measures.sides import Side
from wordsway.support.digits import count_of
from wordsway.support.errors import InputError
from wordsway.support.names import either
from wordsway.support.plotting import bar_panels
from wordsway.support.result import Result

_LONG = 60  # characters of a text in a title
WORD = ("word", "text", "word_text")  # what tells words apart; the rest of a row's key is its group
_COLUMNS = {"text": "word_text", "map": "subject"}  # of a row about a word, by their names in saved comparisons


@dataclass(frozen=True)
class ComparedRow:
    """One row that all results have: what tells it apart (`key`), the value of each result (None where there is none)
    and its rank there, as (first possible rank, how many are possible). Of two results with the same quantity there is
    the `difference` of the second from the first, with its interval (`low` to `high`) where draws are known. `tied`
    says that it may be noise: the interval holds 0, or the searches do not separate the two; None where nothing is
    known about the noise."""

    key: dict[str, Any]
    values: tuple[float | None, ...]
    ranks: tuple[tuple[int, int] | None, ...]
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    tied: bool | None = None


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Results side by side, each in its own units.

    `sides` say what each result is about and what its numbers are; `same` whether these are the same quantity, so that
    they have differences. `reading` says how ties were found. `text` is the text of all results, if it is one. `only`
    counts the rows that a result has and not all others, and `only_rows` names the first of them, or groups of them (a
    map, a radius) that it alone has; `only_unnamed` counts the rows that these leave out.
    """

    format: ClassVar[str] = "wordsway.comparison/2"

    sides: tuple[Side, ...]
    compared_rows: tuple[ComparedRow, ...]
    same: bool
    reading: str
    text: str | None
    only: tuple[int, ...]
    only_rows: tuple[tuple[str, ...], ...] = ()  # earlier files have none
    only_unnamed: tuple[int, ...] = ()  # nor these
    version: str = __version__
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say how many rows differ."""
        return f"{either(self.names, 'and')}: {self.finding}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple(side.name for side in self.sides)

    @property
    def finding(self) -> str:
        """The differences in a few words."""
        count, noun = len(self.compared_rows), self._noun
        known = [row for row in self.compared_rows if row.difference is not None]
        if not self.same or not known:
            return f"{count_of(count, noun)}, values and ranks side by side"
        if all(row.difference == 0 for row in known):
            return f"the two are equal in {count_of(len(known), noun)}"
        apart, ties = (sum(row.tied is tied for row in known) for tied in (False, True))
        if apart:
            return f"{apart} of {count_of(len(known), noun)} {'differs' if apart == 1 else 'differ'} beyond the noise"
        if ties == len(known):
            return f"no {noun} differs beyond the noise ({count_of(ties, noun)})"
        return f"{count_of(len(known), noun)}, {ties} equal; nothing is known about the noise of the others"

    @property
    def title(self) -> str:
        """The names of the results and their text."""
        text = " ".join((self.text or "").split())
        shown = text if len(text) <= _LONG else text[: _LONG - 3] + "..."
        return f"{either(self.names, 'and')} side by side" + (f" on \u201c{shown}\u201d" if shown else "")

    @property
    def ranked_by(self) -> str | None:
        """A sentence that says what ranks go by; None where there are no ranks."""
        if all(rank is None for rank in self.compared_rows[0].ranks):
            return None
        rules = [f"by {side.short}, the {side.first} first" for side in self.sides]
        if len(set(rules)) == 1:
            said = rules[0]
        else:
            said = "; ".join(f"of {side.name} {rule}" for side, rule in zip(self.sides, rules, strict=True))
        return f"rank: {said}. Words share ranks where another search may order them otherwise."

    @property
    def only_lines(self) -> list[str]:
        """Sentences that say which rows a result has and not all others."""
        named = self.only_rows or ((),) * len(self.only)
        unnamed = self.only_unnamed if self.only_rows else ()
        left = unnamed or [count - len(labels) for count, labels in zip(self.only, named, strict=True)]
        return [
            f"Only in {name}: {_listed(labels, rest)}."
            for name, count, labels, rest in zip(self.names, self.only, named, left, strict=True)
            if count
        ]

    @property
    def _noun(self) -> str:
        keys = self.compared_rows[0].key
        return "word" if set(keys) == {"word", "text"} else "row"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row for each that all results have, in the order of the first result's ranks. A column of
        numbers is called by its result and its quantity, as `sentiment: flips at`."""
        return [self._record(row) for row in self.compared_rows]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of numbers, one for each result."""
        return tuple(f"{side.name}: {side.short}" for side in self.sides)

    def _record(self, row: ComparedRow) -> dict[str, Any]:
        made = {(_COLUMNS.get(name, name) if "word" in row.key else name): value for name, value in row.key.items()}
        for name, column, value, rank in zip(self.names, self.columns, row.values, row.ranks, strict=True):
            if rank is not None:
                made[f"{name}: rank"] = rank_name(*rank)
            made[column] = value
        if self.same:
            made |= {"difference": row.difference, "low": row.low, "high": row.high, "tied": row.tied}
        return made

    def plot(self, ax: Any = None) -> Any:
        """Draw a panel for each result, with an axis of its own, and one for the differences, if there are any; rows
        are in the order of the table. `ax` may be as many axes as there are panels. Returns the first axes."""
        rows, panels = self.compared_rows, []
        for k, side in enumerate(self.sides):
            bars = [(row.values[k], _written(row.values[k], row.ranks[k], side.nothing)) for row in rows]
            panels.append((side.name, side.axis, bars))
        differences = [_drawn(row) for row in rows] if self.same else None
        axes = None if ax is None else list(ax) if hasattr(ax, "__len__") else [ax]
        wanted = len(panels) + (differences is not None)
        if axes is not None and len(axes) != wanted:
            raise InputError(f"plot needs {wanted} axes for {wanted} panels, got {len(axes)}", argument="ax")
        title = f"{self.title}\n{self.finding}" if self.same else self.title
        return bar_panels(axes, [label_of(row.key) for row in rows], panels, differences, title)


def _listed(labels: Sequence[str], rest: int) -> str:
    """Write the names of rows, and how many more there are."""
    if not labels:
        return count_of(rest, "row")
    return f"{', '.join(labels)} and {rest} more" if rest else either(labels, "and")


def _written(value: float | None, rank: tuple[int, int] | None, nothing: str) -> str:
    number = nothing if value is None else f"{value:#.3g}".rstrip(".")
    return number + ("" if rank is None else f"  (rank {rank_name(*rank)})")


def _drawn(row: ComparedRow) -> tuple[float, tuple[float, float] | None, bool | None] | None:
    if row.difference is None:
        return None
    return row.difference, None if row.low is None or row.high is None else (row.low, row.high), row.tied


def label_of(key: dict[str, Any]) -> str:
    """Name a row by what tells it apart."""
    word = key.get("text", key.get("word_text"))
    if word is None:
        return ", ".join(f"{name} {value}" for name, value in key.items())
    rest = ", ".join(str(value) for name, value in key.items() if name not in WORD)
    return f"{word} (#{key.get('word')})" + (f", {rest}" if rest else "")
