"""Text that `wordsway measure` prints about many texts."""

import statistics
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
_FIRST = 10  # words, texts and errors that are shown
_OF_FLIPS = (
    "flips at: the smallest change of the word's embedding found to flip the prediction, in units of the embedding's "
    "own norm (mean over texts, where one was found); found: in how many of its places. real word: how often one of "
    "the real words tried in its place flips it."
)
_OF_TEXTS = (
    "Of each text: the nearest real word that flips its prediction, in the place of which word, and at which distance; "
    "then the word that needs the smallest change, and that change."
)
_OF_CHANGES = "relative: its change over the mean of its text (1 is an average word), as a mean over texts."
_OF_STEPS = "One gradient step a word: a search (--budget quick) finds larger changes."


def show_corpus(found: "Corpus") -> None:
    """Print how much was measured, the texts, and which kinds of words and words lead."""
    console = Console(highlight=False)
    console.print(plain_cell(found.summary()), soft_wrap=True)
    for subject in found.subjects:
        console.print(plain_cell(_sentence(found, subject)), soft_wrap=True)
        narrow = Measurement.get(console, console.options, _texts(found, subject, _LETTERS)).maximum
        console.print(_texts(found, subject, _LETTERS + max(0, console.width - narrow)))
        flips = found.separating(subject) == "flips_at"
        console.print(_grid("kind of word", found.kinds(subject), flips))
        words = found.words(subject)
        console.print(_grid("word", words[:_FIRST], flips))
        if words and all(row["occurrences"] == 1 for row in words[:_FIRST]):
            console.print("Each of these stands in one place only: examples, not a rule about the word.")
        if len(words) > _FIRST:
            console.print(f"and {len(words) - _FIRST} other words")
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


def _intervals(found: "Corpus", subject: str) -> bool:
    return any(row["low"] is not None for row in (*found.kinds(subject), *found.words(subject)[:_FIRST]))


def _sentence(found: "Corpus", subject: str) -> str:
    """Say in a line what separates the texts."""
    rows, column = found.by_text(subject), found.separating(subject)
    values = sorted(row[column] for row in rows if row[column] is not None)
    if column != "flips_at":
        what = "fall of the predicted probability" if column == "fall" else "relative change of the output"
        middle = statistics.median(values)
        return (
            f"{subject}: {what}, largest of a text: {three(values[0])} to {three(values[-1])}, median {three(middle)}"
        )
    real = sum(row["real_word"] is not None for row in rows)
    line = f"{subject}: one real word in the place of another flips the prediction of {real} of {len(rows)} texts"
    if not values:
        return f"{line}; no change of one word's embedding was found to"
    return f"{line}, a change of one word's embedding that of {len(values)} (smallest {three(values[0])} of its norm)"


def _texts(found: "Corpus", subject: str, width: int) -> Table:
    """List the first texts, with so many letters of each, and what leads in each."""
    rows, column = found.by_text(subject), found.separating(subject)
    flips, predicted = column == "flips_at", "prediction" in rows[0]
    table = Table(box=None, padding=(0, 1), collapse_padding=True, pad_edge=False)  # 80 columns are enough
    table.add_column("text", justify="right", min_width=4)
    table.add_column("", no_wrap=True, max_width=width)
    titles = ["prediction", "P"] if predicted else []
    titles += ["flipped by", "at", "word", "flips at"] if flips else ["word", column]
    for title in titles:
        numbers = title in ("P", "at", "flips at", column)
        if numbers:
            table.add_column(title, justify="right", no_wrap=True, min_width=max(6, len(title)))
        else:
            table.add_column(title, no_wrap=True, max_width=15 if title == "flipped by" else 10)
    for row in rows[:_FIRST]:
        cells = [str(row["text_number"]), plain_cell(" ".join(row["text"].split()))]
        cells += [plain_cell(class_name(row["prediction"])), probability_name(row["probability"])] if predicted else []
        if flips:
            real = "-" if row["real_word"] is None else f"{row['real_of']} > {row['real_word']}"
            cells += [plain_cell(real), three(row["real_distance"])]
        table.add_row(*cells, plain_cell(row["first_word"] or "-"), three(row[column]))
    if len(rows) > _FIRST:
        table.add_row("...", f"{len(rows) - _FIRST} more texts")
    return table


def _grid(heading: str, rows: Sequence[dict[str, Any]], flips: bool) -> Table:
    table = Table(box=None, padding=(0, 1))
    table.add_column(heading, overflow="fold")
    spans = any(row["low"] is not None for row in rows)
    more = ["found", "real word"] if flips else ["flips"] if "flips" in rows[0] else []
    for name in ("flips at" if flips else "relative", *(["95% interval"] if spans else []), *more, "places", "texts"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = [three(row["value"])]
        if spans:
            cells.append("-" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}")
        cells += [f"{row[name]:.0%}" for name in (("flipped", "real") if flips else more)]
        table.add_row(plain_cell(row["text"]), *cells, str(row["occurrences"]), str(row["texts"]))
    return table
