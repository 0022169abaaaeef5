"""`wordsway measure`: one map at one text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsway.cli import completion
from wordsway.cli.measure_checks import GAUSSIAN, check_early, refuse_text_options, refuse_with_model
from wordsway.cli.model_options import At, Device, check_output, measure_model, said, the_text
from wordsway.cli.options import (
    Debug,
    Depth,
    Json,
    Own,
    Seed,
    TextCommand,
    app,
    one_line_errors,
    read_text,
    whole_numbers,
)
from wordsway.cli.output import Ending
from wordsway.cli.report_command import check_page
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.models.running.encoder import Encoder
    from wordsway.tokens import Tokens


@app.command(cls=TextCommand)
def measure(
    text: Annotated[
        str | None,
        typer.Argument(
            help="The text; - reads it from stdin. Put -- before one that begins with a dash.", show_default=False
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Read the text from this file (UTF-8).")] = None,
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
            help="Of a model: last (unless given), pooled, logits, layer:K or all-layers.",
            autocompletion=completion.one_of(*completion.OUTPUTS),
        ),
    ] = None,
    at: Annotated[At | None, typer.Option(help="Of a model: where moves enter (embeddings unless given).")] = None,
    map: Annotated[
        str | None,
        typer.Option(
            "--map",
            help="rf, drf, raf (unless given), relu-raf, transformer; raf:heads=4,causal.",
            autocompletion=completion.one_of(*completion.MAPS),
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
    max_tokens: Annotated[int | None, typer.Option(help="Crop a text that is longer than this.")] = None,
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
            autocompletion=completion.one_of("greedy", "random", "given"),
        ),
    ] = None,
    ball: Annotated[
        str,
        typer.Option(
            help="With --tokens-at-once: a ball for each token, or one shared.",
            autocompletion=completion.one_of("each", "shared"),
        ),
    ] = "each",
    radius: Annotated[
        float, typer.Option(help="Largest norm of a move, in units of sqrt(d); with --raw, of a token's own norm.")
    ] = 1.0,
    raw: Annotated[bool, typer.Option("--raw", help="Do not rescale rows to norm sqrt(d).")] = False,
    depth: Depth = None,
    activation: Annotated[
        str,
        typer.Option(
            help="relu, tanh, gelu or identity, for rf and drf.",
            autocompletion=completion.one_of(*completion.ACTIVATIONS),
        ),
    ] = "relu",
    temperature: Annotated[float, typer.Option(help="Of the softmax, for raf.")] = 1.0,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Of the search of a token: quick, default, thorough, or evaluations.",
            autocompletion=completion.one_of(*completion.BUDGETS),
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
    out: Annotated[Path | None, typer.Option(help="Also save the result to this JSON file.")] = None,
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
    """How far can each word of a text move a map's features?

    wordsway measure "I love her smile" embeds the text with the bundled encoder and bounds every word's sensitivity.
    Without a text, N Gaussian tokens take its place.
    """
    with one_line_errors(debug):
        given = read_text(text, file)
        check_early(radius, word, token, against, joint or special, out)
        check_page(html)
        if against is not None and explained:
            raise InputError("--explain is about the words of one text; it does not go with --against")
        if html is not None and out is not None and html.absolute() == out.absolute():
            raise InputError("--html and --out name the same file; give each one of its own")
        end = Ending(as_json, out, html, explained, seed, device)
        if given is None:
            refuse_text_options(encoder, model, against, word, joint, special, raw, layer, max_tokens)
        evaluations = budget if budget is None or not budget.isdecimal() else int(budget)
        if model is not None:
            taken = {
                "--map": map,
                "--tokens-at-once": tokens_at_once,
                "--encoder": encoder,
                "--n": n,
                "--d": d,
                "--depth": depth,
                "--against": against,
            }
            refuse_with_model(taken, raw, layer, activation, temperature)
            check_output(output)
            moves = {"joint": joint, "special": special, "random_draws": draws, "seed": seed, "budget": evaluations}
            moves["each"] = said if watch else None
            pick = lambda tokens: _chosen(tokens, word, token)  # noqa: E731
            where = at or At.embeddings
            return measure_model(
                the_text(given, None),
                model,
                output or "last",
                where,
                radius,
                max_tokens,
                device,
                pick,
                moves,
                end,
            )
        if output is not None or at is not None:
            raise InputError("--output and --at belong to --model")
        from wordsway.cli import show
        from wordsway.maps.named import named_map
        from wordsway.measures.sensitivity import word_sensitivity
        from wordsway.support.progress import progress_bar
        from wordsway.tokens import synthetic_tokens

        source = _encoder(given, encoder, d, correlation, seed)
        prepare = _Prepare(source, layer, not raw, max_tokens, device, n, d)
        X: Any = (
            synthetic_tokens(n if n is not None else 100, d if d is not None else 768, seed, source.correlation)
            if given is None
            else prepare(given)
        )
        rows = X if given is None else X.X
        options: dict[str, Any] = {"activation": activation, "temperature": temperature, "device": device}
        phi = named_map(map or "raf", rows.shape[0], rows.shape[1], seed, depth=depth, **options)
        search: dict[str, Any] = {
            "seed": seed,
            "budget": evaluations,
            "device": device,
            "radius": _radius(radius, rows, raw),
            "certificate": certificate,
        }
        if against is not None and watch:
            raise InputError("--watch is about the words of one text; it does not go with --against")
        if against is not None and tokens_at_once is not None:
            raise InputError("--against names the one word that changes; --tokens-at-once does not go with it")
        if against is not None:
            from wordsway.measures.compare_word import changed_word, substitution
            from wordsway.models.encoding.vocabulary import random_words

            other = prepare(against)
            place = changed_word(X, other)
            words = random_words(X, place, draws, encoder=source, seed=seed, device=device) if draws else []
            compared = substitution(phi, X, other, words, **search)
            return end.write(end.compared(compared), show.substitution)
        every = "all" if tokens_at_once is not None and token is None and word is None else token
        chosen = _chosen(X if given is not None else None, word, every)
        with progress_bar(not as_json) as update:
            result = word_sensitivity(
                phi,
                X,
                chosen,
                joint=joint,
                special=special,
                tokens_at_once=tokens_at_once,
                choose=choose,
                ball=ball,
                random_draws=draws,
                each=said if watch else None,
                progress=lambda done, total: update(done, total, "token"),
                **search,
            )
        end.write(end.complete(phi, X, result, None if isinstance(source, str) else source), show.sensitivity)


def _encoder(text: str | None, name: str | None, d: int | None, correlation: float | None, seed: int) -> Any:
    """The encoder by its name; Gaussian ones as objects, since they have options."""
    if correlation is not None and name != "correlated":
        raise InputError("--correlation belongs to --encoder correlated")
    if name not in GAUSSIAN and text is not None:
        return "minilm" if name is None else name
    from wordsway.models.encoding.synthetic import SyntheticEncoder

    strength = 0.0 if name != "correlated" else 0.5 if correlation is None else correlation
    return SyntheticEncoder(768 if d is None else d, strength, seed)


class _Prepare:
    """A text as tokens, cropped as asked; the same for both texts of a comparison."""

    def __init__(
        self,
        encoder: "str | Encoder",
        layer: int,
        normalize: bool,
        max_tokens: int | None,
        device: str,
        n: int | None,
        d: int | None,
    ) -> None:
        self.encoder, self.n, self.d = encoder, n, d
        self.options = {"layer": layer, "normalize": normalize, "max_tokens": max_tokens, "device": device}

    def __call__(self, text: str) -> "Tokens":
        from wordsway.models.encoding.encode import encode
        from wordsway.tokens import check_size

        tokens = encode(text, self.encoder, **self.options)
        if self.n is not None:
            if check_size(self.n, "--n") > len(tokens):
                have = len(tokens)
                raise InputError(f"--n {self.n} is more than the {have} tokens that the text has; use at most {have}")
            tokens = tokens[: self.n]
        return tokens if self.d is None else tokens.first_dims(self.d)


def _radius(radius: float, rows: Any, raw: bool) -> Any:
    if raw:
        return [radius * size for size in rows.double().norm(dim=1).tolist()]
    return radius * rows.shape[1] ** 0.5


def _chosen(tokens: "Tokens | None", word: str | None, token: str | None) -> Any:
    """Which tokens to move."""
    if word is not None and tokens is not None:
        from wordsway.measures.words import find_words

        return [piece for k in find_words(tokens, word) for piece in tokens.pieces[k]]
    if token is None:
        return "all" if tokens is not None else [0]
    return token if token == "all" else whole_numbers(token, "--token")
