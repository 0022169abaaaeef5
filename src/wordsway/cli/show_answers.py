"""Text that `wordsway measure --model` prints: an answer in the units of the model's user."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable, short_name
from wordsway.cli.shading import bar, coloured, coloured_words
from wordsway.cli.show import MOST_ROWS, more
from wordsway.measures.flip_radii import flipped_by
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name
from wordsway.support.digits import probability_name, three

_TIED = 0.9  # of the prediction's probability: a class that has more is nearly as likely
_LETTERS = (24, 20, 16, 12, 8, 6)  # of a name: as many as fit
_BARS = (8, 4)  # characters of a bar: the longer one where it fits

if TYPE_CHECKING:
    from wordsway.measures.flip_radii import FlipRadii, WordFlip
    from wordsway.measures.profile_result import RadiusProfile


@dataclass(frozen=True)
class _Column:
    """A column of a table: its title, the side that its cells keep to, and a cell for each word. Only a cell that is a
    `Text` may lose its end."""

    title: str
    side: Literal["left", "right"]
    cells: list[Text] | list[str]


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
    for k, table in enumerate(_tables(console, result)):
        console.print(*([""] if k else []), table, sep="\n")
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


def _tables(console: Console, result: "FlipRadii") -> list[Table]:
    """One table where it fits into the terminal; else one about real words and one about changes of the embedding."""
    for width in _BARS:
        by_word, by_change, best = _columns(console, result, width)
        whole = _table(result, [*by_word, *by_change, *best], _LETTERS[0])
        if _width(console, whole) <= console.width:
            return [whole]
    by_word, by_change, best = _columns(console, result, _BARS[0])
    return [_shortened(console, result, columns) for columns in ([*by_word, *best], by_change)]


def _shortened(console: Console, result: "FlipRadii", columns: list[_Column]) -> Table:
    """Make a table with as many letters of each name as there is room for: no number is cut off."""
    tables = (_table(result, columns, letters) for letters in _LETTERS)
    return next((table for table in tables if _width(console, table) <= console.width), _table(result, columns, 1))


def _width(console: Console, table: Table) -> int:
    endless = console.options.update(width=10_000)  # or else a table's width is at most the terminal's
    return Measurement.get(console, endless, table).maximum


def _columns(console: Console, result: "FlipRadii", width: int) -> tuple[list[_Column], list[_Column], list[_Column]]:
    """Columns about the nearest real word that flips, about the smallest change that does, and about the best word."""
    words, causal = result.by_real, result.kind != "class"
    reals, bests = [word.real for word in words], [word.best for word in words]
    places = dict(zip(result.words, result.flip_ranks, strict=True))
    by_word = [
        _Column("flipped by", "left", [_name(flipped_by(word), quiet=word.real is None) for word in words]),
        _Column("at", "right", [three(None if real is None else real.radius) for real in reals]),
    ]
    by_change = [
        _Column("flips at", "right", [three(word.radius) for word in words]),
        _Column("", "left", [f"({rank_name(*places[word])})" for word in words]),
        _Column("", "left", [_flip_bar(console, word, result.limit, width) for word in words]),
    ]
    if causal:
        by_word.append(_Column("to", "left", [_name("-" if real is None else repr(real.to)) for real in reals]))
        by_change.append(_Column("to", "left", [_name("-" if word.to is None else repr(word.to)) for word in words]))
    if result.lowest_differ:
        by_change.append(_Column("P falls to", "right", [probability_name(word.lowest) for word in words]))
    best = [
        _Column("best word", "left", [_name("-" if word is None else word.text) for word in bests]),
        _Column("P", "right", [probability_name(None if word is None else word.probability) for word in bests]),
    ]
    return by_word, by_change, best


def _table(result: "FlipRadii", columns: list[_Column], letters: int) -> Table:
    """Make a table of a row a word, with so many letters of each name."""
    table = Table(box=None, padding=(0, 1), collapse_padding=True)
    words = result.by_real
    ranks = [rank_name(*rank) for rank in result.real_ranks]
    named = [
        _Column("rank", "left", ranks),
        _Column("word", "left", [_name(word.text) for word in words]),
        _Column("", "left", [f"#{word.word}" for word in words]),
    ]
    shown = [*named, *columns]
    for column in shown:
        table.add_column(column.title, justify=column.side, no_wrap=True)
    for k in range(min(len(words), MOST_ROWS)):
        cells = (column.cells[k] for column in shown)
        table.add_row(*(_cut(cell, letters) if isinstance(cell, Text) else cell for cell in cells))
    return table


def _flip_bar(console: Console, word: "WordFlip", limit: float, width: int) -> Text:
    """Draw where the smallest flip lies: from what is proven to be too short, to what was found to be long enough."""
    found = limit if word.radius is None else word.radius
    return bar(console, min(word.certified, found), found, limit, width)


def _notes(console: Console, result: "FlipRadii") -> None:
    """Say what the columns mean."""
    last = f"{result.seconds:.1f} s; checked: {result.checked}"
    for line in (*result.column_notes, *_bar_note(result), NOT_IMPORTANCE, last):
        console.print(escape(printable(line)), soft_wrap=True)


def _bar_note(result: "FlipRadii") -> tuple[str, ...]:
    """Say what the bars are, where they are long enough to be seen."""
    longest = max(result.limit if word.radius is None else word.radius for word in result.words)
    if longest < result.limit / (2 * _BARS[-1]):
        return ()
    proven = any(word.certified > 0 for word in result.words)
    pale = "Pale: a smaller one that flips may exist there." if proven else "It is pale: a smaller one may exist."
    return (f"Bar: up to the change found. {pale}",)


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
    return _cut(Text(printable(text), style="dim" if quiet else "", no_wrap=True), _LETTERS[0])


def _cut(cell: Text, letters: int) -> Text:
    """Leave so many letters of a name."""
    shorter = cell.copy()
    shorter.truncate(letters, overflow="ellipsis")
    return shorter
