"""Files of results: the suffix says the format."""

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wordsway.cli.command import command_line
from wordsway.support.errors import InputError
from wordsway.support.files import check_target, write_bytes, write_text
from wordsway.support.names import either

PAGE = ".html"
TABLES = (".csv", ".parquet")
PICTURES = (".png", ".pdf", ".svg")
FORMATS = (".json", *TABLES, PAGE, *PICTURES)


def check_files(files: Sequence[Path] | None, without: Sequence[str] = ()) -> None:
    """Check, before any work, that results can be written to these files; `without` are formats that they lack."""
    known = [suffix for suffix in FORMATS if suffix not in without]
    targets = set()
    for file in files or ():
        if file.suffix.lower() not in known and not file.is_dir():
            raise InputError(f"--out takes a file that ends in {either(known)}, got {str(file)!r}", "out")
        check_target(file)
        if file.absolute() in targets:
            raise InputError(f"--out names the same file twice: {str(file)!r}", "out")
        targets.add(file.absolute())


def has_page(files: Sequence[Path] | None) -> bool:
    """Whether a page is among the files."""
    return any(file.suffix.lower() == PAGE for file in files or ())


def save_result(result: Any, path: Path) -> None:
    """Save a result in the format of the path's suffix."""
    suffix = path.suffix.lower()
    if suffix in PICTURES:
        _draw(result, path)
    elif suffix in TABLES:
        from wordsway.studies.run.tables import Table

        rows = result.rows() if hasattr(result, "rows") else result.to_dataframe().to_dict("records")
        write_bytes(path, Table(tuple(rows)).export(suffix[1:]))
    elif suffix == PAGE:
        write_text(path, _page(result))
    else:
        write_text(path, json.dumps(values_of(result), indent=1, allow_nan=False) + "\n")


def values_of(result: Any) -> dict[str, Any]:
    """Everything of a result as JSON values, with how it was made."""
    from wordsway.support.provenance import made

    values = result.to_dict()
    return values if values.get("made") else {**values, "made": made(command_line())}


def _page(result: Any) -> str:
    from wordsway.report.page import html_of, report_html

    if getattr(result, "made", None):
        return report_html(result)
    from wordsway.report.model_results import of_values

    return html_of(of_values(values_of(result), "the result"))


def _draw(result: Any, path: Path) -> None:
    with warnings.catch_warnings(record=True) as lacking:
        warnings.simplefilter("always")
        result.plot().figure.savefig(path, dpi=160)
    if any("missing from font" in str(note.message) for note in lacking):
        print("wordsway: note: the picture's font lacks some characters of the text", file=sys.stderr)
