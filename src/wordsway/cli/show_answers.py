"""Text that `wordsway measure --model` prints: an answer in the units of the model's user."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable, short_name
from wordsway.cli.shading import bar, coloured, coloured_words
from wordsway.cli.show import MOST_ROWS, more
from wordsway.measures.flip_radii import flipped_by
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name
from wordsway.support.digits import probability_name, three

_TIED = 0.9  # of the prediction's probability: a class that has more is nearly as likely

if TYPE_CHECKING:
    from wordsway.measures.flip_radii import FlipRadii, WordFlip
    from wordsway.measures.profile_result import RadiusProfile


def prediction_tables(result: "FlipRadii", stretch: bool = False) -> None:
    """The prediction, the text with its words coloured by the nearest real word that flips it, and a row a word."""
    console = Console(highlight=False)
    console.print(escape(_prediction(result)), soft_wrap=True)
    words = result.by_real
    reals = [word.real.radius for word in words if word.real is not None]
    if result.text is not None:
        console.print()
        shades = [(word.span, word.closeness) for word in words]
        ends = ("no real word found" if not stretch else "far", f"real word at {three(min(reals))}" if reals else "-")
        coloured(console, result.text, shades, ends, stretch)
        console.print()
    console.print(_words(console, result))
    more(console, len(words) - MOST_ROWS, "words")
    _notes(console, result)


def _prediction(result: "FlipRadii") -> str:
    """Say what is predicted, how surely, and what comes next; and whether that is nearly a tie."""
    what = "prediction" if result.kind == "class" else result.kind
    name = short_name(str(result.map.get("model", result.map["map"])))
    said = f"{name}, {what}: {printable(repr(result.prediction))}"
    if result.probability is None:
        return said
    said += f", probability {probability_name(result.probability)}"
    if result.second is None:
        return said
    other, near = result.second
    said += f"; next: {printable(repr(other))}, {probability_name(near)}"
    return said + (". Nearly a tie: almost any change flips it" if near > _TIED * result.probability else "")


def _words(console: Console, result: "FlipRadii") -> Table:
    table = Table(box=None, padding=(0, 1), collapse_padding=True)
    falls, causal = result.lowest_differ, result.kind != "class"
    titles = ["rank", "word", "", "flipped by", "at", *(["to"] if causal else []), "flips at", "", ""]
    titles += [*(["to"] if causal else []), *(["P falls to"] if falls else []), "best word", "P"]
    for title in titles:
        side = "right" if title in ("at", "flips at", "P falls to", "P") else "left"
        table.add_column(title, justify=side, no_wrap=True)
    places = dict(zip(result.words, result.flip_ranks, strict=True))
    for word, rank in list(zip(result.by_real, result.real_ranks, strict=True))[:MOST_ROWS]:
        real, best = word.real, word.best
        cells = [_name(flipped_by(word), quiet=real is None), "-" if real is None else three(real.radius)]
        cells += [_name("-" if real is None else repr(real.to))] if causal else []
        cells += [three(word.radius), f"({rank_name(*places[word])})", _flip_bar(console, word, result.limit)]
        cells += [_name("-" if word.to is None else repr(word.to))] if causal else []
        cells += [probability_name(word.lowest)] if falls else []
        cells += [
            _name("-" if best is None else best.text),
            probability_name(None if best is None else best.probability),
        ]
        table.add_row(rank_name(*rank), _name(word.text), f"#{word.word}", *cells)
    return table


def _flip_bar(console: Console, word: "WordFlip", limit: float) -> Text:
    """Draw where the smallest flip lies: from what is proven to be too short, to what was found to be long enough."""
    found = limit if word.radius is None else word.radius
    return bar(console, min(word.certified, found), found, limit, 8)


def _notes(console: Console, result: "FlipRadii") -> None:
    """Say what the columns mean."""
    proven = any(word.certified > 0 for word in result.words)
    pale = "Bar: up to the change found."
    pale += " Pale: a smaller one that flips may exist there." if proven else " It is pale: a smaller one may exist."
    last = f"{result.seconds:.1f} s; checked: {result.checked}"
    for line in (*result.column_notes, pale, NOT_IMPORTANCE, last):
        console.print(escape(printable(line)), soft_wrap=True)


def encoder_tables(result: "RadiusProfile", stretch: bool = False) -> None:
    """The text with its words coloured by the change at the smallest radius, and a row a word."""
    console = Console(highlight=False)
    about = result.map
    name = f"{short_name(str(about['model']))}, output {about['output']}" if "model" in about else str(about["map"])
    console.print(escape(f"{printable(name)}: relative change of the output"), soft_wrap=True)
    words, ranks = result.ranked, result.ranks
    values = [word.lower[0] for word in words]
    coloured_words(console, result.text, [word.span for word in words], values, ranks, stretch)
    table = Table(box=None, padding=(0, 1))
    for title in ("rank", "word", ""):
        table.add_column(title)
    for radius in result.radii:
        table.add_column(f"radius {radius:g}", justify="right")
    table.add_column("found, proven")
    most = max(word.upper[-1] or word.lower[-1] for word in words)
    for word, rank in list(zip(words, ranks, strict=True))[:MOST_ROWS]:
        line = bar(console, word.lower[-1], word.upper[-1], most)
        cells = [three(value) for value in word.lower]
        table.add_row(rank_name(*rank), _name(word.text), f"#{word.word}", *cells, line)
    console.print(table)
    more(console, len(words) - MOST_ROWS, "words")
    console.print(result.reading, soft_wrap=True)
    console.print(NOT_IMPORTANCE, soft_wrap=True)
    console.print(f"{result.evaluations:,} evaluations, {result.seconds:.1f} s; checked: {result.checked}")


def _name(text: str, quiet: bool = False) -> Text:
    name = Text(printable(text), style="dim" if quiet else "", no_wrap=True)
    name.truncate(12, overflow="ellipsis")
    return name
