"""`wordsway measure`: one map at one text."""

from typing import Annotated, Any

from wordsway.cli import completion
from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import MODEL, OUTPUT, SEARCH, TEXT, WORDS, TextCommand
from wordsway.cli.many_texts import answered, asks_for_many
from wordsway.cli.measure_answers import give_answer, kind_of_answer, maps_asked
from wordsway.cli.measure_steps import (
    check_against,
    check_early,
    draw_tokens,
    find_encoder,
    option_names,
    radii_asked,
    refuse_text_options,
    refuse_with_model,
    tokens_asked,
)
from wordsway.cli.option_values import budget_of, check_of, read_text
from wordsway.cli.options import (
    BUDGET,
    RADIUS,
    At,
    AtOption,
    Debug,
    Depth,
    Device,
    Engine,
    Json,
    MaxTokens,
    Out,
    Own,
    Quiet,
    Seed,
    TextArgument,
    TextFile,
    Workers,
    model_option,
    of_option,
    option,
    word_option,
)
from wordsway.cli.output import ResultOutput
from wordsway.cli.saving import check_files
from wordsway.support import names
from wordsway.support.errors import InputError
from wordsway.support.names import either


@app.command(cls=TextCommand)
def measure(
    text: TextArgument = None,
    file: TextFile = None,
    text_column: Annotated[
        str | None, option(TEXT, "NAME", "Column of a table (.csv .tsv .jsonl .parquet).", show_default="text")
    ] = None,
    lines: Annotated[bool, option(TEXT, None, "Each line of --file is a text.", "--lines")] = False,
    limit: Annotated[int | None, option(TEXT, "N", "Measure the first N texts of a table.", min=1)] = None,
    against: Annotated[
        str | None, option(TEXT, "TEXT", "The text with one word replaced: what does it change?")
    ] = None,
    n: Annotated[int | None, option(TEXT, "N", "Keep N tokens; without a text, draw N random ones.", "--n")] = None,
    d: Annotated[
        int | None,
        option(TEXT, "D", "Keep D coordinates of each token.", "--d", show_default="all; random: 768"),
    ] = None,
    max_tokens: MaxTokens = None,
    correlation: Annotated[
        float | None, option(TEXT, "C", "Of --encoder correlated: cosine of tokens.", show_default="0.5")
    ] = None,
    models: Annotated[list[str] | None, model_option("none: a random map", "--model", more=" Repeatable.")] = None,
    of: Annotated[str | None, of_option("logits, else last")] = None,
    at: AtOption = None,
    maps: Annotated[
        list[str] | None,
        option(
            MODEL,
            "NAME",
            f"{either(names.MAPS)}; with options as raf:heads=4,causal. Repeatable.",
            "--map",
            autocompletion=completion.one_of(*names.MAPS),
            show_default="raf and rf",
        ),
    ] = None,
    own: Own = None,
    encoder: Annotated[
        str | None,
        option(
            MODEL,
            "NAME",
            "Embeds texts for a map: a hub id, a folder, synthetic or correlated.",
            autocompletion=completion.encoders,
            show_default="minilm",
        ),
    ] = None,
    layer: Annotated[int, option(MODEL, "K", "Hidden state to embed with; 0: embeddings.", min=0)] = 0,
    raw: Annotated[bool, option(MODEL, None, "Do not rescale rows to norm sqrt(d).", "--raw")] = False,
    depth: Depth = None,
    activation: Annotated[
        str,
        option(
            MODEL,
            "NAME",
            f"Of rf and drf: {either(names.ACTIVATIONS)}.",
            autocompletion=completion.one_of(*names.ACTIVATIONS),
        ),
    ] = "relu",
    temperature: Annotated[float, option(MODEL, "T", "Of the softmax of raf.")] = 1.0,
    word: Annotated[str | None, word_option("all words")] = None,
    token: Annotated[
        str | None,
        option(WORDS, "INDEX", "Tokens that move: one, several (0,3,5) or all."),
    ] = None,
    joint: Annotated[bool, option(WORDS, None, "Move all pieces of a word together.", "--joint")] = False,
    special: Annotated[bool, option(WORDS, None, "Move special tokens ([CLS], ...) too.", "--special")] = False,
    tokens_at_once: Annotated[
        int | None, option(WORDS, "M", "Move M tokens together, greedily chosen.", "--tokens-at-once")
    ] = None,
    choose: Annotated[
        str | None,
        option(
            WORDS,
            "HOW",
            "The M tokens: greedy, random or given (--token).",
            autocompletion=completion.one_of(*names.CHOICES),
        ),
    ] = None,
    ball: Annotated[
        str,
        option(
            WORDS,
            "HOW",
            "Ball of the M tokens: each (its own) or shared.",
            autocompletion=completion.one_of(*names.BALLS),
        ),
    ] = "each",
    radius: Annotated[str, option(SEARCH, "R", f"{RADIUS} Several, by commas: a profile.")] = "1",
    budget: Annotated[
        str | None,
        option(
            SEARCH,
            "EFFORT",
            f"{BUDGET} Or evaluations a token; of a table also step: one gradient step a word, quickest.",
            autocompletion=completion.one_of(*names.BUDGETS),
            show_default="default",
        ),
    ] = None,
    no_certificate: Annotated[
        bool, option(SEARCH, None, "Prove no upper bounds: quicker, for a long text.", "--no-certificate")
    ] = False,
    weights: Annotated[
        int | None,
        option(SEARCH, "N", "Draws of a map's weights.", min=1, show_default="5, fewer above 20 s"),
    ] = None,
    draws: Annotated[int, option(SEARCH, "N", "Random changes (or words) to compare with.", min=0)] = 100,
    seed: Seed = 0,
    device: Device = "cpu",
    engine: Engine = "processes",
    workers: Workers = None,
    out: Out = None,
    explained: Annotated[
        int | None,
        option(
            OUTPUT,
            "N",
            "Top words to analyse in detail.",
            "--explain",
            min=0,
            show_default="10 for .html, else 0",
        ),
    ] = None,
    watch: Annotated[bool, option(OUTPUT, None, "Print each token's bounds on stderr when known.", "--watch")] = False,
    stretch: Annotated[bool, option(OUTPUT, None, "Colours from the smallest value, not from 0.", "--stretch")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure how far each word of a text can move a map or a model.

    wordsway measure "I love her smile" compares attention and random features, over several draws of their weights.
    With --model it says which words can change a prediction. Without a text, N random tokens take its place.
    """
    with one_line_errors(debug, quiet):
        given = None if asks_for_many(file, text_column, lines) else read_text(text, file)
        if answered(given):
            return
        model, map = (models or [None])[0], (maps or [None])[0]
        check_early(word, token, against, joint or special)
        alone = {"--against": against, "--token": token, "--tokens-at-once": tokens_at_once, "--watch": watch}
        alone |= {"--special": special, "--explain": explained, "--joint": joint}
        radii = radii_asked(radius, alone)
        kind = kind_of_answer(len(radii), given, model, weights, alone, maps)
        check_files(out)
        check_against(against, explained, watch, tokens_at_once)
        end = ResultOutput(as_json, out, explained, seed, device, stretch)
        if given is None:
            texts = {"--model": model is not None, "--against": against is not None, "--word": word is not None}
            texts |= {"--joint": joint, "--special": special, "--raw": raw, "--layer": layer != 0}
            refuse_text_options({**texts, "--max-tokens": max_tokens is not None}, encoder)
        recipe = {"depth": depth, "activation": activation, "temperature": temperature}
        if model is not None:
            taken = {"--map": map, "--encoder": encoder, "--n": n, "--d": d, "--depth": depth, "--against": against}
            refuse_with_model(taken, tokens_at_once, raw, layer, activation, temperature)
            check_of(of)
            subject: dict[str, Any] = {"model": model, "output": of, "at": (at or At.embeddings).value}
            rows: Any = given
        elif of is not None or at is not None:
            raise InputError("--of and --at belong to --model")
        else:
            source = find_encoder(encoder, correlation, d, seed, given)
            rows = draw_tokens(n, d, seed, source.correlation) if given is None else given
            crops = {} if given is None else {"layer": layer, "raw": raw, "n": n, "d": d}
            subject = {"map": "raf" if map is None else map, "recipe": recipe, "encoder": source, **crops}
        from wordsway.measures.question import Question

        with option_names():
            question = Question(
                rows,
                **subject,
                max_tokens=max_tokens,
                word=word,
                token=tokens_asked(token, given, tokens_at_once),
                joint=joint,
                special=special,
                tokens_at_once=tokens_at_once,
                choose=choose,
                ball=ball,
                radius=max(radii),
                budget=budget_of(budget),
                certificate=not no_certificate,
                random_draws=draws,
                seed=seed,
                device=device,
            )
        give_answer(kind, question, end, radii, maps_asked(maps, recipe), weights, against, watch)
