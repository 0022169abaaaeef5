"""`wordsway attention`: where a model looks, for two texts or before and after a word moves."""

from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import MODEL, TEXT, WORDS, TextCommand
from wordsway.cli.options import At, AtOption, ModelOptions, Radius, option, with_options, word_option
from wordsway.cli.output import finish, open_quietly, ways
from wordsway.support.errors import InputError
from wordsway.support.names import Budget
from wordsway.support.public_gate import read_whole


@app.command(cls=TextCommand)
@with_options(ModelOptions, "model")
def attention(
    common: ModelOptions,
    against: Annotated[str | None, option(TEXT, "TEXT", "Another text, to be shown beside it.")] = None,
    word: Annotated[str | None, word_option("none: all weights")] = None,
    attract: Annotated[bool, option(WORDS, None, "Change the word so that it draws attention.", "--attract")] = False,
    layer: Annotated[int, option(MODEL, "K", "The layer that is shown, from 1.", min=1)] = 1,
    head: Annotated[str, option(MODEL, "K", "The head that is shown, from 1; or mean.")] = "mean",
    special: Annotated[bool, option(WORDS, None, "Show special tokens ([CLS], ...) too.", "--special")] = False,
    radius: Radius = 1.0,
    at: AtOption = None,
) -> None:
    """Compare attention maps: of two texts, or of one text before and after one of its words moves to draw attention.

    The mass that the word gets, the mean weight over rows, is printed for every head and layer.
    """
    with one_line_errors(common.debug, common.quiet):
        given = common.checked_text()
        if head != "mean" and not head.isdecimal():
            raise InputError(f"--head takes a number from 1, or mean; got {head!r}")
        if attract and word is None:
            raise InputError("--attract needs a word that is to draw attention: --word W")
        if against is not None and (attract or word is not None):
            raise InputError("give --against (two texts) or --word (one text), not both")
        from wordsway.cli.show_models import attention_tables
        from wordsway.measures.attention_maps import attention_maps
        from wordsway.support.progress import progress_bar

        opened = open_quietly(common.model, common.device)
        with progress_bar("step", ways({"--budget quick": common.budget is not Budget.quick})) as update:
            result = attention_maps(
                opened,
                given,
                against,
                word=word,
                attract=attract,
                layer=layer,
                head="mean" if head == "mean" else read_whole(head, "--head"),
                special=special,
                radius=radius,
                at=(at or At.embeddings).value,
                budget=common.budget.value,
                seed=common.seed,
                max_tokens=common.max_tokens,
                progress=update,
            )
        finish(result, common.as_json, common.out, attention_tables)
