"""`wordsway ranges`: within which range are a classifier's logits, whatever one word becomes?"""

from dataclasses import dataclass
from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import TextCommand
from wordsway.cli.option_values import the_text
from wordsway.cli.options import (
    At,
    AtOption,
    Debug,
    Device,
    Json,
    MaxTokens,
    Out,
    Quiet,
    TextArgument,
    TextFile,
    predictor_option,
    with_options,
    word_option,
)
from wordsway.cli.output import finish, open_quietly, ways
from wordsway.cli.saving import check_files


@dataclass(frozen=True)
class RangesOptions:
    """Options of a command that proves something of a model and searches nothing."""

    text: TextArgument = None
    file: TextFile = None
    model: Annotated[str, predictor_option("the folder or hub id of a classifier")] = "sentiment"
    max_tokens: MaxTokens = None
    device: Device = "cpu"
    out: Out = None
    as_json: Json = False
    quiet: Quiet = False
    debug: Debug = False


@app.command(cls=TextCommand)
@with_options(RangesOptions, "model")
def ranges(
    common: RangesOptions,
    word: Annotated[str | None, word_option("all words")] = None,
    at: AtOption = None,
) -> None:
    """Prove a range for every logit of a classifier, which no change of one word can leave, however large.

    wordsway ranges "I love her smile" shows the ranges of the bundled sentiment classifier.
    """
    with one_line_errors(common.debug, common.quiet):
        given = the_text(common.text, common.file)
        check_files(common.out)
        from wordsway.cli.show_flips import ranges_table
        from wordsway.measures.logit_ranges import logit_ranges
        from wordsway.support.progress import progress_bar

        opened = open_quietly(common.model, common.device)
        place = (at or At.embeddings).value
        options = {"at": place, "max_tokens": common.max_tokens, "device": common.device}
        shorter = ways({"--word W": word is None, "--max-tokens N": common.max_tokens is None})
        with progress_bar("word", shorter) as update:
            result = logit_ranges(opened, given, word, **options, progress=update)
        finish(result, common.as_json, common.out, ranges_table)
