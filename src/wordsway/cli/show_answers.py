"""Text that `wordsway measure --model` prints: an answer in the units of the model's user."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable, short_name, three
from wordsway.cli.shading import bar, coloured
from wordsway.cli.show import MOST_ROWS, more
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name, tie_levels

if TYPE_CHECKING:
    from wordsway.measures.flip_radii import FlipRadii, WordFlip
    from wordsway.measures.profile_result import RadiusProfile


def prediction_tables(result: "FlipRadii", stretch: bool = False) -> None:
    """The prediction, the text with its words coloured by the nearest real word that flips it, and a row a word."""
    console = Console(highlight=False)
    what = "prediction" if result.kind == "class" else result.kind
    sure = "" if result.probability is None else f", probability {written_probability(result.probability)}"
    name = short_name(str(result.map.get("model", result.map["map"])))
    console.print(escape(f"{name}, {what}: {printable(repr(result.prediction))}{sure}"), soft_wrap=True)
    words = result.by_real
    reals = [word.real.radius for word in words if word.real is not None]
    if result.text is not None:
        console.print()
        near = min(reals, default=1.0)
        shades = [(word.span, 0.0 if word.real is None else near / word.real.radius) for word in words]
        ends = ("no real word found" if not stretch else "far", f"real word at {three(near)}" if reals else "-")
        coloured(console, result.text, shades, ends, stretch)
        console.print()
    console.print(_words(console, result))
    more(console, len(words) - MOST_ROWS, "words")
    _notes(console, result)


def _words(console: Console, result: "FlipRadii") -> Table:
    table = Table(box=None, padding=(0, 1), collapse_padding=True)
    titles = ("rank", "word", "", "flipped by", "at", "flips at", "", "P falls to", "best word", "P")
    for title in titles:
        side = "right" if title in ("at", "flips at", "P falls to", "P") else "left"
        table.add_column(title, justify=side, no_wrap=True)
    for word, rank in list(zip(result.by_real, result.real_ranks, strict=True))[:MOST_ROWS]:
        cells = [_name("-") if word.real is None else _name(word.real.text)]
        distance = "-" if word.real is None else three(word.real.radius)
        best = _name("-") if word.best is None else _name(word.best.text)
        left = written_probability(None if word.best is None else word.best.probability)
        table.add_row(
            rank_name(*rank), _name(word.text), f"#{word.word + 1}", *cells, distance, three(word.radius),
            _flip_bar(console, word, result.limit), written_probability(word.lowest), best, left,
        )  # fmt: skip
    return table


def _flip_bar(console: Console, word: "WordFlip", limit: float) -> Text:
    """Draw where the smallest flip lies: from what is proven to be too short, to what was found to be long enough."""
    found = limit if word.radius is None else word.radius
    return bar(console, min(word.certified, found), found, limit, 8)


def _notes(console: Console, result: "FlipRadii") -> None:
    """Say what the columns mean."""
    tried = sorted({word.tried for word in result.words if word.tried})
    count = " to ".join(f"{number:,}" for number in dict.fromkeys(tried[:1] + tried[-1:])) or "no"
    unit = "in units of the word's own length"
    lines = [
        f"flipped by: the nearest real word that changes the prediction, and its distance {unit} ({count} of the "
        "nearest words were tried in each place). Words are ordered by it, then by flips at.",
        f"flips at: the smallest change of the embedding found to flip the prediction, {unit}; pale: where the true "
        "smallest one lies.",
        f"P falls to: the lowest probability of {printable(repr(result.prediction))} found when the embedding may "
        f"change by {result.limit:g} of its length; the largest possible change is at least that.",
        "best word: of the real words tried, the one that lowers that probability most.",
        NOT_IMPORTANCE,
        f"{result.seconds:.1f} s; checked: {result.checked}",
    ]
    for line in lines:
        console.print(escape(line), soft_wrap=True)


def encoder_tables(result: "RadiusProfile", stretch: bool = False) -> None:
    """The text with its words coloured by the change at the smallest radius, and a row a word."""
    console = Console(highlight=False)
    about = result.map
    name = f"{short_name(str(about['model']))}, output {about['output']}" if "model" in about else str(about["map"])
    small = result.radii[0]
    console.print(escape(f"{printable(name)}: relative change of the output"), soft_wrap=True)
    words, ranks = result.ranked, result.ranks
    values = [word.lower[0] for word in words]
    if result.text is not None:
        console.print()
        levels = values if stretch else tie_levels(values, ranks)
        shades = [(word.span, level) for word, level in zip(words, levels, strict=True)]
        coloured(console, result.text, shades, (three(min(values)) if stretch else "0", three(max(values))), stretch)
        console.print()
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
        table.add_row(rank_name(*rank), _name(word.text), f"#{word.word + 1}", *cells, line)
    console.print(table)
    more(console, len(words) - MOST_ROWS, "words")
    console.print(
        f"The largest relative change that a search found when a word's embedding may change by so many times its own "
        f"length. Words are ordered at radius {small:g}: at larger ones nearly all words of a model are equal. Words "
        f"share ranks where they differ by less than the search varies, {result.search_spread:.0%}.",
        soft_wrap=True,
    )
    console.print(NOT_IMPORTANCE, soft_wrap=True)
    console.print(f"{result.evaluations:,} evaluations, {result.seconds:.1f} s; checked: {result.checked}")


def written_probability(probability: float | None) -> str:
    """Write a probability; the last digits of one that is nearly 0 or 1 say nothing."""
    if probability is None:
        return "-"
    if probability >= 0.9995:
        return ">0.999"
    return "<0.001" if probability < 5e-4 else f"{probability:.3f}"


def _name(text: str) -> Text:
    name = Text(printable(text), no_wrap=True)
    name.truncate(12, overflow="ellipsis")
    return name
