"""The public function `compare_results`: results of two or more models, maps or settings side by side, row by row."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wordsway.measures.comparison import WORD, ComparedRow, Comparison, label_of
from wordsway.measures.differences import LEVEL, Measured, interval, paired, separated
from wordsway.measures.sides import Entry, Table, sides_of
from wordsway.support.digits import count_of
from wordsway.support.errors import InputError
from wordsway.support.public_gate import public
from wordsway.support.result import Result, load_result

Compared = Result | str | os.PathLike[str]  # a result, or the path of a saved one
_ONE = (Result, str, os.PathLike)
_OTHER = "These are not the same quantity, so their numbers cannot be subtracted: compare the ranks."
_SEVERAL = "Differences are shown for two results."
_NAMED = 5  # rows in a sentence


@public
def compare_results(
    *results: Compared | Sequence[Compared], names: Sequence[str] = (), column: str | None = None
) -> Comparison:
    """Compare results of one kind, row by row: words by their places in the text, layers by their numbers. Flips of one
    model and changes of another have no number in common, but ranks. Results are given one after the other or as a
    list; a path is that of a saved one (.json). `names` are how they are called: unless given, by their files, or
    first, second, and so on. `column` is the number of their tables that is compared."""
    given = _given(results)
    found = [each if isinstance(each, Result) else load_result(each) for each in given]
    tables = sides_of(found, _names(given, names), column)
    keyed = _matched(tables)
    shared = [key for key in keyed[0] if all(key in table for table in keyed[1:])]
    if not shared:
        raise InputError("the results have no row in common: are they about one text?", argument="results")
    alike = len({table.same for table in tables}) == 1
    same = alike and len(tables) == 2
    rows = tuple(_row([table[key] for table in keyed], same, len(shared)) for key in shared)
    texts = {table.text for table in tables}
    others = [_others(table, set(shared)) for table in keyed]
    return Comparison(
        sides=tuple(table.side for table in tables),
        compared_rows=rows,
        same=same,
        reading=_reading(tables) if same else _SEVERAL if alike else _OTHER,
        text=texts.pop() if len(texts) == 1 else None,
        only=tuple(len(table) - len(shared) for table in keyed),
        only_rows=tuple(labels for labels, _ in others),
        only_unnamed=tuple(rest for _, rest in others),
    )


def _given(results: Sequence[Any]) -> list[Compared]:
    """List the results and paths of a call, which has them as arguments or as one list."""
    listed = list(results[0]) if len(results) == 1 and not isinstance(results[0], _ONE) else list(results)
    for each in listed:
        if not isinstance(each, _ONE):
            raise InputError(
                f"results are given one after the other or as one list, got a {type(each).__name__} among them; names "
                "go by names=",
                argument="results",
            )
    if len(listed) < 2:
        message = f"a comparison needs two results or more, got {len(listed)}: compare_results(first, second)"
        raise InputError(message, argument="results")
    return listed


def _names(given: Sequence[Compared], names: Sequence[str]) -> tuple[str, ...]:
    """Name results as the user does, by their files, or by their numbers."""
    paths = [each for each in given if not isinstance(each, Result)]
    stems = [Path(path).stem for path in paths]
    files = iter(stems if len(set(stems)) == len(stems) else [os.fspath(path) for path in paths])
    usual = ("first", "second", "third")
    numbered = [usual[k] if k < 3 else f"result {k + 1}" for k in range(len(given))]
    pairs = zip(numbered, given, strict=True)
    made = tuple(names) or tuple(name if isinstance(each, Result) else next(files) for name, each in pairs)
    if len(set(made)) < len(made) and not names:
        raise InputError(f"two of the results would be called alike, {list(made)}; give names=", argument="names")
    if len(made) != len(given) or len(set(made)) < len(made):
        raise InputError(f"names must be one for each result, and differ, got {list(made)}", argument="names")
    return made


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


def _others(table: dict[tuple[Any, ...], Entry], shared: set[tuple[Any, ...]]) -> tuple[tuple[str, ...], int]:
    """Name the first rows of a result that are not shared, and count those that are left out. Rows of a group (a map, a
    radius) none of which is shared are one name."""
    known = {_group(entry.shown) for key, entry in table.items() if key in shared}
    named: dict[str, int] = {}
    lines: Counter[str] = Counter(_group(entry.shown) for entry in table.values())
    for key, entry in table.items():
        if key not in shared:
            group = _group(entry.shown)
            whole = group and group not in known and lines[group] > 1
            noun = "word" if "word" in entry.shown else "row"
            label = f"{group} ({count_of(lines[group], noun)})" if whole else label_of(entry.shown)
            named[label] = named.get(label, 0) + 1
    return tuple(named)[:_NAMED], sum(list(named.values())[_NAMED:])


def _group(key: dict[str, Any]) -> str:
    """Name the group of a row: what it has beside its word, or the first of several that tell rows apart."""
    beside = [(name, value) for name, value in key.items() if name not in WORD]
    some = beside if "word" in key else beside[:1] if len(beside) > 1 else []
    return ", ".join(str(value) if isinstance(value, str) else f"{name} {value}" for name, value in some)


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
