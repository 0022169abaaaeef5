"""`wordsway substitute`: which real word, in the place of one, moves a model most."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wordsway.cli import completion
from wordsway.cli.command import TextCommand, app, one_line_errors
from wordsway.cli.options import (
    ModelOptions,
    check_output,
    with_options,
    word_list,
)
from wordsway.cli.output import finish, open_quietly
from wordsway.support import names
from wordsway.support.errors import InputError
from wordsway.support.names import either


class Search(StrEnum):
    auto = "auto"
    exhaustive = "exhaustive"
    guided = "guided"


@app.command(cls=TextCommand)
@with_options(ModelOptions, "model")
def substitute(
    common: ModelOptions,
    word: Annotated[str, typer.Option(help="The word to replace: itself, its number from 1, or all.")] = "all",
    top: Annotated[int, typer.Option(min=1, help="How many replacements to list.")] = 10,
    output: Annotated[
        str | None,
        typer.Option(
            help=f"{either(names.OUTPUTS)} (logits if the model has them).",
            autocompletion=completion.one_of(*names.SIMPLE_OUTPUTS),
        ),
    ] = None,
    candidates: Annotated[Path | None, typer.Option(help="Try only the words of this file, one a line.")] = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Try pieces of words as well as whole ones.")] = False,
    similar: Annotated[
        float | None, typer.Option(min=-1.0, max=1.0, help="Least cosine with the old word's embedding.")
    ] = None,
    same_length: Annotated[
        bool | None, typer.Option("--same-length/--any-length", help="Must a replacement have as many tokens?")
    ] = None,
    search: Annotated[Search, typer.Option(help="Try every candidate, or be guided by what others did.")] = Search.auto,
    against: Annotated[
        str | None, typer.Option(help="Another prompt: compare a causal model's answers to the two.")
    ] = None,
    chat: Annotated[
        bool | None, typer.Option("--chat/--plain", help="With --against: use the chat template (if there is one).")
    ] = None,
    answer: Annotated[
        int | None, typer.Option(min=0, help="With --against: length of the answers, in tokens (40).")
    ] = None,
) -> None:
    """Find the real word that changes the model's output most; for a classifier, the one that flips the prediction.

    With --against, a causal model's next token and greedy answer for two prompts.
    """
    with one_line_errors(common.debug):
        given = common.checked_text()
        allowed = word_list(candidates)
        if against is not None and (
            allowed is not None or common.plot is not None or word != "all" or output is not None
        ):
            raise InputError("--against compares two prompts: leave out --word, --output, --candidates and --plot")
        if against is None and (chat is not None or answer is not None):
            raise InputError("--chat, --plain and --answer belong to --against")
        check_output(output)
        from wordsway.cli.show_models import prompt_tables, substitution_tables
        from wordsway.support.progress import progress_bar, waiting

        opened = open_quietly(common.model, common.device)
        if against is not None:
            from wordsway.measures.prompts import compare_prompts

            with waiting("answering"):
                compared = compare_prompts(
                    opened, given, against, chat=chat, answer_tokens=40 if answer is None else answer
                )
            return finish(compared, common.as_json, common.out, None, prompt_tables)
        from wordsway.measures.best_words import substitutions

        with progress_bar(not common.as_json) as update:
            result = substitutions(
                opened,
                given,
                word,
                output=output,
                top=top,
                candidates=allowed,
                pieces=pieces,
                similar=similar,
                same_length=same_length,
                search=search.value,
                budget=common.budget.value,
                seed=common.seed,
                max_tokens=common.max_tokens,
                progress=lambda done, total: update(done, total, "text"),
            )
        finish(result, common.as_json, common.out, common.plot, substitution_tables)
