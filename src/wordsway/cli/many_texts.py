"""`wordsway measure` of many texts, or of several models or maps at once."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wordsway.cli.command import number
from wordsway.cli.help_pages import TextCommand
from wordsway.cli.output import finish, ways
from wordsway.cli.saving import check_files
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.measures.comparison import Comparison

_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
_OF_MANY = ("file", "text_column", "lines", "limit", "models", "maps", "of", "radius", "budget", "max_tokens", "seed",
            "engine", "workers", "out", "as_json", "quiet", "debug", "own")  # fmt: skip
_OF_SEVERAL = ("text", "file", "models", "maps", "of", "at", "radius", "budget", "max_tokens", "seed", "device", "out",
               "as_json", "quiet", "debug", "own", "word", "no_certificate", "encoder")  # fmt: skip


def asks_for_many(file: Path | None, text_column: str | None, lines: bool) -> bool:
    """Tell whether the file is a table of texts, or has one text a line."""
    return lines or text_column is not None or (file is not None and file.suffix.lower() in _TABLES)


def answered(text: str | None) -> bool:
    """Answer a question about the texts of a file, or about several models or maps; False where it is about one of
    each."""
    asked = TextCommand.asked.get().values
    if asks_for_many(asked["file"], asked["text_column"], asked["lines"]):
        answer_many()
        return True
    if max(len(asked["models"] or ()), len(asked["maps"] or ())) < 2:
        return _refuse_of_a_table()
    if text is None:
        raise InputError("several models or maps are compared on a text; give one in quotes", argument="text")
    answer_several(text)
    return True


def _refuse_of_a_table() -> bool:
    """Refuse options that only a table of texts has: they must not be ignored."""
    for name in ("limit", "engine", "workers"):
        if name in TextCommand.asked.get().given:
            raise InputError(f"--{name} is about many texts: a table (--file reviews.csv), or --lines", argument=name)
    return False


def answer_many() -> None:
    """Measure the texts of a file, as the command's options say."""
    from wordsway.cli.show_texts import show_corpus
    from wordsway.datasets.readers import read_texts
    from wordsway.studies.texts_run import texts_run
    from wordsway.support.progress import progress_bar, say

    asked = _options(_OF_MANY, "many texts")
    if asked["file"] is None:
        raise InputError("--text-column and --lines are about the texts of a --file", argument="file")
    out: Sequence[Path] = asked["out"] or ()
    check_files(out)
    texts, columns = read_texts(asked["file"], asked["text_column"] or "text", asked["lines"])
    if asked["limit"] is not None and asked["limit"] < len(texts):
        say(f"the first {asked['limit']} of {len(texts)} texts (--limit)")
        texts = texts[: asked["limit"]]
        columns = {name: values[: asked["limit"]] for name, values in columns.items()}
    budget = asked["budget"]
    options: dict[str, Any] = {name: asked[name] for name in ("max_tokens", "seed")}
    options |= {
        "output": asked["of"],
        "radius": _radius(asked["radius"], True, 1.0) if "radius" in asked["given"] else None,
    }
    options["budget"] = int(budget) if budget is not None and budget.isdecimal() else budget
    store = None if not out else out[0].with_suffix(".run")
    work = texts_run(
        texts,
        asked["models"] or None,
        None if asked["models"] else asked["maps"] or ["raf"],
        columns,
        options,
        store=store,
        engine=asked["engine"],
        workers=asked["workers"],
    )
    for name in set(columns) - set(work.columns):
        say(f"your column {name!r} is called 'your_{name}' in the table, which has one of that name")
    plan = work.plan()
    if store is not None:
        say(f"each text is kept in {store} as soon as it is measured; the same command goes on from there")
    if plan.done:
        say(f"{plan.done} of {len(plan.jobs)} texts already measured")
    with waiting_for_a_model(work.field == "model" and bool(plan.pending)):
        expected = work.seconds(plan)
    with stopped_by_signals(store), progress_bar("word", _shorter(budget, work.field), expected) as update:
        found = work.measure(update)
    finish(found, asked["as_json"], out, show_corpus)


def _shorter(budget: str | None, field: str) -> str:
    """Name options that would make a table of texts shorter."""
    step = field == "model" and budget != "step"
    return ways({"--limit N": True, "--budget quick": budget not in ("quick", "step"), "--budget step": step})


@contextmanager
def waiting_for_a_model(loads: bool) -> Iterator[None]:
    """Say that a model is loaded and timed, if it is."""
    from wordsway.support.progress import waiting

    with waiting("loading the model and timing a run") if loads else nullcontext():
        yield


@contextmanager
def stopped_by_signals(store: Path | None) -> Iterator[None]:
    """End a run in order, with a line that says what is kept, when it is asked to stop: by Ctrl-C or SIGTERM."""
    before = (
        signal.signal(signal.SIGTERM, _interrupt) if threading.current_thread() is threading.main_thread() else None
    )
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing is kept without -o FILE"
        if store is not None:
            kept = f"texts that were measured are kept in {store}; the same command goes on from there"
        print(f"\nwordsway: stopped; {kept}", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def answer_several(text: str) -> None:
    """Measure one text with several models or maps, and show them side by side."""
    from wordsway.measures.comparison import compare_results
    from wordsway.measures.question import Question
    from wordsway.support.progress import progress_bar

    asked = _options(_OF_SEVERAL, "several models or maps")
    check_files(asked["out"])
    if asked["models"] and asked["maps"]:
        raise InputError("--model and --map: give several models, or several maps, not both")
    names = asked["models"] or asked["maps"]
    if len(set(names)) < len(names):
        raise InputError(f"the same one twice: {', '.join(names)}; leave one of them out")
    budget = asked["budget"]
    options: dict[str, Any] = {name: asked[name] for name in ("word", "max_tokens", "seed", "device")}
    options |= {"radius": _radius(asked["radius"], True, 1.0), "certificate": not asked["no_certificate"]}
    options["budget"] = budget if budget is None or not budget.isdecimal() else int(budget)
    if asked["models"]:
        options |= {name: asked[old] for name, old in (("output", "of"), ("at", "at")) if asked[old] is not None}
    elif asked["encoder"] is not None:
        options["encoder"] = asked["encoder"]
    results = []
    for name in names:
        question = Question(text, **({"model": name} if asked["models"] else {"map": name}), random_draws=0, **options)
        with progress_bar("token") as update:
            results.append(question.measure(progress=lambda done, total, name=name: update(done, total, name)))
    finish(
        compare_results(results, [Path(name).name for name in names]), asked["as_json"], asked["out"], show_comparison
    )


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


def show_comparison(found: "Comparison") -> None:
    """Print results side by side."""
    from rich.console import Console
    from rich.table import Table

    from wordsway.cli.show_runs import plain_cell

    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 1))
    rows = found.records()
    numbers = (*found.names, "difference")
    keys = [name for name in rows[0] if name not in (*numbers, "tied")]
    for name in keys:
        table.add_column(plain_cell(name), overflow="fold")
    for name in numbers:
        table.add_column(plain_cell(name), justify="right", overflow="fold")
    table.add_column("")
    for row in rows:
        mark = "tied" if row["tied"] else ""
        table.add_row(*(plain_cell(str(row[name])) for name in keys), *(number(row[name]) for name in numbers), mark)
    console.print(table)
    console.print(plain_cell(found.summary()), soft_wrap=True)
    if found.tie:
        console.print(f"tied: closer than {found.tie:.0%}, by which a search varies", soft_wrap=True)
    for name, count in zip(found.names, found.only, strict=True):
        if count:
            console.print(plain_cell(f"{count} rows only in {name}"), soft_wrap=True)
