"""`wordsway measure`: one map at one text."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wordsway.cli import completion
from wordsway.cli.command import TextCommand, app, one_line_errors
from wordsway.cli.measure_steps import (
    answer,
    answer_profile,
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
from wordsway.cli.options import (
    At,
    Debug,
    Depth,
    Device,
    Json,
    MaxTokens,
    Out,
    Own,
    Seed,
    TextArgument,
    TextFile,
    check_output,
    read_text,
)
from wordsway.cli.output import ResultOutput, check_page
from wordsway.support import names
from wordsway.support.errors import InputError
from wordsway.support.names import either


@app.command(cls=TextCommand)
def measure(
    text: TextArgument = None,
    file: TextFile = None,
    against: Annotated[
        str | None, typer.Option(help="The text with one word replaced: measure what that changes.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Measure a model instead of a map: minilm, sentiment, mpnet, a folder, a hub id, or reinit:NAME.",
            autocompletion=completion.models,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            help=f"Of a model: {either(names.OUTPUTS)} (last unless given).",
            autocompletion=completion.one_of(*names.SIMPLE_OUTPUTS),
        ),
    ] = None,
    at: Annotated[At | None, typer.Option(help="Of a model: where moves enter (embeddings unless given).")] = None,
    map: Annotated[
        str | None,
        typer.Option(
            "--map",
            help=f"{either(names.MAPS)} (raf unless given); with options as in raf:heads=4,causal.",
            autocompletion=completion.one_of(*names.MAPS),
        ),
    ] = None,
    own: Own = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="minilm (for a text, unless given), a hub id or folder, synthetic, or correlated.",
            autocompletion=completion.encoders,
        ),
    ] = None,
    layer: Annotated[int, typer.Option(min=0, help="Hidden state to embed with; 0 is the embedding layer.")] = 0,
    n: Annotated[
        int | None, typer.Option("--n", help="Keep the first N tokens; without a text, draw N (100) Gaussian ones.")
    ] = None,
    d: Annotated[int | None, typer.Option("--d", help="Keep the first D coordinates; of Gaussian tokens: 768.")] = None,
    max_tokens: MaxTokens = None,
    correlation: Annotated[float | None, typer.Option(help="Of two correlated tokens: their cosine (0.5).")] = None,
    word: Annotated[str | None, typer.Option(help="Measure one word only: itself, or its number, as #3.")] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Tokens to move: an index, several (0,3,5), or all; of a text, all tokens of words."),
    ] = None,
    joint: Annotated[bool, typer.Option("--joint", help="Move all pieces of a word together.")] = False,
    special: Annotated[bool, typer.Option("--special", help="Move special tokens ([CLS], ...) too.")] = False,
    tokens_at_once: Annotated[
        int | None, typer.Option("--tokens-at-once", help="Move so many tokens together, greedily chosen.")
    ] = None,
    choose: Annotated[
        str | None,
        typer.Option(
            help="With --tokens-at-once: greedy, random or given (--token).",
            autocompletion=completion.one_of(*names.CHOICES),
        ),
    ] = None,
    ball: Annotated[
        str,
        typer.Option(
            help="With --tokens-at-once: a ball for each token, or one shared.",
            autocompletion=completion.one_of(*names.BALLS),
        ),
    ] = "each",
    radius: Annotated[
        str,
        typer.Option(
            help="Largest norm of a move, in units of sqrt(d); with --raw or --model, of a token's own norm. Several, "
            "by commas (0.01,0.1,1): the change of each word against the radius."
        ),
    ] = "1",
    raw: Annotated[bool, typer.Option("--raw", help="Do not rescale rows to norm sqrt(d).")] = False,
    depth: Depth = None,
    activation: Annotated[
        str,
        typer.Option(
            help=f"{either(names.ACTIVATIONS)}, for rf and drf.",
            autocompletion=completion.one_of(*names.ACTIVATIONS),
        ),
    ] = "relu",
    temperature: Annotated[float, typer.Option(help="Of the softmax, for raf.")] = 1.0,
    budget: Annotated[
        str | None,
        typer.Option(
            help=f"Of the search of a token: {', '.join(names.BUDGETS)}, or evaluations.",
            autocompletion=completion.one_of(*names.BUDGETS),
        ),
    ] = None,
    certificate: Annotated[
        bool, typer.Option("--certificate/--no-certificate", help="Upper bounds; a long text is quicker without.")
    ] = True,
    draws: Annotated[
        int, typer.Option(min=0, help="Random moves to compare with; with --against, random words.")
    ] = 100,
    seed: Seed = 0,
    device: Device = "cpu",
    watch: Annotated[
        bool, typer.Option("--watch", help="Say each token's bounds on stderr as soon as they are known.")
    ] = False,
    out: Out = None,
    plot: Annotated[
        Path | None, typer.Option(help="With several radii: draw a picture to this file (.png, .pdf or .svg).")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a report, a page to look at, to this file.")] = None,
    explained: Annotated[
        int | None,
        typer.Option(
            "--explain",
            min=0,
            help="Look into so many words, the top ones (with --html: 10): attention, layers, real words.",
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure how far each word of a text can move a map or a model.

    wordsway measure "I love her smile" embeds the text with the bundled encoder and bounds every word's sensitivity.
    Without a text, N Gaussian tokens take its place.
    """
    with one_line_errors(debug):
        given = read_text(text, file)
        check_early(word, token, against, joint or special, out)
        alone = {"--against": against, "--token": token, "--tokens-at-once": tokens_at_once, "--explain": explained}
        radii = radii_asked(radius, plot, {**alone, "--watch": watch, "--joint": joint, "--special": special})
        check_page(html, out)
        if against is not None:
            check_against(explained, watch, tokens_at_once)
        end = ResultOutput(as_json, out, html, explained, seed, device)
        if given is None:
            texts = {"--model": model is not None, "--against": against is not None, "--word": word is not None}
            texts |= {"--joint": joint, "--special": special, "--raw": raw, "--layer": layer != 0}
            refuse_text_options({**texts, "--max-tokens": max_tokens is not None}, encoder)
        if model is not None:
            taken = {"--map": map, "--tokens-at-once": tokens_at_once, "--encoder": encoder, "--n": n, "--d": d}
            taken |= {"--depth": depth, "--against": against}
            refuse_with_model(taken, raw, layer, activation, temperature)
            check_output(output)
            subject: dict[str, Any] = {"model": model, "output": output or "last", "at": (at or At.embeddings).value}
            subject["certificate"] = certificate
            rows: Any = given
        elif output is not None or at is not None:
            raise InputError("--output and --at belong to --model")
        else:
            source = find_encoder(encoder, correlation, d, seed, given)
            recipe = {"depth": depth, "activation": activation, "temperature": temperature}
            subject = {"map": map or "raf", "recipe": recipe, "encoder": source, "certificate": certificate}
            rows = draw_tokens(n, d, seed, source.correlation) if given is None else given
            subject |= {"layer": layer, "raw": raw, "n": n, "d": d} if given is not None else {}
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
                budget=budget if budget is None or not budget.isdecimal() else int(budget),
                random_draws=draws,
                seed=seed,
                device=device,
            )
        if len(radii) > 1:
            answer_profile(question, radii, plot, end)
        else:
            answer(question, against, watch, end)
