"""What all commands share: the application, options with one meaning, errors and notes as one line each."""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wordsway import __version__
from wordsway.cli import completion
from wordsway.support.errors import InputError, TextWarning
from wordsway.support.files import decode

_UsageError: Any = typer.BadParameter.__mro__[1]  # has no public name in every version

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="How far can one word move a model? Bounds from below (search) and from above (certificates).",
)


def _allow(modules: list[str] | None) -> list[str] | None:
    """Maps of one's own are code, which only the command line may ask for."""
    if modules:
        from wordsway.maps.named import allow_maps

        with one_line_errors(debug=False):
            allow_maps(*modules)
    return modules


class TextCommand(TyperCommand):
    """A command whose argument is a text: one without quotes comes as several arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            if "unexpected extra argument" in str(error):
                error.message += f'. Put the text in quotes: wordsway {ctx.info_name} "I love her smile"'
            raise


Seed = Annotated[int, typer.Option(min=0, help="Root of all randomness.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Layers of drf (2 unless given).")]
Own = Annotated[
    list[str] | None,
    typer.Option("--own", help="A module of yours whose maps may be used, as MODULE:FUNCTION.", callback=_allow),
]
Maps = Annotated[
    str, typer.Option("--map", help="Maps, by commas.", autocompletion=completion.list_of(*completion.MAPS))
]
DataEncoder = Annotated[
    str, typer.Option(help="With --data: minilm, a hub id or a folder.", autocompletion=completion.models)
]
Engine = Annotated[
    str,
    typer.Option(help="inline, processes (one a core) or dask.", autocompletion=completion.one_of(*completion.ENGINES)),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes, or Dask workers of this machine.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@contextmanager
def one_line_errors(debug: bool, out: Path | None = None) -> Iterator[None]:
    """One clear line and exit code 2 for what a user can mend; one line for what a user should know. `out` is a folder
    where results are kept as they come."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", TextWarning)
            warnings.showwarning = _note
            yield
    except KeyboardInterrupt:
        kept = "" if out is None else f"; what was measured is kept in {out}: the same command goes on from there"
        print(f"\nwordsway: stopped{kept}", file=sys.stderr)
        raise typer.Exit(130) from None
    except (InputError, OSError) as error:
        if debug:
            raise
        message = _mend(error) if isinstance(error, OSError) else str(error)
        print(f"wordsway: {printable(message)}", file=sys.stderr)
        raise typer.Exit(2) from None


def _mend(error: OSError) -> str:
    """What the system refused, and what to do about it."""
    if not error.strerror:
        return str(error)
    name = "" if error.filename is None else f": {str(error.filename)!r}"
    usual = error.strerror == os.strerror(error.errno or 0)  # else it is ours, and says what to do itself
    advice = {
        errno.ENOENT: "check the path, and in which folder you are",
        errno.EISDIR: "name a file in it",
        errno.EACCES: "check who may read and write it, or name another place",
        errno.EPERM: "check who may read and write it, or name another place",
        errno.EROFS: "name another place with --out",
        errno.ENOSPC: "free some space, or name another place with --out",
    }
    fix = advice.get(error.errno or 0) if usual else None
    return f"{error.strerror}{name}" + ("" if fix is None else f"; {fix}")


def _note(message: Warning | str, *details: Any, **more: Any) -> None:
    print(f"wordsway: note: {printable(str(message))}", file=sys.stderr)


def _version(value: bool) -> bool:
    if value:
        print(f"wordsway {__version__}")
        raise typer.Exit
    return value


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """How far can one word move a model? Bounds from below (search) and from above (certificates)."""


def command_line() -> list[str]:
    """What was typed, for the record."""
    return ["wordsway", *sys.argv[1:]]


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


def whole_numbers(text: str, option: str) -> list[int]:
    """Numbers that a user gave by commas."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{option} takes whole numbers, by commas, got {text!r}") from None


def numbers_of(text: str, option: str) -> list[float]:
    """The same, with a fraction."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{option} takes numbers, by commas, got {text!r}") from None


def names_of(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def short_name(model: str) -> str:
    """A model's name for a line: of a file, without its folders."""
    return printable(Path(model).name if model.endswith(".gguf") else model)


def printable(text: str) -> str:
    """Text for a terminal: what would move the cursor, change colours or the direction of writing is spelled out."""
    joiners = "\u200c\u200d"  # scripts and emoji need these
    return "".join(c if c.isprintable() or c in joiners else c.encode("unicode_escape").decode() for c in text)
