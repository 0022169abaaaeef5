"""Files of results: the suffix says the format."""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import command_line
from wordsway.support.errors import InputError
from wordsway.support.files import is_stream, target_of
from wordsway.support.names import either
from wordsway.support.result import SUFFIXES, check_result_file, suffix_of

if TYPE_CHECKING:
    from wordsway.support.result import Result

PAGE = ".html"
TABLES = (".csv", ".parquet")
FORMATS = SUFFIXES


def check_files(files: Sequence[Path] | None, only: Sequence[str] = FORMATS) -> None:
    """Check, before any work, that results can be written to these files; `only` are the formats that they have."""
    targets = set()
    for file in files or ():
        plain_stream = not file.suffix and is_stream(file)  # it gets the command's one format, or JSON
        if suffix_of(file) not in only and not plain_stream and not file.is_dir():
            raise InputError(f"--out takes a file that ends in {either(only)}, got {str(file)!r}", "out")
        check_result_file(file)
        if target_of(file) in targets:
            raise InputError(f"--out names the same file twice: {str(file)!r}", "out")
        targets.add(target_of(file))


def split_out(paths: Sequence[Path] | None) -> tuple[Path | None, list[Path]]:
    """Split --out of a grid into the folder of its run, if one is named, and files of its result. Files are checked
    before any work."""
    folders = [path for path in paths or () if path.is_dir() or not (path.suffix or is_stream(path))]
    files = [path for path in paths or () if path not in folders]
    check_files(files)
    if len(folders) > 1:
        raise InputError(f"--out takes one folder, got {' and '.join(repr(str(each)) for each in folders)}", "out")
    return (folders[0] if folders else None), files


def has_page(files: Sequence[Path] | None) -> bool:
    """Whether a page is among the files."""
    return any(file.suffix.lower() == PAGE for file in files or ())


def save_result(result: "Result", path: Path) -> None:
    """Save a result, with how it was made, in the format of the path's suffix."""
    from wordsway.support.provenance import made

    full: Any = result
    if getattr(full, "made", "none") is None:
        full = replace(full, made=made(command_line()))
    with warnings.catch_warnings(record=True) as lacking:
        warnings.simplefilter("always")
        full.save(path)
    for note in lacking:
        if "missing from font" not in str(note.message):
            warnings.warn_explicit(note.message, note.category, note.filename, note.lineno)
    if any("missing from font" in str(note.message) for note in lacking):
        print("wordsway: note: the picture's font lacks some characters of the text", file=sys.stderr)
