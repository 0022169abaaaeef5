"""Words and kinds of words of many texts side by side, by numbers that do not depend on how near a text is to a tie.

How large a change flips a prediction says more about the text than about the word: in a text with a probability of 0.55
every word flips it. So a word is compared with the other words of its own text, and only those comparisons are averaged
over texts.
"""

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wordsway.studies.estimates import mean_interval
from wordsway.support.digits import count_of

FEW = 3  # texts from which a mean has an interval, and occurrences from which a word of a long table is listed
_ENOUGH = 200  # words of all texts from which a word must occur that often
Rows = Sequence[dict[str, Any]]


def with_easier_than(rows: Rows) -> list[dict[str, Any]]:
    """Add to the words of one text the share of its other words that need a larger change to flip its prediction. A
    word without a flip needs more than any with one; equal words count as half. In a text without any flip, and of a
    single word, it is None: nothing can be compared."""
    limit = max((row["flips_at"] for row in rows if row["flips_at"] is not None), default=None)
    if limit is None or len(rows) < 2:
        return [row | {"easier_than": None} for row in rows]
    needed = [2 * limit if row["flips_at"] is None else row["flips_at"] for row in rows]  # more than any
    ordered = sorted(needed)
    found = []
    for row, need in zip(rows, needed, strict=True):
        more = len(ordered) - bisect_right(ordered, need)
        equal = len(ordered) - more - bisect_left(ordered, need) - 1  # without itself
        found.append(row | {"easier_than": (more + equal / 2) / (len(rows) - 1)})
    return found


def ranked(rows: Rows, name_of: Callable[[dict[str, Any]], str], rare: bool) -> list[dict[str, Any]]:
    """Rank the groups of rows that `name_of` makes: those of three texts or more first, by the lower end of their
    interval, so that a group leads which leads in its texts together; then by their number of texts. With `rare`, a
    group of a long table may occur less than three times, too."""
    flips = bool(rows) and "flips_at" in rows[0]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(name_of(row), []).append(row)
    least = 1 if rare or len(rows) < _ENOUGH else FEW
    column = "easier_than" if flips else "relative"
    values = {name: _text_means(each, column) for name, each in groups.items() if len(each) >= least}
    together = sum(len(each) >= FEW for each in values.values())
    lines = [_line(name, groups[name], each, flips, together) for name, each in values.items()]
    return sorted(lines, key=_order)


def _order(line: dict[str, Any]) -> tuple[bool, float, int, float]:
    return line["low"] is None, -(line["low"] or 0.0), -line["compared"], -(line["value"] or 0.0)


def _text_means(rows: Rows, column: str) -> list[float]:
    """Average the words of each text in which they can be compared."""
    texts: dict[int, list[float]] = {}
    for row in rows:
        if row[column] is not None:
            texts.setdefault(row["text_number"], []).append(row[column])
    return [statistics.fmean(values) for values in texts.values()]


def _line(name: str, rows: Rows, values: Sequence[float], flips: bool, together: int) -> dict[str, Any]:
    """Summarise one group, one of so many that get intervals `together`."""
    line: dict[str, Any] = {"text": name, "occurrences": len(rows), "texts": len({row["text_number"] for row in rows})}
    line |= {"compared": len(values), "value": None, "low": None, "high": None}
    if values:
        mean = mean_interval(values, together if len(values) >= FEW else 1)
        line["value"] = mean.value
        if len(values) >= FEW and mean.low is not None and mean.high is not None:
            line |= {"low": max(0.0, mean.low), "high": min(1.0, mean.high) if flips else mean.high}
    if flips:
        line["flipped"] = sum(row["flips_at"] is not None for row in rows) / len(rows)
        tried = [row for row in rows if row.get("tried") != 0]  # no real word can take the place of some
        line["real"] = sum(row["real_word"] is not None for row in tried) / len(tried) if tried else None
    elif "flips" in rows[0]:
        line["flips"] = statistics.fmean(row["flips"] for row in rows)
    return line


def occurrences_of(line: Mapping[str, Any]) -> str:
    """Count the occurrences of a word, and of those the ones that flip where not all do."""
    share = line.get("flipped", 1)
    some = f"{round(share * line['occurrences'])} of " if share < 1 else ""
    return f"{some}{line['occurrences']}x in {count_of(line['texts'], 'text')}"
