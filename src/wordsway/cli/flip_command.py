"""`wordsway flip`: how far must a word move before the prediction changes?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wordsway.cli.command import TextCommand, app, one_line_errors
from wordsway.cli.options import At, AtOption, Model, ModelOptions, with_options
from wordsway.cli.output import check_page, finish, open_quietly, write_report


@dataclass(frozen=True)
class FlipOptions(ModelOptions):
    """Options of a command about a prediction."""

    model: Model = "sentiment"


@app.command(cls=TextCommand)
@with_options(FlipOptions, "model")
def flip(
    common: FlipOptions,
    word: Annotated[str | None, typer.Option(help="Only this word: itself, or its number, as #3.")] = None,
    radius: Annotated[
        float, typer.Option(help="Largest move allowed, in units of the word's own embedding norm.")
    ] = 1.0,
    at: AtOption = At.embeddings,
    real_words: Annotated[
        int | None,
        typer.Option(min=0, help="Real words to try in a word's place, nearest first (by budget: 100, 400, 4000)."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a report, a page to look at, to this file.")] = None,
) -> None:
    """Find the smallest move of each word that changes the prediction of a classifier, or a model's next token.

    wordsway flip "I love her smile" shows, for each word, how far its embedding must move before the bundled sentiment
    classifier changes its mind, and the nearest real word that does it.
    """
    with one_line_errors(common.debug):
        given = common.checked_text()
        check_page(html, common.out)
        from wordsway.measures.flip_radius import check_limit, flip_radius

        check_limit(radius)
        from dataclasses import replace

        from wordsway.cli.command import command_line
        from wordsway.cli.show_flips import flip_tables
        from wordsway.support.progress import progress_bar
        from wordsway.support.provenance import made

        opened = open_quietly(common.model, common.device)
        with progress_bar(not common.as_json) as update:
            result = flip_radius(
                opened,
                given,
                word,
                radius=radius,
                at=at.value,
                real_words=real_words,
                budget=common.budget.value,
                seed=common.seed,
                max_tokens=common.max_tokens,
                device=common.device,
                progress=lambda done, total: update(done, total, "step"),
            )
        result = replace(result, made=made(command_line()))
        finish(result, common.as_json, common.out, common.plot, flip_tables)
        if html is not None:
            write_report(result, html, quiet=common.as_json)
