"""Ranks of words whose numbers are uncertain: words that are not separated share ranks."""

import math
from collections.abc import Callable, Sequence
from typing import Any

NOT_IMPORTANCE = (
    "This is how far a change to one word was found to reach, not the word's importance: for attributions use Captum "
    "or inseq."
)
LEVEL = 0.95  # probability with which all intervals of one text and map, over draws of weights, hold together
_MOST_NAMED = 5  # of the words that tie, in a sentence


def rank_ranges(count: int, above: Callable[[int, int], bool]) -> list[tuple[int, int]]:
    """(first possible rank, how many ranks are possible) of each of `count` words; rank 1 is the largest.

    `above(i, j)` says whether word i is separated from word j and above it. A word ranks behind all words that are
    above it and before all that it is above, so (1, 4) reads "1-4": one of the first four.
    """
    ranks = []
    for k in range(count):
        ahead = sum(above(j, k) for j in range(count) if j != k)
        behind = sum(above(k, j) for j in range(count) if j != k)
        ranks.append((1 + ahead, count - ahead - behind))
    return ranks


def shared_ranks(lower: Sequence[float], spread: float, upper: Sequence[float | None] = ()) -> list[tuple[int, int]]:
    """Ranks of what a search found on one map.

    Two are separated where the lower bound of one is above the upper bound of the other. Where the search's own
    `spread` is known, a difference that exceeds it separates too: such a search is repeated and gives the same order.
    """
    proven = [math.inf if value is None else value for value in upper] or [math.inf] * len(lower)

    def above(i: int, j: int) -> bool:
        return lower[i] > proven[j] or (spread > 0 and lower[j] < lower[i] * (1 - spread))

    return rank_ranges(len(lower), above)


def tie_levels(values: Sequence[float], ranks: Sequence[tuple[int, int]]) -> list[float]:
    """The value by which each word is coloured: words whose ranks overlap, directly or through others, get their
    common mean."""
    order = sorted(range(len(values)), key=lambda k: (ranks[k][0], -values[k]))
    groups: list[list[int]] = []
    end = 0
    for k in order:
        first, count = ranks[k]
        if not groups or first > end:
            groups.append([])
        groups[-1].append(k)
        end = max(end, first + count - 1)
    levels = [0.0] * len(values)
    for group in groups:
        tied = [values[k] for k in group]
        level = min(max(math.fsum(tied) / len(tied), min(tied)), max(tied))  # a division may round beyond all of them
        for k in group:
            levels[k] = level
    return levels


def rank_name(rank: int, tied: int) -> str:
    """A rank as people read it: "1", or "1-4" where it is one of four."""
    return str(rank) if tied == 1 else f"{rank}-{rank + tied - 1}"


def tie_sentence(names: Sequence[str], spread: float) -> str:
    """Write the sentence about several words that tie at the top; `names` are ready to be shown."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    why = "their bounds overlap, so this map does not separate them."
    if spread > 0:
        why = f"their numbers differ by less than the search's own spread, {100 * spread:g}%."
    return f"{len(names)} words tie ({', '.join(names[:_MOST_NAMED])}{more}): {why}"


def with_ranks(values: dict[str, Any], ranked: Sequence[Any], ranks: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Add `rank` (the first possible one) and `tied` (how many are possible) to the words of a result's JSON values,
    which keep their order."""
    known = {word.word: rank for word, rank in zip(ranked, ranks, strict=True)}
    for each in values["words"]:
        each["rank"], each["tied"] = known[each["word"]]
    return values


def without_ranks(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out what `with_ranks` added; earlier files lack it."""
    words = values.get("words")
    if not isinstance(words, list) or not all(isinstance(each, dict) for each in words):
        return values  # damaged, which its reader says
    kept = [{name: value for name, value in each.items() if name not in ("rank", "tied")} for each in words]
    return values | {"words": kept}
