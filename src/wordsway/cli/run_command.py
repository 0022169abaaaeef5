"""`wordsway run`: a study of your own, or one that comes along."""

from pathlib import Path
from typing import Annotated, Any

from wordsway.cli import completion
from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import MODEL, RUN, SEARCH, PanelCommand
from wordsway.cli.options import Own, StudyOptions, argument, folder_option, option, with_options
from wordsway.cli.run_studies import built_in_with_notes, run_and_show
from wordsway.support import names
from wordsway.support.errors import InputError


@app.command(cls=PanelCommand)
@with_options(StudyOptions, "data")
def run(
    common: StudyOptions,
    study: Annotated[
        str,
        argument(RUN, "STUDY", "A file of your own, in TOML, or a built-in study.", autocompletion=completion.studies),
    ],
    scale: Annotated[
        str | None,
        option(
            SEARCH,
            "NAME",
            "smoke (seconds), laptop (minutes) or paper (the published grid).",
            autocompletion=completion.one_of(*names.SCALES),
            show_default="laptop; of a file: paper, as it is",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        option(
            MODEL,
            "NAME",
            "Another encoder or model than the study's.",
            autocompletion=completion.models,
        ),
    ] = None,
    own: Own = None,
    out: Annotated[Path | None, folder_option("runs/NAME")] = None,
) -> None:
    """Run a study, built-in or your own: a grid of maps, lengths, encoders and more."""
    with one_line_errors(common.debug, common.quiet):
        from wordsway.studies.adapt import adapted, narrowed
        from wordsway.studies.toml_files import load_study

        options: dict[str, Any] = {"encoder": encoder, "data": common.data, "trials": common.trials}
        options |= {"seed": common.seed}
        if study in names.studies() and not Path(study).is_file():
            (found,) = built_in_with_notes([study], scale or "laptop", **options)
        else:
            found = load_study(study, scale or "paper")
            found = adapted(found, **options) if any(value is not None for value in options.values()) else found
            _, too_wide = narrowed(found)
            if too_wide:
                raise InputError(too_wide[0].replace(" becomes ", " is too wide; it could be "))
        run_and_show([found], out or Path("runs") / found.name, **common.way)
