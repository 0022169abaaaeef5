"""Text that `wordsway measure` prints about many texts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from wordsway.cli.show_flips import class_name
from wordsway.cli.show_runs import plain_cell
from wordsway.measures.ranks import NOT_IMPORTANCE
from wordsway.support.digits import probability_name, three

if TYPE_CHECKING:
    from wordsway.studies.corpus import Corpus

_INTERVALS = "95% intervals hold for all rows of a table together, and are given from three texts on."
_LETTERS = 10  # of a text, and more where the terminal has room for them
_FIRST = 10  # words and errors that are shown
_TEXTS = 20  # texts that are shown
_SPARE = ("P", "prediction", "word")  # columns that go where a terminal is narrow, in this order
_OF_FLIPS = (
    "easier than: the share of the other words of its text that need a larger change to flip it (50% is an average "
    "word), as a mean over texts, so that a text near a tie counts like any other; words without a flip need more than "
    "those with one. found: share of places with a flip; real word: of those with a real word that flips."
)
_OF_TEXTS = (
    "flipped by: the nearest real word that flips the prediction, in the place of which word, at which distance; word: "
    "the one that needs the smallest change, which is flips at. Both are in units of the embedding's own norm."
)
_OF_CHANGES = "relative: its change over the mean of its text (1 is an average word), as a mean over texts."
_OF_STEPS = "One gradient step a word: a search (--budget quick) finds larger changes."


def show_corpus(found: "Corpus") -> None:
    """Print how much was measured, the texts, and then what kinds of words and words have in common over texts."""
    console = Console(highlight=False)
    console.print(plain_cell(found.summary()), soft_wrap=True)
    for subject in found.subjects:
        console.print(plain_cell(found.finding(subject)), soft_wrap=True)
        console.print(_fitting(console, found, subject))
        if len(found.by_text(subject)) > _TEXTS:
            console.print(f"and {len(found.by_text(subject)) - _TEXTS} more texts: -o FILE saves all")
        _over_texts(console, found, subject)
    kinds = {found.separating(subject) for subject in found.subjects}
    notes = ([_OF_TEXTS, _OF_FLIPS] if "flips_at" in kinds else []) + ([_OF_CHANGES] if kinds - {"flips_at"} else [])
    notes += [_OF_STEPS] if found.budget == "step" else []
    few = _INTERVALS if any(_intervals(found, s) for s in found.subjects) else ""
    for line in (*notes, f"Words are counted without regard to case. {few}".strip(), NOT_IMPORTANCE):
        console.print(line, soft_wrap=True)
    if found.empty:
        console.print(f"{len(found.empty)} empty texts were left out")
    for text, error in list(found.failed.items())[:_FIRST]:
        console.print(plain_cell(f"text {text} failed: {error}"), soft_wrap=True)
    if len(found.failed) > _FIRST:
        console.print(f"{len(found.failed)} texts failed; --json lists them")


def _over_texts(console: Console, found: "Corpus", subject: str) -> None:
    """Print the kinds of words, and the words that occur in several texts, if there are any."""
    flips, shared = found.separating(subject) == "flips_at", found.shared_words(subject)
    console.print(_grid("kind of word", found.kinds(subject), flips))
    if not shared:
        console.print("No word can be compared in several texts.")
        return
    console.print(_grid("word", shared[:_FIRST], flips))
    if len(shared) > _FIRST:
        console.print(f"and {len(shared) - _FIRST} other words of several texts")
    if found.leading(subject):
        console.print(plain_cell(found.leading(subject)), soft_wrap=True)


def _intervals(found: "Corpus", subject: str) -> bool:
    return any(row["low"] is not None for row in (*found.kinds(subject), *found.shared_words(subject)[:_FIRST]))


def _fitting(console: Console, found: "Corpus", subject: str) -> Table:
    """List the first texts, with as many letters of each as there is room for. Where there is too little room, columns
    are left out; the words that flip a text are whole."""
    wide, room, without = console.options.update(width=1000), -1, ()
    for count in range(len(_SPARE) + 1):
        without = _SPARE[:count]
        narrow = _texts(found, subject, _LETTERS, without)
        room = console.width - Measurement.get(console, wide, narrow).maximum
        if room >= 0:
            break
    return _texts(found, subject, max(1, _LETTERS + room), without)


def _texts(found: "Corpus", subject: str, width: int, without: Sequence[str]) -> Table:
    """List the first texts, with so many letters of each and some columns left out, and what leads in each."""
    rows, column = found.by_text(subject)[:_TEXTS], found.separating(subject)
    cells = [_cells(row, column) for row in rows]
    cells = [{name: value for name, value in each.items() if name not in without} for each in cells]
    table = Table(box=None, padding=(0, 1), collapse_padding=True, pad_edge=False)
    table.add_column("text", justify="right", min_width=4)
    table.add_column("", no_wrap=True, max_width=width)
    for title in cells[0]:
        numbers = title in ("P", "at", "flips at", column)
        table.add_column(title, justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
    for row, each in zip(rows, cells, strict=True):
        table.add_row(str(row["text_number"]), plain_cell(" ".join(row["text"].split())), *each.values())
    return table


def _cells(row: dict[str, Any], column: str) -> dict[str, Any]:
    """Write what is known of a text, each under the title of its column."""
    cells: dict[str, Any] = {}
    if "prediction" in row:
        cells |= {"prediction": plain_cell(class_name(row["prediction"])), "P": probability_name(row["probability"])}
    if column == "flips_at":
        real = "-" if row["real_word"] is None else f"{row['real_of']} > {row['real_word']}"
        cells |= {"flipped by": plain_cell(real), "at": three(row["real_distance"])}
    title = "flips at" if column == "flips_at" else column
    return cells | {"word": plain_cell(row["first_word"] or "-"), title: three(row[column])}


def _grid(heading: str, rows: Sequence[dict[str, Any]], flips: bool) -> Table:
    table = Table(box=None, padding=(0, 1))
    table.add_column(heading, overflow="fold")
    spans = any(row["low"] is not None for row in rows)
    more = ["found", "real word"] if flips else ["flips"] if "flips" in rows[0] else []
    for name in (
        "easier than" if flips else "relative",
        *(["95% interval"] if spans else []),
        *more,
        "places",
        "texts",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = ["-" if row["value"] is None else f"{row['value']:.0%}" if flips else three(row["value"])]
        if spans:
            digits = ".0%" if flips else ".2f"
            cells.append("-" if row["low"] is None else f"{row['low']:{digits}} to {row['high']:{digits}}")
        shares = [row[name] for name in (("flipped", "real") if flips else more)]
        cells += ["-" if share is None else f"{share:.0%}" for share in shares]
        table.add_row(plain_cell(row["text"]), *cells, str(row["occurrences"]), str(row["texts"]))
    return table
