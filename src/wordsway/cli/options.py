"""Options that commands share, each with one meaning, and how their values are read.

`ModelOptions` are those of every command about a model and a text, `GridOptions` those of every command that measures a
grid of maps; `with_options` gives them to a command.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from wordsway.cli import completion
from wordsway.cli.command import one_line_errors
from wordsway.support import names
from wordsway.support.errors import InputError
from wordsway.support.files import check_target, decode
from wordsway.support.names import Budget, either


class At(StrEnum):
    embeddings = "embeddings"
    word_embeddings = "word-embeddings"


def _allow(modules: list[str] | None) -> list[str] | None:
    """Allow modules of one's own: they are code, which only the command line may ask for."""
    if modules:
        from wordsway.support.own_code import allow_maps

        with one_line_errors(debug=False):
            allow_maps(*modules)
    return modules


Seed = Annotated[int, typer.Option(min=0, help="Root of all randomness.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Layers of drf (2 unless given).")]
Own = Annotated[
    list[str] | None,
    typer.Option("--own", help="A module of yours that may be used, for --map MODULE:FUNCTION.", callback=_allow),
]
Maps = Annotated[str, typer.Option("--map", help="Maps, by commas.", autocompletion=completion.list_of(*names.MAPS))]
DataEncoder = Annotated[
    str, typer.Option(help="With --data: minilm, a hub id or a folder.", autocompletion=completion.models)
]
Engine = Annotated[
    str,
    typer.Option(help="inline, processes (one a core) or dask.", autocompletion=completion.one_of(*names.ENGINES)),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes, or Dask workers of this machine.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
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
Device = Annotated[
    str, typer.Option(help=f"{either(names.DEVICES)}.", autocompletion=completion.one_of(*names.DEVICES))
]
Out = Annotated[Path | None, typer.Option(help="Also save the result to this JSON file.")]
Plot = Annotated[Path | None, typer.Option(help="Draw a picture to this file (.png, .pdf or .svg).")]
Token = Annotated[
    int | None, typer.Option(min=0, help="The token that moves; unless given, the first that is not special.")
]
DataLayer = Annotated[int, typer.Option(min=0, help="With --data: the hidden state to embed with.")]
RunFolder = Annotated[
    Path | None, typer.Option(help="Folder for tables and pictures; a run that was stopped goes on from there.")
]

Scheduler = Annotated[str | None, typer.Option(help="With --engine dask: a scheduler that runs, tcp://HOST:PORT.")]
Scale = Annotated[
    str,
    typer.Option(
        help="smoke (seconds), laptop (minutes) or paper (the published grid).",
        autocompletion=completion.one_of(*names.SCALES),
    ),
]
Trials = Annotated[int | None, typer.Option(min=1, help="Texts and weights to average over.")]
Data = Annotated[
    str | None,
    typer.Option(
        help=f"Labelled texts: {', '.join(names.DATA)}, a file, a folder or a hub id.", autocompletion=completion.data
    ),
]
RunSeed = Annotated[int | None, typer.Option("--seed", min=0, help="Root of all randomness (0 unless given).")]
Run = Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)]


@dataclass(frozen=True)
class ModelOptions:
    """Options of a command about a model and a text."""

    text: TextArgument = None
    file: TextFile = None
    model: Model = "minilm"
    budget: BudgetOption = Budget.default
    max_tokens: MaxTokens = None
    seed: Seed = 0
    device: Device = "cpu"
    plot: Plot = None
    out: Out = None
    as_json: Json = False
    debug: Debug = False

    def checked_text(self) -> str:
        """Read the text, and check that results can be written."""
        given = the_text(self.text, self.file)
        check_files(self.out)
        check_picture(self.plot)
        return given


@dataclass(frozen=True)
class GridOptions:
    """Options of a command that measures maps on a grid of lengths."""

    map: Maps = "rf,raf,relu-raf"
    own: Own = None
    depth: Depth = None
    token: Token = None
    encoder: DataEncoder = "minilm"
    layer: DataLayer = 0
    seed: Seed = 0
    out: RunFolder = None
    engine: Engine = "processes"
    workers: Workers = None
    as_json: Json = False
    debug: Debug = False


def with_options(shared: type[Any], first: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a dataclass. It takes them as its first argument, and its own ones after that.

    In the command's help, its own options stand behind the shared one that is named `first`, before the others.
    """
    hints = get_type_hints(shared, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    common = [inspect.Parameter(f.name, kind, default=f.default, annotation=hints[f.name]) for f in fields(shared)]
    place = [parameter.name for parameter in common].index(first) + 1

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [p.replace(kind=kind) for p in list(inspect.signature(command).parameters.values())[1:]]
        parameters = [*common[:place], *own, *common[place:]]

        def run(**values: Any) -> None:
            taken = {parameter.name: values.pop(parameter.name) for parameter in common}
            command(shared(**taken), **values)

        # typer reads these of a command.
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def read_text(text: str | None, file: Path | None) -> str | None:
    """A text from the command line, a file or stdin; None where none was given."""
    if text is not None and file is not None:
        raise InputError("give a text or --file, not both: leave one of them out")
    if file is not None:
        content, name = file.read_bytes(), str(file)
    elif text == "-":
        content, name = sys.stdin.buffer.read(), "what came on stdin"
    else:
        return text
    return decode(content, name).rstrip("\r\n")


def the_text(text: str | None, file: Path | None) -> str:
    """A text that must be there."""
    given = read_text(text, file)
    if given is None:
        raise InputError('give a text in quotes, as "I love her smile", or --file PATH, or - for stdin')
    if not given.strip():
        raise InputError('the text is empty; give some words, as "I love her smile"')
    return given


def whole_numbers(text: str, option: str) -> list[int]:
    """Numbers that a user gave by commas."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{option} takes whole numbers, by commas, got {text!r}") from None


def numbers_of(text: str, option: str) -> list[float]:
    """Read comma-separated numbers, which may have a fraction."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{option} takes numbers, by commas, got {text!r}") from None


def names_of(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def check_output(name: str | None) -> None:
    """Before a model is loaded: is there an output of that name?"""
    if name is not None:
        names.OUTPUTS.key(name, f"--output {name!r}")


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
