"""Values of options: how texts, numbers, names and lists of words are read."""

from pathlib import Path

from wordsway.support import names
from wordsway.support.errors import InputError
from wordsway.support.files import decode, read_bytes, read_stdin
from wordsway.support.public_gate import read_whole


def read_text(text: str | None, file: Path | None) -> str | None:
    """A text from the command line, a file or stdin; None where none was given."""
    if text is not None and file is not None:
        raise InputError("give a text or --file, not both: leave one of them out")
    if file is not None:
        content, name = read_bytes(file), str(file)
    elif text == "-":
        content, name = read_stdin(), "what came on stdin"
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


def budget_of(text: str | None) -> str | int | None:
    """Read a budget: its name, or a number of evaluations."""
    return text if text is None or not text.isdecimal() else read_whole(text, "--budget")


def numbers_of(text: str, option: str) -> list[float]:
    """Read comma-separated numbers, which may have a fraction."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{option} takes numbers, by commas, got {text!r}") from None


def names_of(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def check_of(name: str | None) -> None:
    """Before a model is loaded: is there an output of that name?"""
    if name is not None:
        names.OUTPUTS.key(name, f"--of {name!r}")


def word_list(path: Path | None) -> list[str] | None:
    """A file of words, one a line; lines that begin with # are comments."""
    if path is None:
        return None
    lines = [line.strip() for line in decode(read_bytes(path), str(path)).splitlines()]
    words = [line for line in lines if line and not line.startswith("#")]
    if not words:
        raise InputError(f"{str(path)!r} has no words; write some, one a line")
    return words
