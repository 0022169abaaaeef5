"""`wordsway reproduce`: the figures of the paper."""

from pathlib import Path
from typing import Annotated, Any

from wordsway.cli import completion
from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import MODEL, RUN, TEXT, PanelCommand
from wordsway.cli.options import (
    Data,
    Debug,
    Engine,
    Json,
    Quiet,
    RunSeed,
    Scale,
    Scheduler,
    Trials,
    Workers,
    argument,
    folder_option,
    option,
)
from wordsway.cli.run_studies import built_in_with_notes, run_and_show


@app.command(cls=PanelCommand)
def reproduce(
    names: Annotated[
        list[str] | None,
        argument(
            RUN,
            "FIGURE",
            "fig1 ... fig5, or panels as fig3a; all unless given.",
            autocompletion=completion.figures,
        ),
    ] = None,
    scale: Scale = "laptop",
    encoder: Annotated[
        str | None,
        option(
            MODEL,
            "NAME",
            "minilm, mpnet, bert-base-uncased, synthetic, any hub id or folder.",
            autocompletion=completion.encoders,
            show_default="the study's",
        ),
    ] = None,
    data: Data = None,
    padding: Annotated[
        str | None,
        option(
            TEXT,
            "HOW",
            "published (short reviews padded to 256 tokens) or none (longer reviews).",
            autocompletion=completion.one_of("published", "none"),
        ),
    ] = None,
    chat_model: Annotated[
        str | None,
        option(MODEL, "NAME", "For fig1-right: a hub id, a folder or a GGUF file.", autocompletion=completion.models),
    ] = None,
    trials: Trials = None,
    seed: RunSeed = None,
    engine: Engine = "processes",
    workers: Workers = None,
    scheduler: Scheduler = None,
    out: Annotated[Path | None, folder_option("runs/SCALE")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Reproduce the paper: figures, tables, and its claims with the numbers measured.

    What a run's folder has already is not measured again: other figures, panels or more trials may go to the same one.
    Its figures and tables are those of the settings that a panel was last asked for with.
    """
    with one_line_errors(debug, quiet):
        options: dict[str, Any] = {"encoder": encoder, "data": data, "padding": padding, "chat_model": chat_model}
        asked = built_in_with_notes(names or [], scale, **options, trials=trials, seed=seed)
        run_and_show(
            asked, out or Path("runs") / scale, engine, workers, scheduler, as_json=as_json, quiet=quiet, join=True
        )
