"""`wordsway layers`: how moves of one word go through the layers of a model."""

from typing import Annotated

import typer

from wordsway.cli.command import TextCommand, app, one_line_errors
from wordsway.cli.options import (
    At,
    AtOption,
    ModelOptions,
    Radius,
    with_options,
)
from wordsway.cli.output import finish, open_quietly


@app.command(cls=TextCommand)
@with_options(ModelOptions, "model")
def layers(
    common: ModelOptions,
    word: Annotated[str, typer.Option(help="The word that moves: itself, or its number from 1.")] = "1",
    head: Annotated[int | None, typer.Option(help="Attract one head of the first layer only, from 1.")] = None,
    radius: Radius = 1.0,
    at: AtOption = At.embeddings,
    draws: Annotated[int, typer.Option(min=2, help="Noise moves to average over.")] = 50,
    real_words: Annotated[
        bool, typer.Option("--real-words/--no-real-words", help="Look for the best real word as well.")
    ] = True,
) -> None:
    """Measure the relative change of every layer's output when one word moves.

    Four moves of one norm: searched for each layer, drawing attention, Gaussian noise, and towards the best real word.
    """
    with one_line_errors(common.debug):
        given = common.checked_text()
        from wordsway.cli.show_models import layer_table
        from wordsway.measures.layer_profile import layer_profile
        from wordsway.support.progress import progress_bar

        opened = open_quietly(common.model, common.device)
        with progress_bar(not common.as_json) as update:
            result = layer_profile(
                opened,
                given,
                word,
                radius=radius,
                at=at.value,
                head=head,
                noise_draws=draws,
                real_words=real_words,
                budget=common.budget.value,
                seed=common.seed,
                max_tokens=common.max_tokens,
                progress=lambda done, total: update(done, total, "evaluation"),
            )
        finish(result, common.as_json, common.out, common.plot, layer_table)
