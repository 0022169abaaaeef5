"""The public function `compare_results`: results of two or more models, maps or settings side by side, row by row."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from wordsway import __version__
from wordsway.measures.differences import LEVEL, Measured, interval, paired, separated
from wordsway.measures.ranks import rank_name
from wordsway.measures.sides import Entry, Side, Table, sides_of
from wordsway.support.digits import count_of
from wordsway.support.errors import InputError
from wordsway.support.names import either
from wordsway.support.plotting import bar_panels
from wordsway.support.public_gate import public
from wordsway.support.result import Result

_OTHER = "These are not the same quantity, so their numbers cannot be subtracted: compare the ranks."
_NAMED = 5  # rows in a sentence
_LONG = 60  # characters of a text in a title
_SEVERAL = "Differences are shown for two results."


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
    counts the rows that a result has and not all others, and `only_rows` names the first of them.
    """

    format: ClassVar[str] = "wordsway.comparison/2"

    sides: tuple[Side, ...]
    compared_rows: tuple[ComparedRow, ...]
    same: bool
    reading: str
    text: str | None
    only: tuple[int, ...]
    only_rows: tuple[tuple[str, ...], ...] = ()  # earlier files have none
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
        return [
            f"Only in {name}: {_listed(labels, count)}."
            for name, count, labels in zip(self.names, self.only, named, strict=True)
            if count
        ]

    @property
    def _noun(self) -> str:
        keys = self.compared_rows[0].key
        return "word" if set(keys) == {"word", "text"} else "row"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row for each that all results have, in the order of the first result's ranks."""
        return [self._record(row) for row in self.compared_rows]

    def _record(self, row: ComparedRow) -> dict[str, Any]:
        made = dict(row.key)
        for name, value, rank in zip(self.names, row.values, row.ranks, strict=True):
            made[name] = value
            if rank is not None:
                made[f"{name} rank"] = rank_name(*rank)
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
        return bar_panels(axes, [_label(row.key) for row in rows], panels, differences, title)


@public
def compare_results(results: Sequence[Result], names: Sequence[str] = (), column: str | None = None) -> Comparison:
    """Compare results of one kind, row by row: words by their places in the text, layers by their numbers. Flips of one
    model and changes of another have no number in common, but ranks. `names` are how they are called (first, second,
    ... unless given), `column` the number of their tables that is compared."""
    if len(results) < 2:
        raise InputError("a comparison needs two results or more", argument="results")
    called = _names(results, names)
    tables = sides_of(results, called, column)
    keyed = _matched(tables)
    shared = [key for key in keyed[0] if all(key in table for table in keyed[1:])]
    if not shared:
        raise InputError("the results have no row in common: are they about one text?", argument="results")
    alike = len({table.same for table in tables}) == 1
    same = alike and len(tables) == 2
    rows = tuple(_row([table[key] for table in keyed], same, len(shared)) for key in shared)
    texts = {table.text for table in tables}
    return Comparison(
        sides=tuple(table.side for table in tables),
        compared_rows=rows,
        same=same,
        reading=_reading(tables) if same else _SEVERAL if alike else _OTHER,
        text=texts.pop() if len(texts) == 1 else None,
        only=tuple(len(table) - len(shared) for table in keyed),
        only_rows=tuple(_first_others(table, set(shared)) for table in keyed),
    )


def _names(results: Sequence[Result], names: Sequence[str]) -> tuple[str, ...]:
    usual = ("first", "second", "third")
    made = tuple(names) or tuple(usual[k] if k < 3 else f"result {k + 1}" for k in range(len(results)))
    if len(made) != len(results) or len(set(made)) < len(made):
        raise InputError(f"names must be one for each result, and differ, got {list(made)}", argument="names")
    reserved = {"difference", "low", "high", "tied", *(results[0].compared or ((), ""))[0]}
    return tuple(f"{name} (value)" if name in reserved else name for name in made)


