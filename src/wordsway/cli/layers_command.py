"""`wordsway layers`: how moves of one word go through the layers of a model."""

from typing import Annotated

from wordsway.cli.command import app, one_line_errors, printable
from wordsway.cli.help_pages import MODEL, SEARCH, WORDS, TextCommand
from wordsway.cli.options import At, AtOption, ModelOptions, Radius, option, with_options, word_option
from wordsway.cli.output import finish, open_quietly


@app.command(cls=TextCommand)
@with_options(ModelOptions, "model")
def layers(
    common: ModelOptions,
    word: Annotated[str | None, word_option("the first word")] = None,
    head: Annotated[int | None, option(MODEL, "K", "Attract one head of the first layer only, from 1.")] = None,
    radius: Radius = 1.0,
    at: AtOption = None,
    draws: Annotated[int, option(SEARCH, "N", "Random changes to average over.", min=2)] = 50,
    no_real_words: Annotated[
        bool, option(WORDS, None, "Do not look for the best real word.", "--no-real-words")
    ] = False,
) -> None:
    """Measure the relative change of every layer's output when one word moves.

    Four moves of one norm: searched for each layer, drawing attention, Gaussian noise, and towards the best real word.
    """
    with one_line_errors(common.debug, common.quiet):
        given = common.checked_text()
        from wordsway.cli.show_models import layer_table
        from wordsway.measures.layer_profile import layer_profile
        from wordsway.support.progress import progress_bar, say

        opened = open_quietly(common.model, common.device)
        with progress_bar(not common.as_json) as update:
            result = layer_profile(
                opened,
                given,
                "1" if word is None else word,
                radius=radius,
                at=(at or At.embeddings).value,
                head=head,
                noise_draws=draws,
                real_words=not no_real_words,
                budget=common.budget.value,
                seed=common.seed,
                max_tokens=common.max_tokens,
                progress=lambda done, total: update(done, total, "evaluation"),
            )
        if word is None:
            say(f"no --word: the first one, {printable(result.word_text)!r}, was changed")
        finish(result, common.as_json, common.out, layer_table)
