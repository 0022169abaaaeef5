"""Text that `wordsway flip` and profiles over the radius print for people."""

import math
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable, short_name
from wordsway.cli.shading import coloured
from wordsway.cli.show import MOST_ROWS, more
from wordsway.measures.flip_radii import flipped_by
from wordsway.measures.ranks import NOT_IMPORTANCE
from wordsway.support.digits import three

if TYPE_CHECKING:
    from wordsway.measures.flip_radii import FlipRadii
    from wordsway.measures.logit_ranges import LogitRanges
    from wordsway.measures.profile_result import RadiusProfile


def flip_tables(result: "FlipRadii", stretch: bool = False) -> None:
    """The prediction, the text with its words coloured (dark: a small move is enough), and a row a word."""
    console = Console(highlight=False)
    sure = "" if result.probability is None else f" ({result.probability:.3f})"
    name = short_name(str(result.map.get("model", result.map["map"])))
    console.print(escape(f"{name} predicts {printable(repr(result.prediction))}{sure}"), soft_wrap=True)
    flipped = result.flipped
    if result.text is not None and flipped:
        console.print()
        shades = [(word.span, result.limit - min(word.radius or math.inf, result.limit)) for word in result.words]
        low, high = flipped[0].radius, max(word.radius or 0.0 for word in flipped)
        missing = len(flipped) < len(result.words) or not stretch
        ends = (f"{result.limit:g} or none" if missing else three(high), f"{three(low)} (a small move is enough)")
        coloured(console, result.text, shades, ends, stretch)
        console.print()
    console.print(_table(result))
    more(console, len(result.words) - MOST_ROWS, "words")
    _notes(console, result)


def _table(result: "FlipRadii") -> Table:
    """Make a row a word; certified radii have a column where there are any."""
    table, proven = Table(box=None, padding=(0, 1)), _proven(result)
    for name in ("word", "", "flips at", "absolute", "to", *(["certified"] if proven else []), "real word", "at"):
        table.add_column(name, justify="right" if name in ("flips at", "absolute", "certified", "at") else "left")
    for word in result.words[:MOST_ROWS]:
        cells = [three(word.radius), three(word.distance), Text("-") if word.to is None else _name(class_name(word.to))]
        cells += [_certified(word.certified)] if proven else []
        distance = three(None if word.real is None else word.real.radius)
        table.add_row(_name(word.text), f"#{word.word}", *cells, _name(flipped_by(word)), distance)
    return table


def _proven(result: "FlipRadii") -> bool:
    """Whether the radius of any word is certified."""
    return any(word.certified > 0 for word in result.words)


def _notes(console: Console, result: "FlipRadii") -> None:
    """Say what the columns mean, and what was not found."""
    missing = [word for word in result.words if word.radius is None]
    if missing:
        names = ", ".join(printable(word.text) for word in missing[:5])
        rest = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        console.print(
            escape(f"No move of norm up to {result.limit:g} that changes the prediction was found for: {names}{rest}."),
            soft_wrap=True,
        )
    console.print(
        "flips at: the smallest move found that changes the prediction, in units of the word's own norm; a smaller one "
        "may exist.",
        soft_wrap=True,
    )
    reasons = {word.reason for word in result.words if word.certified == 0 and word.reason}
    why = f": {'; '.join(sorted(reasons))}" if reasons else ""
    proven = f"certified: no move up to this can change it (0: nothing is proven{why})."
    console.print(escape(proven if _proven(result) else f"No radius is certified{why}."), soft_wrap=True)
    tried = [word.tried for word in result.words if word.tried]
    if tried:
        console.print(
            f"real word: the nearest that changes it, of up to {max(tried):,} tried in a word's place, the nearest "
            "first. It may lie further than the search went.",
            soft_wrap=True,
        )
    pieces = [word for word in result.words if len(word.tokens) > 1]
    if pieces:
        console.print("A word of several tokens is represented by the token that needs the smallest move.")
    console.print(NOT_IMPORTANCE, soft_wrap=True)
    console.print(f"{result.gradients:,} gradients, {result.seconds:.1f} s; checked: {result.checked}")


