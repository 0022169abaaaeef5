"""Text that `wordsway measure` prints about a text over several draws of the weights."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable
from wordsway.cli.shading import bar, coloured_words
from wordsway.cli.show import MOST_ROWS, more
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name
from wordsway.support.digits import three
from wordsway.support.names import MAPS, either

if TYPE_CHECKING:
    from wordsway.measures.draws_result import DrawComparison, MapDraws, WordDraws

_MOST_NAMED = 5  # words in a sentence
_A_TABLE = 2  # maps: so many fit into 80 columns


def draw_tables(result: "DrawComparison", stretch: bool = False) -> None:
    """The text with its words coloured, a row a word with two maps side by side, and what is separated."""
    console = Console(highlight=False)
    first = result.maps[0]
    maps = either((_about(each.name) for each in result.maps), "and")
    console.print(escape(f"{maps}; {_draws(result)}, n={result.n}, d={result.d}, {_encoder(result)}"), soft_wrap=True)
    spans, means = [word.span for word in first.words], [word.mean for word in first.words]
    coloured_words(console, result.text, spans, means, [(word.rank, word.tied) for word in first.words], stretch)
    for start in range(0, len(result.maps), _A_TABLE):
        console.print(*([""] if start else []), _table(console, result, start), sep="\n")
    more(console, len(first.words) - MOST_ROWS, "words")
    console.print(escape(_averages(result)), soft_wrap=True)
    for each in result.maps:
        console.print(escape(separation_sentence(result, each)), soft_wrap=True)
    console.print(_reading(result), soft_wrap=True)
    console.print(NOT_IMPORTANCE, soft_wrap=True)


def separation_sentence(result: "DrawComparison", each: "MapDraws") -> str:
    """Say which words of one map may be the first, and how sure that is."""
    count, top = len(each.words), each.top
    if count < 2:
        return f"{each.name}: one word was measured, so there is nothing to compare."
    names = ", ".join(printable(word.text) for word in top[:_MOST_NAMED])
    names += f" and {len(top) - _MOST_NAMED} more" if len(top) > _MOST_NAMED else ""
    how = "the lower bound of one must be above the upper bound of the other"
    if each.margin is not None:
        how = f"means must differ by more than {three(each.margin)}; {result.level:.0%} for all pairs together"
        how += f", and {each.misses:.0%} for what the search may miss" if each.misses else ""
    if len(top) == 1:
        said = f"largest possible effect found: {names}, separated from all other words"
    elif not any(each.separated(a, b) for a in each.words for b in each.words):
        said = "no two words are separated"
    else:
        said = f"rank {rank_name(1, len(top))}, not separated: {names}"
    return f"{each.name}: {said} ({how})."


def _averages(result: "DrawComparison") -> str:
    """Say the mean over words, and the typical change beside it."""
    said = [
        f"{each.name} {three(each.mean)}"
        + ("" if each.typical is None else f", typical (random) change {three(each.typical)}")
        for each in result.maps
    ]
    return f"Mean over words: {'; '.join(said)}. {result.headline}."


def _table(console: Console, result: "DrawComparison", start: int) -> Table:
    """Make the table of the maps from `start` on; its words are in the order of the first map of all."""
    maps = result.maps[start : start + _A_TABLE]
    table = Table(box=None, padding=(0, 1))
    table.add_column("word")
    table.add_column("")
    for m, each in enumerate(maps):
        table.add_column("rank", no_wrap=True)
        table.add_column(each.name, justify="right", overflow="fold")  # a name with options may be long
        table.add_column("sd", justify="right", no_wrap=True)
        if m == 0:
            table.add_column("found, proven", no_wrap=True)
    words = [{word.word: word for word in each.words} for each in maps]
    most = max(word.proven or word.mean for word in maps[0].words)
    for about in result.maps[0].ranked[:MOST_ROWS]:
        name = Text(printable(about.text), no_wrap=True)
        name.truncate(16, overflow="ellipsis")
        cells: list[str | Text] = [name, f"#{about.word}"]
        for m, known in enumerate(words):
            cells += _cells(known[about.word])
            if m == 0:
                cells.append(bar(console, known[about.word].mean, known[about.word].proven, most))
        table.add_row(*cells)
    return table


def _cells(word: "WordDraws") -> list[str]:
    return [rank_name(word.rank, word.tied), three(word.mean), three(word.sd) if len(word.lower) > 1 else "-"]


def _about(name: str) -> str:
    about = MAPS.get(name.split(":", 1)[0])
    return name if about is None else f"{name} ({about.about})"


def _draws(result: "DrawComparison") -> str:
    count = len(result.seeds)
    said = "1 draw of the weights" if count == 1 else f"{count} draws of the weights"
    if count < result.asked:
        said += f" ({result.asked} would take too long here: --weights {result.asked} makes them)"
    return f"{said}, seed {result.seeds[0]}"


def _encoder(result: "DrawComparison") -> str:
    layer = f" layer {result.text['layer']}" if "layer" in result.text else ""
    return f"encoder {printable(str(result.text.get('encoder')))}{layer}"


def _reading(result: "DrawComparison") -> str:
    """Say what the numbers are."""
    reach = "its own norm" if result.radius == 1 else f"{result.radius:g} times its own norm"
    over = "Mean and sd over draws of the" if len(result.seeds) > 1 else "The"
    return (
        f"{over} largest relative change that a search found when a word's embedding may change by {reach}; pale: up "
        f"to the proven bound. {result.seconds:.1f} s."
    )
