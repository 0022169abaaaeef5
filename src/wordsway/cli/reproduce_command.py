"""`wordsway reproduce`: the figures of the paper."""

from pathlib import Path
from typing import Annotated, Any

from wordsway.cli import completion
from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import MODEL, RUN, TEXT, PanelCommand
from wordsway.cli.options import Scale, StudyOptions, argument, folder_option, option, with_options
from wordsway.cli.run_studies import built_in_with_notes, run_and_show


@app.command(cls=PanelCommand)
@with_options(StudyOptions, "data")
def reproduce(
    common: StudyOptions,
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
    out: Annotated[Path | None, folder_option("runs/SCALE")] = None,
) -> None:
    """Reproduce the paper: figures, tables, and its claims with the numbers measured.

    What a run's folder has already is not measured again: other figures, panels or more trials may go to the same one.
    Its figures and tables are those of the settings that a panel was last asked for with.
    """
    with one_line_errors(common.debug, common.quiet):
        options: dict[str, Any] = {"encoder": encoder, "data": common.data, "trials": common.trials}
        options |= {"seed": common.seed, "padding": padding, "chat_model": chat_model}
        asked = built_in_with_notes(names or [], scale, **options)
        run_and_show(asked, out or Path("runs") / scale, **common.way, join=True)