def profile_table(result: "RadiusProfile") -> None:
    """One row a word, one column a radius: the largest change found there."""
    console = Console(highlight=False)
    about = result.map.get("model")
    name = str(result.map["map"]) if about is None else f"{short_name(about)}, output {result.map['output']}"
    title = f"{printable(name)}: largest change found within a radius, in units of the word's own norm"
    console.print(escape(title), soft_wrap=True)
    table = Table(box=None, padding=(0, 1))
    table.add_column("word")
    table.add_column("")
    for radius in result.radii:
        table.add_column(f"{radius:g}", justify="right")
    if result.prediction is not None:
        table.add_column("flips at", justify="right")
    ranked = sorted(result.words, key=lambda word: -word.lower[0])
    for word in ranked[:MOST_ROWS]:
        flip = [] if result.prediction is None else [three(word.flip)]
        table.add_row(_name(word.text), f"#{word.word}", *(three(value) for value in word.lower), *flip)
    if all(None not in word.upper for word in result.words):
        most = [max(word.upper[k] or 0.0 for word in result.words) for k in range(len(result.radii))]
        table.add_row("no word can exceed", "", *(three(value) for value in most))
    console.print(table)
    more(console, len(ranked) - MOST_ROWS, "words")
    first, last = result.spread(0), result.spread(-1)
    console.print(
        f"The words differ by a factor of {first:.1f} at radius {result.radii[0]:g}, of {last:.1f} at "
        f"{result.radii[-1]:g}.",
        soft_wrap=True,
    )
    reasons = {word.reason for word in result.words if word.reason}
    if reasons:
        console.print(escape(f"No upper bound: {'; '.join(sorted(reasons))}."), soft_wrap=True)
    console.print(f"{result.evaluations:,} evaluations, {result.seconds:.1f} s; checked: {result.checked}")


def ranges_table(result: "LogitRanges") -> None:
    """One row for each word and class; once for all words where their ranges are the same."""
    console = Console(highlight=False)
    console.print(escape(f"{short_name(result.model)} predicts {printable(repr(result.prediction))}"), soft_wrap=True)
    same = len(result.words) > 1 and len({(each.low, each.high, each.margin_low) for each in result.words}) == 1
    table = Table(box=None, padding=(0, 1))
    for name in ("word", "", "class", "logit", "proven range", "lead of the prediction", "proven range"):
        table.add_column(name, justify="left" if name in ("word", "", "class") else "right")
    lead = max(result.logits)
    for each in result.words[: 1 if same else MOST_ROWS]:
        where = ("any one word", "") if same else (_name(each.text), f"#{each.word}")
        for k, label in enumerate(result.labels):
            own = label == result.prediction
            margin = "-" if own else three(lead - result.logits[k])
            ahead = "-" if own else f"{three(each.margin_low[k])} to {three(each.margin_high[k])}"
            cells = (three(result.logits[k]), f"{three(each.low[k])} to {three(each.high[k])}", margin, ahead)
            table.add_row(*(where if k == 0 else ("", "")), _name(class_name(label)), *cells)
    console.print(table)
    more(console, 0 if same else len(result.words) - MOST_ROWS, "words")
    never = sum(each.flips_never for each in result.words)
    console.print(
        f"No change of the embedding of one word, of any size, leaves these ranges. For {never} of "
        f"{len(result.words)} words this proves that the prediction stays.",
        soft_wrap=True,
    )


def class_name(name: str) -> str:
    """A class as it is; a next token with spaces around it in quotes."""
    return name if name and name == name.strip() else repr(name)


def _certified(radius: float) -> str:
    return "any move" if math.isinf(radius) else three(radius) if radius else "0"


def _name(text: str) -> Text:
    name = Text(printable(text), no_wrap=True)
    name.truncate(24, overflow="ellipsis")
    return name
