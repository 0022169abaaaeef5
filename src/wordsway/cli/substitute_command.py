"""`wordsway substitute`: which real word, in the place of one, moves a model most."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import SEARCH, TEXT, WORDS, TextCommand
from wordsway.cli.option_values import check_of, word_list
from wordsway.cli.options import ModelOptions, of_option, option, with_options, word_option
from wordsway.cli.output import finish, open_quietly, ways
from wordsway.support.errors import InputError
from wordsway.support.names import Budget


class Search(StrEnum):
    auto = "auto"
    exhaustive = "exhaustive"
    guided = "guided"


@app.command(cls=TextCommand)
@with_options(ModelOptions, "model")
def substitute(
    common: ModelOptions,
    word: Annotated[str | None, word_option("all words")] = None,
    top: Annotated[int, option(WORDS, "N", "How many replacements to list.", min=1)] = 10,
    of: Annotated[str | None, of_option("logits if the model has them, else pooled")] = None,
    candidates: Annotated[Path | None, option(WORDS, "FILE", "Try only the words of this file, one a line.")] = None,
    pieces: Annotated[bool, option(WORDS, None, "Try pieces of words as well as whole ones.", "--pieces")] = False,
    similar: Annotated[
        float | None, option(WORDS, "COSINE", "Least cosine with the old word's embedding.", min=-1.0, max=1.0)
    ] = None,
    same_length: Annotated[
        bool | None,
        option(WORDS, None, "Must a replacement have as many tokens?", "--same-length/--any-length"),
    ] = None,
    search: Annotated[
        Search, option(SEARCH, "HOW", "auto, exhaustive (every candidate) or guided (by what others did).")
    ] = Search.auto,
    against: Annotated[
        str | None, option(TEXT, "TEXT", "Another prompt: compare a causal model's answers to the two.")
    ] = None,
    chat: Annotated[
        bool | None,
        option(TEXT, None, "With --against: use the chat template.", "--chat/--plain", show_default="if there is one"),
    ] = None,
    answer: Annotated[
        int | None, option(TEXT, "N", "With --against: length of the answers, in tokens.", min=0, show_default="40")
    ] = None,
) -> None:
    """Find the real word that changes the model's output most; for a classifier, the one that flips the prediction.

    With --against, a causal model's next token and greedy answer for two prompts.
    """
    with one_line_errors(common.debug, common.quiet):
        given = common.checked_text()
        allowed = word_list(candidates)
        if against is not None and (allowed is not None or word is not None or of is not None):
            raise InputError("--against compares two prompts: leave out --word, --of and --candidates")
        if against is None and (chat is not None or answer is not None):
            raise InputError("--chat, --plain and --answer belong to --against")
        check_of(of)
        from wordsway.cli.show_models import prompt_tables, substitution_tables
        from wordsway.support.progress import progress_bar, waiting

        opened = open_quietly(common.model, common.device)
        if against is not None:
            from wordsway.measures.prompts import compare_prompts

            with waiting("answering"):
                compared = compare_prompts(
                    opened, given, against, chat=chat, answer_tokens=40 if answer is None else answer
                )
            return finish(compared, common.as_json, common.out, prompt_tables)
        from wordsway.measures.best_words import substitutions

        guided = search is Search.guided
        quicker = guided and common.budget is not Budget.quick  # a budget counts where not every candidate is tried
        used = {"--word W": word is None, "--search guided": not guided, "--budget quick": quicker}
        used["--candidates FILE"] = allowed is None
        with progress_bar("text", ways(used)) as update:
            result = substitutions(
                opened,
                given,
                "all" if word is None else word,
                output=of,
                top=top,
                candidates=allowed,
                pieces=pieces,
                similar=similar,
                same_length=same_length,
                search=search.value,
                budget=common.budget.value,
                seed=common.seed,
                max_tokens=common.max_tokens,
                progress=update,
            )
        finish(result, common.as_json, common.out, substitution_tables)
