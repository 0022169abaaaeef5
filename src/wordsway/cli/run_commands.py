"""Studies and their runs: `studies`, `reproduce`, `run`, `status`, `resume`, `export`, `compare`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsway.cli import completion
from wordsway.cli.command import app, one_line_errors, printable
from wordsway.cli.options import Debug, Engine, Json, Own, Workers
from wordsway.cli.run_studies import run_and_show
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.studies.study import Study

Scheduler = Annotated[str | None, typer.Option(help="With --engine dask: a scheduler that runs, tcp://HOST:PORT.")]
Scale = Annotated[
    str,
    typer.Option(
        help="smoke (seconds), laptop (minutes) or paper (the published grid).",
        autocompletion=completion.one_of(*completion.SCALES),
    ),
]
Trials = Annotated[int | None, typer.Option(min=1, help="Texts and weights to average over.")]
Data = Annotated[
    str | None,
    typer.Option(
        help="Labelled texts: imdb, sentences, sample, a file, a folder or a hub id.", autocompletion=completion.data
    ),
]
RunSeed = Annotated[int | None, typer.Option("--seed", min=0, help="Root of all randomness (0 unless given).")]
Run = Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)]


@app.command()
def studies(as_json: Json = False, debug: Debug = False) -> None:
    """List the studies that come along, with their panels and sizes."""
    with one_line_errors(debug):
        from wordsway.studies.toml_files import SCALES, bundled_studies, find_study

        found = []
        for name in bundled_studies():
            sizes = {scale: find_study(name, scale) for scale in SCALES}
            panels = [{"id": p.id, "title": p.title, "measure": p.measure} for p in sizes["paper"].panels]
            cells = {scale: sum(1 for p in study.panels for _ in p.cells()) for scale, study in sizes.items()}
            found.append({"name": name, "title": sizes["paper"].title, "panels": panels, "cells": cells})
        if as_json:
            print(json.dumps(found))
            return
        for each in found:
            sizes_text = ", ".join(f"{scale} {count}" for scale, count in each["cells"].items())
            print(f"{each['name']}  {each['title']}\n      cells: {sizes_text}")
            for panel in each["panels"]:
                print(f"      {each['name']}-{panel['id']}: {panel['title']}")
        print("\nwordsway reproduce runs the paper's figures; wordsway run NAME another one, or FILE.toml of your own.")


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="fig1 ... fig5, or panels as fig3a; all unless given.", autocompletion=completion.figures),
    ] = None,
    scale: Scale = "laptop",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="minilm, mpnet, bert-base-uncased, synthetic, any hub id or folder.",
            autocompletion=completion.encoders,
        ),
    ] = None,
    data: Data = None,
    padding: Annotated[
        str | None,
        typer.Option(
            help="published (short reviews padded to 256 tokens) or none (longer reviews).",
            autocompletion=completion.one_of("published", "none"),
        ),
    ] = None,
    chat_model: Annotated[
        str | None,
        typer.Option(help="For fig1-right: a hub id, a folder or a GGUF file.", autocompletion=completion.models),
    ] = None,
    trials: Trials = None,
    seed: RunSeed = None,
    engine: Engine = "processes",
    workers: Workers = None,
    scheduler: Scheduler = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run, which may be one that was stopped; runs/SCALE unless given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Reproduce the paper: figures, tables, and its claims with the numbers measured.

    What a run's folder has already is not measured again: other figures, panels or more trials may go to the same one.
    Its figures and tables are those of the settings that a panel was last asked for with.
    """
    with one_line_errors(debug):
        options: dict[str, Any] = {"encoder": encoder, "data": data, "padding": padding, "chat_model": chat_model}
        asked = _known(names or [], scale, **options, trials=trials, seed=seed)
        run_and_show(asked, out or Path("runs") / scale, engine, workers, scheduler, as_json=as_json, join=True)


