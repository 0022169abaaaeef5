"""What the commands about pre-trained models share, and `wordsway measure --model`."""

import json
import re
import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsway.cli import completion
from wordsway.cli.options import command_line, number, read_text, short_name
from wordsway.support.errors import InputError
from wordsway.support.files import check_target, decode, write_text

if TYPE_CHECKING:
    from wordsway.cli.output import Ending
    from wordsway.measures.results import TokenSensitivity
    from wordsway.models.running.model import Transformer


class At(StrEnum):
    embeddings = "embeddings"
    word_embeddings = "word-embeddings"


class Budget(StrEnum):
    quick = "quick"
    default = "default"
    thorough = "thorough"


TextArgument = Annotated[
    str | None, typer.Argument(help="The text; - reads it from stdin. Put -- before one that begins with a dash.")
]
TextFile = Annotated[Path | None, typer.Option("--file", help="Read the text from this file (UTF-8).")]
Model = Annotated[
    str,
    typer.Option(
        help="minilm or sentiment (bundled), mpnet, a folder, a .gguf file, or a hub id; "
        "reinit: before it redraws its weights.",
        autocompletion=completion.models,
    ),
]
AtOption = Annotated[
    At, typer.Option(help="Where moves enter: the embedding layer's output, or before positions and normalisation.")
]
BudgetOption = Annotated[Budget, typer.Option(help="How long to search.")]
Radius = Annotated[float, typer.Option(help="Norm of a move, in units of the word's own embedding norm.")]
MaxTokens = Annotated[int | None, typer.Option(help="Crop a text that is longer than this.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or mps.", autocompletion=completion.one_of(*completion.DEVICES))]
Out = Annotated[Path | None, typer.Option(help="Also save the result to this JSON file.")]
Plot = Annotated[Path | None, typer.Option(help="Draw a picture to this file (.png, .pdf or .svg).")]


def the_text(text: str | None, file: Path | None) -> str:
    """A text that must be there."""
    given = read_text(text, file)
    if given is None:
        raise InputError('give a text in quotes, as "I love her smile", or --file PATH, or - for stdin')
    if not given.strip():
        raise InputError('the text is empty; give some words, as "I love her smile"')
    return given


def check_output(name: str | None) -> None:
    """Before a model is loaded: is there an output of that name?"""
    if name is not None and not re.fullmatch(r"last|pooled(:first|:last|:mean)?|logits|all-layers|layer:\d+", name):
        known = "last, pooled, pooled:first, pooled:last, logits, layer:K or all-layers"
        raise InputError(f"--output {name!r} is not known; use {known}")


def check_files(*paths: Path | None) -> None:
    """Before any work: can results be written where they are to be?"""
    for path in paths:
        if path is not None:
            check_target(path)


def check_picture(path: Path | None) -> None:
    if path is not None and path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--plot takes a file that ends in .png, .pdf or .svg, got {str(path)!r}")
    check_files(path)


def word_list(path: Path | None) -> list[str] | None:
    """A file of words, one a line; lines that begin with # are comments."""
    if path is None:
        return None
    lines = [line.strip() for line in decode(path.read_bytes(), str(path)).splitlines()]
    words = [line for line in lines if line and not line.startswith("#")]
    if not words:
        raise InputError(f"{str(path)!r} has no words; write some, one a line")
    return words


def open_quietly(model: str, device: str) -> "Transformer":
    """Load a model while a line says so, as that takes some seconds."""
    from wordsway.models.loading.load import open_model
    from wordsway.support.progress import waiting

    with waiting(f"loading {short_name(model)}"):
        return open_model(model, device=device)


def said(entry: "TokenSensitivity") -> None:
    """One line on stderr for what was just measured."""
    upper = "" if entry.upper is None else f", at most {number(entry.upper)}"
    print(f"token {', '.join(map(str, entry.tokens))}: at least {number(entry.lower)}{upper}", file=sys.stderr)


def finish(result: Any, as_json: bool, out: Path | None, plot: Path | None, show: Any) -> None:
    """Save, draw and print a result."""
    if out is not None:
        from wordsway.support.provenance import made

        values = {**result.to_dict(), "made": made(command_line())}
        write_text(out, json.dumps(values, indent=1, allow_nan=False) + "\n")
    if plot is not None:
        with warnings.catch_warnings(record=True) as lacking:
            warnings.simplefilter("always")
            result.plot().figure.savefig(plot, dpi=160)
        if any("missing from font" in str(note.message) for note in lacking):
            print("wordsway: note: the picture's font lacks some characters of the text", file=sys.stderr)
    if as_json:
        return print(json.dumps(result.to_dict(), allow_nan=False))
    show(result)
    if plot is not None:
        print(f"wrote {plot}")


def measure_model(
    text: str,
    model: str,
    output: str,
    at: At,
    radius: float,
    max_tokens: int | None,
    device: str,
    choose: Any,
    search: dict[str, Any],
    end: "Ending",
) -> None:
    """`wordsway measure TEXT --model M`. `choose` says which tokens of the encoded text to move."""
    from wordsway.cli import show
    from wordsway.measures.sensitivity import word_sensitivity
    from wordsway.models.moving.map import PretrainedMap
    from wordsway.support.progress import progress_bar

    phi = PretrainedMap(open_quietly(model, device), output, at=at.value)
    tokens = phi.encode(text, max_tokens)
    radii = [radius * size for size in tokens.X.double().norm(dim=1).tolist()]
    with progress_bar(not end.as_json) as update:
        result = word_sensitivity(
            phi,
            tokens,
            choose(tokens),
            radius=radii,
            device=device,
            progress=lambda done, total: update(done, total, "token"),
            **search,
        )
    end.write(end.complete(phi, tokens, result), show.sensitivity)
