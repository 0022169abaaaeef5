"""A text with its words on shades, and bars from what was found to what is proven."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordsway.measures.ranks import rank_name, tie_levels
from wordsway.report.parts import Bar, Detail, Shaded, Words, level_of
from wordsway.support.digits import three

_MOST_BARS = 40
_CHOICE = "choose one (click, tap or Enter)"


@dataclass(frozen=True)
class ColouredWord:
    """A word with the value that it is coloured by, what is said of it, and the ends of its bar: found and proven."""

    word: int
    span: tuple[int, int]
    text: str
    rank: tuple[int, int]
    value: float
    notes: tuple[str, ...]
    bounds: tuple[float, float | None] | None = None


def coloured_text(
    source: dict[str, Any],
    words: Sequence[ColouredWord],
    details: Mapping[int, Detail] | None,
    ends: tuple[str, str] | None = None,
    stretched: str | None = None,
    lines: bool = False,
) -> Words:
    """Put each word on a shade from 0 to the largest value; words that are not separated share one.

    `details` are what is known of some words beyond their notes; None where nothing more can be computed. Unless given,
    `ends` and `stretched` say that the values are effects. With `lines`, bounds are all that a word's notes say, and a
    line of them is drawn where it is chosen.
    """
    text, used = source["text"], max(end for _, end in source["offsets"])
    values = [word.value for word in words]
    low, high = min(values), max(values)
    levels = dict(zip((w.word for w in words), tie_levels(values, [w.rank for w in words]), strict=True))
    top = max(words, key=lambda word: word.value)
    pieces: list[Any] = []
    position = 0
    for word in sorted(words, key=lambda word: word.span):
        start, end = word.span
        if start < position or end <= start:
            continue  # where it stands is not known; the table has it
        pieces += [text[position:start]] if start > position else []
        shades = level_of(levels[word.word], 0.0, high), level_of(word.value, low, high)
        bounds = word.bounds if lines and word.bounds else (None, None)
        rank = rank_name(*word.rank)
        pieces.append(Shaded(word.word, text[start:end], *shades, rank, word == top, len(words), word.notes, *bounds))
        position = end
    cropped = len(text[used:]) if text[used:].strip() else 0
    rest = text[position:used] if cropped else text[position:]
    pieces += [rest] if rest else []
    return Words(
        title="The text",
        pieces=pieces,
        ends=ends or ("0", f"largest effect in this text, {three(high)}"),
        stretched=stretched or f"smallest effect in this text, {three(low)}",
        hint=_hint(details),
        cropped=cropped,
        details=details or {},
        explains=details is not None,
    )


def _hint(details: Mapping[int, Detail] | None) -> str:
    same = "Words that are not separated share a colour."
    if details is None:
        return f"{same} Point at a word, or {_CHOICE}, for its numbers."
    known = f": they are available for {len(details)} words" if details else ""
    return f"{same} Point at a word for its numbers; {_CHOICE} for details{known}."


def bars_of(words: Sequence[ColouredWord]) -> list[Bar]:
    """Bars of the words that have bounds, in the order of their values, the largest first."""
    bounded = [(word, *word.bounds) for word in words if word.bounds is not None]
    most = max((upper or lower for _, lower, upper in bounded), default=0.0) or 1.0
    return [
        Bar(
            word.text, rank_name(*word.rank), lower, upper, 100 * lower / most,
            0.0 if upper is None else 100 * max(0.0, upper - lower) / most,
        )
        for word, lower, upper in sorted(bounded, key=lambda each: -each[0].value)[:_MOST_BARS]
    ]  # fmt: skip
