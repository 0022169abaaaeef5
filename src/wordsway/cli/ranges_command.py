"""`wordsway ranges`: within which range are a classifier's logits, whatever one word becomes?"""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsway.cli.command import TextCommand, app, one_line_errors
from wordsway.cli.options import (
    At,
    AtOption,
    Debug,
    Device,
    Json,
    MaxTokens,
    Model,
    Out,
    TextArgument,
    TextFile,
    check_files,
    the_text,
    with_options,
)
from wordsway.cli.output import finish, open_quietly


@dataclass(frozen=True)
class RangesOptions:
    """Options of a command that proves something of a model and searches nothing."""

    text: TextArgument = None
    file: TextFile = None
    model: Model = "sentiment"
    max_tokens: MaxTokens = None
    device: Device = "cpu"
    out: Out = None
    as_json: Json = False
    debug: Debug = False


@app.command(cls=TextCommand)
@with_options(RangesOptions, "model")
def ranges(
    common: RangesOptions,
    word: Annotated[str | None, typer.Option(help="Only this word: itself, or its number, as #3.")] = None,
    at: AtOption = At.embeddings,
) -> None:
    """Prove a range for every logit of a classifier, which no change of one word can leave, however large.

    wordsway ranges "I love her smile" shows the ranges of the bundled sentiment classifier.
    """
    with one_line_errors(common.debug):
        given = the_text(common.text, common.file)
        check_files(common.out)
        from wordsway.cli.show_flips import ranges_table
        from wordsway.measures.logit_ranges import logit_ranges

        opened = open_quietly(common.model, common.device)
        result = logit_ranges(opened, given, word, at=at.value, max_tokens=common.max_tokens, device=common.device)
        finish(result, common.as_json, common.out, None, ranges_table)
