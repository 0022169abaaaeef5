"""`wordsway measure` of many texts."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer

from wordsway.cli.help_pages import TextCommand
from wordsway.cli.option_values import budget_of
from wordsway.cli.output import finish, ways
from wordsway.cli.saving import check_files
from wordsway.support.errors import InputError
from wordsway.support.files import is_stream

_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
_OF_MANY = ("file", "text_column", "lines", "limit", "models", "maps", "of", "radius", "budget", "max_tokens", "seed",
            "engine", "workers", "out", "as_json", "quiet", "debug", "own")  # fmt: skip


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
    from wordsway.cli.show_texts import show_corpus
    from wordsway.datasets.readers import read_texts
    from wordsway.studies.texts_run import texts_run
    from wordsway.support.progress import progress_bar, say

    given = TextCommand.asked.get().given
    if "file" not in given:
        option = given.get("text_column") or given["lines"]
        raise InputError(f"{option} is about the texts of a file; give it with --file", argument="file")
    if "text" in given:
        raise InputError("give one text in quotes or the texts of a --file, not both", argument="text")
    asked = _options(_OF_MANY, "the texts of a file")
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
    options["budget"] = budget_of(budget)
    store = None if not out or is_stream(out[0]) else out[0].with_suffix(".run")
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
    with said_what_is_kept(store), progress_bar("word", _shorter(budget, work.field), expected) as update:
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
def said_what_is_kept(store: Path | None) -> Iterator[None]:
    """Say what is kept when a run is asked to stop, by Ctrl-C or SIGTERM."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing is kept without -o FILE"
        if store is not None:
            kept = f"texts that were measured are kept in {store}; the same command goes on from there"
        print(f"\nwordsway: stopped; {kept}", file=sys.stderr)
        raise typer.Exit(130) from None


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