@app.command()
def run(
    study: Annotated[
        str,
        typer.Argument(
            help="A study of your own, in TOML, or one that comes along.",
            show_default=False,
            autocompletion=completion.studies,
        ),
    ],
    scale: Annotated[
        str | None,
        typer.Option(
            help="smoke, laptop or paper: a file as it is. Unless given, laptop for a known study.",
            autocompletion=completion.one_of(*completion.SCALES),
        ),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Another encoder or model than the study's.", autocompletion=completion.models)
    ] = None,
    own: Own = None,
    data: Data = None,
    trials: Trials = None,
    seed: RunSeed = None,
    engine: Engine = "processes",
    workers: Workers = None,
    scheduler: Scheduler = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME unless given.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a study, of your own or one that comes along: a grid of maps, lengths, encoders and more."""
    with one_line_errors(debug):
        from wordsway.studies.adapt import adapted, narrowed
        from wordsway.studies.toml_files import bundled_studies, load_study

        options: dict[str, Any] = {"encoder": encoder, "data": data, "trials": trials, "seed": seed}
        if study in bundled_studies() and not Path(study).is_file():
            (found,) = _known([study], scale or "laptop", **options)
        else:
            found = adapted(load_study(study, scale or "paper"), **options)
            _, too_wide = narrowed(found)
            if too_wide:
                raise InputError(too_wide[0].replace(" becomes ", " is too wide; it could be "))
        run_and_show([found], out or Path("runs") / found.name, engine, workers, scheduler, as_json=as_json)


def _known(names: Sequence[str], scale: str, **options: Any) -> "list[Study]":
    """Studies that come along, with notes on what a reader should know of them."""
    from wordsway.studies.reproduce import known_studies

    asked, notes = known_studies(names, scale, **options)
    if scale == "smoke":
        notes.append("smoke tries out the machinery; its texts and sizes are too small for the claims")
    for note in notes:
        print(f"wordsway: note: {printable(note)}", file=sys.stderr)
    return asked


@app.command()
def resume(
    folder: Run,
    failed: Annotated[bool, typer.Option("--failed", help="Try again what failed.")] = False,
    own: Own = None,
    engine: Engine = "processes",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Go on with a run that was stopped."""
    with one_line_errors(debug):
        run_and_show(None, folder, engine, workers, scheduler, retry=failed, as_json=as_json)


@app.command()
def status(folder: Run, as_json: Json = False, debug: Debug = False) -> None:
    """How far a run is, and what failed; also while it is at work."""
    with one_line_errors(debug):
        from wordsway.cli.show_runs import duration
        from wordsway.studies.run.runner import make_plan
        from wordsway.studies.run.store import Store
        from wordsway.studies.run.tables import read_table

        with Store.read(folder) as store:
            known = store.studies()
            parts = {study.name: make_plan(store, [study]) for study in known}
            table, busy, results = read_table(store), store.busy(), store.results()
        seconds = sum(result.provenance["seconds"] for result in results.values() if result.done)
        if as_json:
            counts = {
                name: {"cells": len(p.jobs), "done": p.done, "failed": p.failed, "left": len(p.pending)}
                for name, p in parts.items()
            }
            print(json.dumps({"studies": counts, "running": busy, "seconds": seconds, "failed": dict(table.failed)}))
            return
        for name, plan in parts.items():
            left = f", {len(plan.pending)} left (about {duration(plan.seconds)} on one core)" if plan.pending else ""
            failed = f", {plan.failed} failed" if plan.failed else ""
            print(f"{name}: {plan.done} of {len(plan.jobs)} cells done{failed}{left}")
        for study in known:
            for panel in study.panels:
                if panel.skip is not None:
                    print(f"{study.name} {panel.id} is not run: {printable(panel.skip)}")
        print(
            f"{duration(seconds) if seconds else '0 s'} of cells measured; {'at work now' if busy else 'not running'}"
        )
        for label, error in table.failed.items():
            print(f"failed: {printable(label)}: {printable(error)}")
        if not busy and table.missing:
            print(f"go on with: wordsway resume {folder}")
        if not busy and table.failed:
            print(f"try again what failed with: wordsway resume {folder} --failed")


@app.command()
def export(
    folder: Run,
    format: Annotated[
        str | None, typer.Option("--format", help="csv, parquet or json; by the suffix of --out, else csv.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; else on stdout.")] = None,
    debug: Debug = False,
) -> None:
    """The whole table of a run, with the provenance of every row."""
    with one_line_errors(debug):
        from wordsway.studies.run.store import Store
        from wordsway.studies.run.tables import FORMATS, read_table
        from wordsway.support.files import write_bytes

        if format is None:
            suffix = out.suffix.lstrip(".") if out is not None else ""
            format = suffix if suffix in FORMATS else "csv"
        if format == "parquet" and out is None and sys.stdout.isatty():
            raise InputError("a Parquet file is no text for a terminal; give --out FILE")
        with Store.read(folder) as store:
            table = read_table(store)
        content = table.export(format)
        if out is not None:
            write_bytes(out, content)
            print(f"written: {out} ({len(table)} rows)")
        else:
            sys.stdout.buffer.write(content)
        if table.missing or table.failed:
            print(
                f"wordsway: note: {table.missing} cells are not measured yet, {len(table.failed)} failed",
                file=sys.stderr,
            )


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="The folder of another.", show_default=False)],
    of: Annotated[
        str | None, typer.Option("--of", help="The column to compare; lower, err and so on unless given.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Two runs side by side: the same cells, their differences with 95% intervals."""
    with one_line_errors(debug):
        from wordsway.cli.show_runs import show_differences
        from wordsway.studies.compare_runs import compare_tables
        from wordsway.studies.run.store import Store
        from wordsway.studies.run.tables import read_table

        tables = []
        for folder in (first, second):
            with Store.read(folder) as store:
                tables.append(read_table(store))
        found = compare_tables(tables[0], tables[1], of)
        if as_json:
            print(json.dumps(found.to_dict(), allow_nan=False))
        else:
            show_differences(found)
