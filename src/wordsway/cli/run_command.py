"""`wordsway run`: a study of your own, or one that comes along."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wordsway.cli import completion
from wordsway.cli.command import app, one_line_errors
from wordsway.cli.options import Data, Debug, Engine, Json, Own, RunSeed, Scheduler, Trials, Workers
from wordsway.cli.run_studies import built_in_with_notes, run_and_show
from wordsway.support import names
from wordsway.support.errors import InputError


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
            autocompletion=completion.one_of(*names.SCALES),
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
    """Run a study, built-in or your own: a grid of maps, lengths, encoders and more."""
    with one_line_errors(debug):
        from wordsway.studies.adapt import adapted, narrowed
        from wordsway.studies.toml_files import load_study

        options: dict[str, Any] = {"encoder": encoder, "data": data, "trials": trials, "seed": seed}
        if study in names.studies() and not Path(study).is_file():
            (found,) = built_in_with_notes([study], scale or "laptop", **options)
        else:
            found = load_study(study, scale or "paper")
            found = adapted(found, **options) if any(value is not None for value in options.values()) else found
            _, too_wide = narrowed(found)
            if too_wide:
                raise InputError(too_wide[0].replace(" becomes ", " is too wide; it could be "))
        run_and_show([found], out or Path("runs") / found.name, engine, workers, scheduler, as_json=as_json)
