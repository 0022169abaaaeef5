"""Ranks of numbers that a search found: those that differ by less than the search's own spread share one."""

from collections.abc import Sequence

_MOST_NAMED = 5  # of the words that tie, in a sentence


def shared_ranks(values: Sequence[float], spread: float) -> list[tuple[int, int]]:
    """(rank, how many share it) of each value; rank 1 is the largest.

    Going down, a value ties with the first of its group if it is at least (1 - spread) times that one: a chain of
    close values does not become one group. With a spread of 0 no two values tie, not even equal ones.
    """
    order = sorted(range(len(values)), key=lambda k: -values[k])
    groups: list[list[int]] = []
    for k in order:
        if groups and spread > 0 and values[k] >= values[groups[-1][0]] * (1 - spread):
            groups[-1].append(k)
        else:
            groups.append([k])
    ranks = [(0, 0)] * len(values)
    first = 1
    for group in groups:
        for k in group:
            ranks[k] = (first, len(group))
        first += len(group)
    return ranks


def rank_name(rank: int, tied: int) -> str:
    """A rank as people read it: "1", or "1-4" where four share it."""
    return str(rank) if tied == 1 else f"{rank}-{rank + tied - 1}"


def tie_sentence(names: Sequence[str], spread: float) -> str:
    """Write the sentence about several words that tie at the top; `names` are ready to be shown."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return (
        f"{len(names)} words tie ({', '.join(names[:_MOST_NAMED])}{more}): their numbers differ by less than the "
        f"search's own spread, {100 * spread:g}%."
    )
