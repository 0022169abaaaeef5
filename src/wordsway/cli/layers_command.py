"""`wordsway layers`: how moves of one word go through the layers of a model."""

from typing import Annotated

import typer

from wordsway.cli.model_options import (
    At,
    AtOption,
    Budget,
    BudgetOption,
    Device,
    MaxTokens,
    Model,
    Out,
    Plot,
    Radius,
    TextArgument,
    TextFile,
    check_files,
    check_picture,
    finish,
    open_quietly,
    the_text,
)
from wordsway.cli.options import Debug, Json, Seed, TextCommand, app, one_line_errors


@app.command(cls=TextCommand)
def layers(
    text: TextArgument = None,
    file: TextFile = None,
    model: Model = "minilm",
    word: Annotated[str, typer.Option(help="The word that moves: itself, or its number from 1.")] = "1",
    head: Annotated[int | None, typer.Option(help="Attract one head of the first layer only, from 1.")] = None,
    radius: Radius = 1.0,
    at: AtOption = At.embeddings,
    draws: Annotated[int, typer.Option(min=2, help="Noise moves to average over.")] = 50,
    real_words: Annotated[
        bool, typer.Option("--real-words/--no-real-words", help="Look for the best real word as well.")
    ] = True,
    budget: BudgetOption = Budget.default,
    max_tokens: MaxTokens = None,
    seed: Seed = 0,
    device: Device = "cpu",
    plot: Plot = None,
    out: Out = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Relative change of every layer's output when one word moves.

    Four moves of one norm: searched for each layer, drawing attention, Gaussian noise, and towards the best real word.
    """
    with one_line_errors(debug):
        given = the_text(text, file)
        check_files(out)
        check_picture(plot)
        from wordsway.cli.show_models import layer_table
        from wordsway.measures.layer_profile import layer_profile
        from wordsway.support.progress import progress_bar

        opened = open_quietly(model, device)
        with progress_bar(not as_json) as update:
            result = layer_profile(
                opened,
                given,
                word,
                radius=radius,
                at=at.value,
                head=head,
                noise_draws=draws,
                real_words=real_words,
                budget=budget.value,
                seed=seed,
                max_tokens=max_tokens,
                progress=lambda done, total: update(done, total, "evaluation"),
            )
        finish(result, as_json, out, plot, layer_table)
