"""Text that `wordsway measure --model` prints: an answer in the units of the model's user."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable, short_name
from wordsway.cli.shading import bar, coloured, coloured_words
from wordsway.cli.show import MOST_ROWS, more
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name
from wordsway.support.digits import three

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
        near = min(reals, default=1.0)
        shades = [(word.span, 0.0 if word.real is None else near / word.real.radius) for word in words]
        ends = ("no real word found" if not stretch else "far", f"real word at {three(near)}" if reals else "-")
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
    said += f", probability {_left(result.probability)}"
    if result.second is None:
        return said
    other, near = result.second
    said += f"; next: {printable(repr(other))}, {_left(near)}"
    return said + (". Nearly a tie: almost any change flips it" if near > _TIED * result.probability else "")


def _words(console: Console, result: "FlipRadii") -> Table:
    table = Table(box=None, padding=(0, 1), collapse_padding=True)
    falls, causal = _falls(result), result.kind != "class"
    titles = ["rank", "word", "", "flipped by", "at", *(["to"] if causal else []), "flips at", ""]
    titles += [*(["to"] if causal else []), *(["P falls to"] if falls else []), "best word", "P"]
    for title in titles:
        side = "right" if title in ("at", "flips at", "P falls to", "P") else "left"
        table.add_column(title, justify=side, no_wrap=True)
    for word, rank in list(zip(result.by_real, result.real_ranks, strict=True))[:MOST_ROWS]:
        real, best = word.real, word.best
        cells = [_name("-" if real is None else real.text), "-" if real is None else three(real.radius)]
        cells += [_name("-" if real is None else repr(real.to))] if causal else []
        cells += [three(word.radius), _flip_bar(console, word, result.limit)]
        cells += [_name("-" if word.to is None else repr(word.to))] if causal else []
        cells += [_left(word.lowest)] if falls else []
        cells += [_name("-" if best is None else best.text), _left(None if best is None else best.probability)]
        table.add_row(rank_name(*rank), _name(word.text), f"#{word.word}", *cells)
    return table


def _falls(result: "FlipRadii") -> bool:
    """Whether the lowest probabilities found differ at all, as far as they are written."""
    return len({_left(word.lowest) for word in result.words}) > 1


def _flip_bar(console: Console, word: "WordFlip", limit: float) -> Text:
    """Draw where the smallest flip lies: from what is proven to be too short, to what was found to be long enough."""
    found = limit if word.radius is None else word.radius
    return bar(console, min(word.certified, found), found, limit, 8)


def _notes(console: Console, result: "FlipRadii") -> None:
    """Say what the columns mean."""
    tried = sorted({word.tried for word in result.words if word.tried})
    count = " to ".join(f"{number:,}" for number in dict.fromkeys(tried[:1] + tried[-1:])) or "no"
    unit = "in units of the word's own norm"
    left_out = sorted({word.untried for word in result.words if word.untried})
    proven = any(word.certified > 0 for word in result.words)
    where = "from what is proven to what was found" if proven else "somewhere there; nothing is proven"
    of = f"the probability of {printable(repr(result.prediction))}"
    within = f"when the embedding may change by {result.limit:g} of its norm"
    same = _left(result.words[0].lowest)
    same = f"below {same[1:]}" if same.startswith("<") else f"to {same} or less"
    lines = [
        f"flipped by: the nearest real word that changes the prediction, and its distance {unit}. In a word's place "
        f"{count} of the nearest words were tried" + (f"; none where: {', '.join(left_out)}." if left_out else ".")
        + " rank: by that distance; words without one share a rank, and stand in the order of flips at.",
        f"flips at: the smallest change of the embedding found to flip the prediction, {unit}; pale: the true smallest "
        f"one lies {where}.",
        f"P falls to: the lowest value of {of} that was found {within}; lower ones may exist." if _falls(result)
        else f"Any of these words can push {of} {same} {within}." if result.words[0].lowest is not None else "",
        f"best word: of the real words tried, the one that lowers {of} most, and what is left of it (P).",
        NOT_IMPORTANCE,
        f"{result.seconds:.1f} s; checked: {result.checked}",
    ]  # fmt: skip
    for line in filter(None, lines):
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
    console.print(
        f"The largest relative change that a search found when a word's embedding may change by so many times its own "
        f"norm. Words are ordered at radius {small:g}: at larger ones nearly all words of a model are equal. Words "
        f"share ranks where they differ by less than the search varies, {result.search_spread:.0%}.",
        soft_wrap=True,
    )
    console.print(NOT_IMPORTANCE, soft_wrap=True)
    console.print(f"{result.evaluations:,} evaluations, {result.seconds:.1f} s; checked: {result.checked}")


def _left(probability: float | None) -> str:
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
