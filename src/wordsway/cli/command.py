"""The application, and what every command does: errors and notes as one line each, text that a terminal can show."""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from wordsway import __version__
from wordsway.cli.help_pages import CommandGroups
from wordsway.support.errors import DamageWarning, InputError, TextWarning, shortened
from wordsway.support.progress import quietly
from wordsway.support.stopping import stopped_by_sigterm

app = typer.Typer(
    cls=CommandGroups,
    pretty_exceptions_enable=False,
    help="Measure how far one word can move a model: lower bounds by search, upper bounds by certificates.",
)


@contextmanager
def one_line_errors(debug: bool, quiet: bool = False, out: Path | None = None) -> Iterator[None]:
    """One clear line and exit code 2 for what a user can mend; one line for what a user should know, and progress
    unless `quiet`. `out` is a folder where results are kept as they come."""
    try:
        with stopped_by_sigterm(), quietly(quiet), warnings.catch_warnings():
            warnings.simplefilter("always", TextWarning)
            warnings.simplefilter("always", DamageWarning)
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
        print(f"wordsway: {printable(shortened(message))}", file=sys.stderr)
        raise typer.Exit(2) from None


def _mend(error: OSError) -> str:
    """Describe an error of the operating system, and say what to do about it."""
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
        errno.EFBIG: "files may not grow beyond a limit (ulimit -f); raise it, or name another place with --out",
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
    """Measure how far one word can move a model: lower bounds by search, upper bounds by certificates."""


def command_line() -> list[str]:
    """Return the command line as it was typed, to be saved with results."""
    return ["wordsway", *sys.argv[1:]]


def short_name(model: str) -> str:
    """A model's name for a line: of a file, without its folders."""
    return printable(Path(model).name if model.endswith(".gguf") else model)


def printable(text: str) -> str:
    """Text for a terminal: what would move the cursor, change colours or the direction of writing is spelled out."""
    joiners = "\u200c\u200d"  # scripts and emoji need these
    return "".join(c if c.isprintable() or c in joiners else c.encode("unicode_escape").decode() for c in text)
