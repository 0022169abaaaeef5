"""`wordsway flip`: how far must a word move before the prediction changes?"""

from dataclasses import dataclass
from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import WORDS, TextCommand
from wordsway.cli.options import (
    At,
    AtOption,
    ModelOptions,
    Radius,
    option,
    predictor_option,
    with_options,
    word_option,
)
from wordsway.cli.output import finish, open_quietly, ways
from wordsway.support.names import Budget

Predictor = Annotated[str, predictor_option("the folder, .gguf file or hub id of a classifier or causal model")]


@dataclass(frozen=True)
class FlipOptions(ModelOptions):
    """Options of a command about a prediction."""

    model: Predictor = "sentiment"


@app.command(cls=TextCommand)
@with_options(FlipOptions, "model")
def flip(
    common: FlipOptions,
    word: Annotated[str | None, word_option("all words")] = None,
    radius: Radius = 1.0,
    at: AtOption = None,
    real_words: Annotated[
        int | None,
        option(
            WORDS,
            "N",
            "Real words to try in a word's place, nearest first.",
            min=0,
            show_default="by effort: 100, 400, 4000",
        ),
    ] = None,
) -> None:
    """Find the smallest move of each word that changes the prediction of a classifier, or a model's next token.

    wordsway flip "I love her smile" shows, for each word, how far its embedding must move before the bundled sentiment
    classifier changes its mind, and the nearest real word that does it.
    """
    with one_line_errors(common.debug, common.quiet):
        given = common.checked_text()
        from wordsway.measures.flip_radius import check_limit, flip_radius
        from wordsway.models.moving.map import PretrainedMap

        check_limit(radius)
        from dataclasses import replace

        from wordsway.cli.command import command_line
        from wordsway.cli.show_flips import flip_tables
        from wordsway.measures.expected import flip_seconds
        from wordsway.support.progress import progress_bar
        from wordsway.support.provenance import made

        opened = open_quietly(common.model, common.device)
        phi = PretrainedMap(opened, "logits", at=(at or At.embeddings).value)
        tokens = phi.encode(given, common.max_tokens)
        expected = flip_seconds(phi, tokens, word, common.budget.value, real_words, common.device)
        quick = common.budget is Budget.quick
        shorter = ways({"--word W": word is None, "--budget quick": not quick, "--real-words 0": real_words != 0})
        with progress_bar("step", shorter, expected) as update:
            result = flip_radius(
                phi,
                tokens,
                word,
                radius=radius,
                real_words=real_words,
                budget=common.budget.value,
                seed=common.seed,
                device=common.device,
                progress=update,
            )
        result = replace(result, made=made(command_line()))
        finish(result, common.as_json, common.out, flip_tables)
