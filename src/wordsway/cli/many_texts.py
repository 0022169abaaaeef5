"""`wordsway measure` of many texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.cli.help_pages import TextCommand
from wordsway.cli.output import finish
from wordsway.cli.saving import check_files
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.studies.corpus import Corpus

_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
_OF_MANY = ("file", "text_column", "lines", "limit", "models", "maps", "of", "radius", "budget", "max_tokens", "seed",
            "engine", "workers", "out", "as_json", "quiet", "debug", "own")  # fmt: skip
_FIRST = 10  # words of a corpus that are shown
_READING = (
    "relative: effect over the mean of its text; 1 is an average word. The 95% intervals of a table hold for all its "
    "rows together; many words are ordered by their lower ends. Effects are lower bounds of the largest possible ones; "
    "they are not importance."
)


def asks_for_many(file: Path | None, text_column: str | None, lines: bool) -> bool:
    """Tell whether the file is a table of texts, or has one text a line."""
    return lines or text_column is not None or (file is not None and file.suffix.lower() in _TABLES)


def answered(text: str | None) -> bool:
    """Answer a question about the texts of a file, or about several models; False where it is about one text and one
    model, or maps."""
    asked = TextCommand.asked.get().values
    if asks_for_many(asked["file"], asked["text_column"], asked["lines"]):
        answer_many()
        return True
    _refuse_of_a_table()
    if len(asked["models"] or ()) < 2:
        return False
    from wordsway.cli.several_models import answer_models

    answer_models(text)
    return True


def _refuse_of_a_table() -> None:
    """Refuse options that only a table of texts has: they must not be ignored."""
    for name in ("limit", "engine", "workers"):
        if name in TextCommand.asked.get().given:
            raise InputError(f"--{name} is about many texts: a table (--file reviews.csv), or --lines", argument=name)


def answer_many() -> None:
    """Measure the texts of a file, as the command's options say."""
    from wordsway.datasets.readers import read_texts
    from wordsway.studies.cells.words_cell import STEP
    from wordsway.studies.corpus import measure_texts
    from wordsway.support.progress import progress_bar, say

    asked = _options(_OF_MANY, "many texts")
    if asked["file"] is None:
        raise InputError("--text-column and --lines are about the texts of a --file", argument="file")
    out: Sequence[Path] = asked["out"] or ()
    check_files(out)
    texts = read_texts(asked["file"], asked["text_column"] or "text", asked["lines"])
    if asked["limit"] is not None and asked["limit"] < len(texts):
        say(f"the first {asked['limit']} of {len(texts)} texts (--limit)")
        texts = texts[: asked["limit"]]
    budget = asked["budget"]
    radius = _radius(asked["radius"], "radius" in asked["given"], 0.1)
    store = None if not out else out[0].with_suffix(".run")
    if store is not None:
        say(f"each text is kept in {store} as soon as it is measured; the same command goes on from there")
    if budget is None:
        say("one gradient step a word (--budget quick searches, for much longer); changes are at least what is found")
    subject: dict[str, Any] = {"model": asked["models"]} if asked["models"] else {"map": asked["maps"] or ["raf"]}
    with progress_bar("text", "--limit N") as update:
        found = measure_texts(
            texts,
            **subject,
            output=asked["of"],
            radius=radius,
            budget=STEP if budget is None else int(budget) if budget.isdecimal() else budget,
            max_tokens=asked["max_tokens"],
            seed=asked["seed"],
            store=store,
            engine=asked["engine"],
            workers=asked["workers"],
            progress=update,
        )
    finish(found, asked["as_json"], out, _show_corpus)


def _options(allowed: Sequence[str], what: str) -> dict[str, Any]:
    """Read the options of the command; one that was given and has no meaning here is an error."""
    asked = TextCommand.asked.get()
    for name, option in asked.given.items():
        if name not in allowed:
            raise InputError(f"{option} does not go with {what}; leave it out")
    return {**asked.values, "given": asked.given}


def _radius(text: str, given: bool, usual: float) -> float:
    from wordsway.cli.option_values import numbers_of

    radii = numbers_of(text, "--radius") if given else [usual]
    if len(radii) != 1 or not 0 < radii[0] < float("inf"):
        raise InputError(f"--radius must be one positive number here, got {text!r}")
    return radii[0]


def _show_corpus(found: "Corpus") -> None:
    from rich.console import Console

    from wordsway.cli.show_runs import plain_cell

    console = Console(highlight=False)
    console.print(plain_cell(found.summary()), soft_wrap=True)
    for subject in found.subjects:
        rows = found.by_text(subject)
        largest = sorted(row["largest"] for row in rows)
        middle = largest[len(largest) // 2]
        line = f"{subject}: {found.unit}, largest of a text: {largest[0]:.3g} to {largest[-1]:.3g}, median {middle:.3g}"
        console.print(plain_cell(line), soft_wrap=True)
        flips = [row for row in rows if row["flips"]]
        if rows[0]["flips"] is not None:
            console.print(
                f"a move of one word flips the prediction of {len(flips)} of {len(rows)} texts", soft_wrap=True
            )
        console.print(_grid("kind of word", found.kinds(subject)))
        console.print(_grid("word", found.words(subject)[:_FIRST]))
    console.print(_READING, soft_wrap=True)
    if found.empty:
        console.print(f"{len(found.empty)} empty texts were left out")
    for text, error in list(found.failed.items())[:5]:
        console.print(plain_cell(f"text {text} failed: {error}"), soft_wrap=True)
    if len(found.failed) > 5:
        console.print(f"{len(found.failed)} texts failed; --json lists them")


def _grid(heading: str, rows: Sequence[dict[str, Any]]) -> Any:
    from rich.table import Table

    from wordsway.cli.show_runs import plain_cell

    table = Table(box=None, padding=(0, 1))
    table.add_column(heading, overflow="fold")
    for name in ("relative", "95% interval", "occurrences", "texts", "flips"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        ends = "-" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"
        flips = "" if row["flips"] is None else f"{row['flips']:.0%}"
        counts = (str(row["occurrences"]), str(row["texts"]), flips)
        table.add_row(plain_cell(row["text"]), f"{row['relative']:.2f}", ends, *counts)
    return table
