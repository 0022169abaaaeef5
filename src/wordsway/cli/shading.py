"""Texts with their words on shades, and bars from what was found to what is proven, for a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from wordsway.cli.command import printable
from wordsway.measures.ranks import tie_levels
from wordsway.support.digits import three
from wordsway.support.errors import shortened

# From pale to dark blue: the lightness alone tells them apart, whichever colours an eye can see.
_SHADES = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#084594")
_WIDTH = 16  # characters of a bar


def coloured_words(
    console: Console,
    source: dict[str, Any] | None,
    spans: Sequence[tuple[int, int]],
    values: Sequence[float],
    ranks: Sequence[tuple[int, int]],
    stretch: bool,
) -> None:
    """Print the text with its words on shades by their values, between empty lines; words whose ranks overlap share a
    shade unless `stretch`."""
    if source is None:
        return
    levels = values if stretch else tie_levels(values, ranks)
    console.print()
    ends = three(min(values)) if stretch else "0", three(max(values))
    coloured(console, source, list(zip(spans, levels, strict=True)), ends, stretch)
    console.print()


def coloured(
    console: Console,
    source: dict[str, Any],
    words: Sequence[tuple[tuple[int, int], float]],
    ends: tuple[str, str],
    stretch: bool = False,
) -> None:
    """Print the text as it was written, each word (its characters, a value from 0) on a shade from pale, 0, to dark,
    the largest value; with `stretch`, from the smallest value. `ends` say what these two are."""
    text, used = source["text"], max(end for _, end in source["offsets"])
    high = max(value for _, value in words)
    low = min(value for _, value in words) if stretch else 0.0
    shown, position = Text(), 0
    for (start, end), value in sorted(words):
        if start < position or end <= start:
            continue  # where a word stands is not known
        shown.append(_lines(text[position:start]))
        shown.append(_lines(shortened(text[start:end])), style=_shade(value, low, high))
        position = end
    if text[used:].strip():
        shown.append(_lines(text[position:used]))
        shown.append(f" [... {len(text) - used} more characters, not measured]", style="dim")
    else:
        shown.append(_lines(text[position:]))
    console.print(shown)
    if console.color_system and len(words) > 1:
        scale = Text(f"{ends[0]} ")
        for shade in _SHADES:
            scale.append("  ", style=f"on {shade}")
        console.print(scale.append(f" {ends[1]}"))


def bar(console: Console, found: float, proven: float | None, most: float, width: int = _WIDTH) -> Text:
    """Draw a bar on a scale from 0 to `most`: full up to what was found, pale from there to what is proven."""
    full, pale = ("\u2588", "\u2591") if console.encoding.lower().startswith("utf") else ("#", ".")
    upto = round(width * min(1.0, found / most)) if most > 0 else 0
    end = upto if proven is None or most <= 0 else max(upto, round(width * min(1.0, proven / most)))
    return Text(full * upto, style="#2171b5").append(pale * (end - upto), style="#9ecae1")


def _lines(text: str) -> str:
    return "\n".join(printable(line.replace("\t", " ")) for line in text.split("\n"))


def _shade(value: float, low: float, high: float) -> str:
    level = float(high > 0) if high <= low else (value - low) / (high - low)
    step = min(len(_SHADES) - 1, int(level * len(_SHADES)))
    return f"{'#000000' if step < 5 else '#ffffff'} on {_SHADES[step]}"
