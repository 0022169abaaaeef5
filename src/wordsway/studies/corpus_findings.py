"""Sentences about many texts: how many flip, the change that it takes over the texts, the words that are separated."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from wordsway.support.digits import three

_QUARTERS = 8  # texts from which the middle half of them says how they spread; of fewer, all of them
_MOST_NAMED = 3
AVERAGE = {"flips_at": 0.5, "fall": 1.0, "change": 1.0}  # of a word like the others of its texts


def about_texts(lines: Sequence[dict[str, Any]], column: str, limit: float) -> str:
    """Say how many texts flip, and the median and spread over texts of the smallest change (or the largest effect);
    changes of up to `limit` were allowed."""
    values = sorted(math.inf if line[column] is None else line[column] for line in lines)
    if column != "flips_at":
        what = "largest fall of the predicted probability" if column == "fall" else "largest relative change found"
        flipped = "flips" in lines[0] and sum(line["flips"] > 0 for line in lines)
        steps = "" if flipped is False else f"one step of a word flips {_of(flipped, lines)}; "
        return f"{steps}{what} of a text: {_spread(values, limit)}"
    flipped = sum(value < math.inf for value in values)
    if not flipped:
        return f"no change of one word, of up to {limit:g} of its norm, was found to flip any of {_texts(len(lines))}"
    real = sum(line["real_word"] is not None for line in lines)
    one = f"a change of one word flips {_of(flipped, lines)} ({real} by a real word)"
    return f"{one}; smallest change found of a text, over the word's norm: {_spread(values, limit)}"


def about_words(ranked: Sequence[dict[str, Any]], column: str) -> str:
    """Say which words are separated from an average word of their texts, or that none is; empty where no word occurs in
    three texts."""
    compared = [line for line in ranked if line["low"] is not None]
    if not compared:
        return ""
    average, flips = AVERAGE[column], column == "flips_at"
    above = [line for line in compared if line["low"] > average]
    if not above:
        what = "needs a smaller change" if flips else "changes the output more"
        return f"No word in three texts or more {what} than an average word of its texts, by its 95% interval."
    named = [f"\u201c{line['text']}\u201d ({_value(line, flips)})" for line in above[:_MOST_NAMED]]
    more = f" and {len(above) - len(named)} more" if len(above) > len(named) else ""
    what = "need a smaller change" if flips else "change the output more"
    least = "By 95% intervals over three texts or more, these"
    return f"{least} {what} than an average word of their texts: {', '.join(named)}{more}."


def _value(line: dict[str, Any], flips: bool) -> str:
    return f"easier than {line['value']:.0%}" if flips else f"{three(line['value'])} times"


def _of(count: int, lines: Sequence[Any]) -> str:
    return f"{count} of {_texts(len(lines))}"


def _texts(count: int) -> str:
    return f"{count:,} text" + ("" if count == 1 else "s")


def _spread(values: Sequence[float], limit: float) -> str:
    """Write the median of sorted values and how they spread."""

    def name(value: float) -> str:
        return three(value) if value < math.inf else f"over {limit:g}"

    if len(values) == 1:
        return name(values[0])
    middle = f"median {name(statistics.median(values))}"
    if len(values) < _QUARTERS:
        return f"{middle}, range {name(values[0])} to {name(values[-1])}"
    low, high = values[(len(values) - 1) // 4], values[-1 - (len(values) - 1) // 4]
    return f"{middle}, middle half {name(low)} to {name(high)}"