def _matched(tables: Sequence[Table]) -> list[dict[tuple[Any, ...], Entry]]:
    """Rows by what is equal on all sides: the word's place in the text where all have that text, else its number and
    letters. Two tokenizers may cut a text into other words, so that numbers alone do not match."""
    texts = {table.text for table in tables}
    keyed = [{(*row.group, row.span): row for row in table.entries} for table in tables]
    placed = all(row.span is not None and row.span[0] < row.span[1] for table in tables for row in table.entries)
    unique = all(len(found) == len(table.entries) for found, table in zip(keyed, tables, strict=True))
    if None not in texts and len(texts) == 1 and placed and unique:
        return [dict(found) for found in keyed]
    return [_numbered(table) for table in tables]


def _numbered(table: Table) -> dict[tuple[Any, ...], Entry]:
    """Rows by what they show; of several that show the same, the first belongs to the first of another side."""
    times: Counter[tuple[Any, ...]] = Counter()
    found = {}
    for row in table.entries:
        found[(*row.key, times[row.key])] = row
        times[row.key] += 1
    return found


def _first_others(table: dict[tuple[Any, ...], Entry], shared: set[tuple[Any, ...]]) -> tuple[str, ...]:
    """Name the first rows of a result that are not shared."""
    return tuple(_label(entry.shown) for key, entry in table.items() if key not in shared)[:_NAMED]


def _row(entries: Sequence[Entry], same: bool, rows: int) -> ComparedRow:
    """Put the values of one row side by side, with their difference where that has a meaning."""
    values = tuple(None if each.measured is None else each.measured.value for each in entries)
    key, ranks = entries[0].shown, tuple(each.rank for each in entries)
    first, second = entries[0].measured, entries[-1].measured
    if not same or first is None or second is None:
        return ComparedRow(key, values, ranks)
    difference = second.value - first.value
    span = interval(first, second, rows)
    if span is None and not (first.known and second.known):
        return ComparedRow(key, values, ranks, difference, tied=True if difference == 0 else None)
    if span is not None:
        return ComparedRow(key, values, ranks, difference, *span, tied=span[0] <= 0 <= span[1])
    return ComparedRow(key, values, ranks, difference, tied=difference == 0 or not separated(first, second))


def _reading(tables: Sequence[Table]) -> str:
    """Say how ties between two sides of one quantity were found."""
    known = [[row.measured for row in table.entries if row.measured is not None] for table in tables]
    if not all(known):
        return "One of the results has no numbers."
    first, second = known[0][0], known[1][0]
    if first.sd is not None and second.sd is not None:
        return _reading_of_means(first, second)
    if not (first.known and second.known):
        return "Nothing is known about the noise of these numbers: tied means equal."
    spread = max(first.spread, second.spread)
    if spread > 0:
        return f"Tied: the two differ by less than {spread:.0%}, by which a search may be off, and bounds overlap."
    return "Tied: the bounds of the two overlap."


def _reading_of_means(first: Measured, second: Measured) -> str:
    if not (first.averaged and second.averaged):
        return "One of the results has a single draw, so nothing is known about the noise: use several draws in both."
    how = "both have the same draws, so they are paired" if paired(first, second) else "independent draws: Welch's"
    return f"Tied: the interval of the difference holds 0 ({LEVEL:.0%} for all rows together; {how})."


def _listed(labels: Sequence[str], count: int) -> str:
    """Write the names of rows, and how many more there are."""
    if not labels:
        return count_of(count, "row")
    return either(labels, "and") if len(labels) == count else f"{', '.join(labels)} and {count - len(labels)} more"


def _written(value: float | None, rank: tuple[int, int] | None, nothing: str) -> str:
    number = nothing if value is None else f"{value:#.3g}".rstrip(".")
    return number + ("" if rank is None else f"  (rank {rank_name(*rank)})")


def _drawn(row: ComparedRow) -> tuple[float, tuple[float, float] | None, bool | None] | None:
    if row.difference is None:
        return None
    return row.difference, None if row.low is None or row.high is None else (row.low, row.high), row.tied


def _label(key: dict[str, Any]) -> str:
    word = key.get("text", key.get("word_text"))
    if word is None:
        return ", ".join(f"{name} {value}" for name, value in key.items())
    rest = ", ".join(str(value) for name, value in key.items() if name not in ("text", "word_text", "word"))
    return f"{word} (#{key.get('word')})" + (f", {rest}" if rest else "")
