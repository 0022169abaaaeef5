"""The interface that all results share: a line about them, a table, a picture, files, notebooks.

A new kind of result is a dataclass that inherits `Result` and says its `format`, `records`, `plot` and `summary`, and a
line in `RESULTS` and in `RESULT_SUBJECTS` of `support/names.py`; `testing/result_tests.py` then tests it.
"""

import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from wordsway.support.dataframes import frame
from wordsway.support.earlier_formats import in_this_format
from wordsway.support.errors import InputError
from wordsway.support.files import check_target, is_stream, read_bytes, write_bytes
from wordsway.support.json_values import read_fields, to_values
from wordsway.support.names import RESULTS, either
from wordsway.support.public_gate import public
from wordsway.support.registry import load_home
from wordsway.support.table_files import csv_of, parquet_of

# The report lies above all results, so it is named here and imported when a page is asked for.
_PAGE, _NOTEBOOK = "wordsway.report.page:report_html", "wordsway.report.notebook:notebook_html"
_DPI = 160
_SAVED = "name a .json file that -o of a command or the save method of a result wrote"


class Result(ABC):
    """Base of all results. `format` names the kind of result and its version in files; `in_memory` are fields that
    files do not have; `compared` the columns that tell rows apart, and the one that is compared with other results."""

    format: ClassVar[str]
    in_memory: ClassVar[tuple[str, ...]] = ()
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = None

    @abstractmethod
    def summary(self) -> str:
        """Say the result in a few words, for `repr`."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Make the table, one dict a row. Words are numbered from 1."""

    @abstractmethod
    def plot(self, ax: Any = None) -> Any:
        """Draw the result on given or new axes. Returns the axes."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary()})"

    def _repr_html_(self) -> str:
        """Show a line, the picture and the first rows in a notebook."""
        return load_home(_NOTEBOOK)(self)

    def to_dataframe(self) -> Any:
        """Return the table as a pandas DataFrame. Words are numbered from 1; `attrs` say what the table is about."""
        return frame(self.records(), self.attributes())

    def attributes(self) -> dict[str, Any]:
        """Say what the table is about, in JSON values: all plain fields, the map, the text. They are the `attrs` of a
        data frame, which a Parquet file keeps."""
        own: dict[str, Any] = dict(self.__dict__)
        kept = {name: to_values(v) for name, v in own.items() if isinstance(v, str | int | float) or name == "map"}
        text = own.get("text")
        return {"format": self.format} | kept | ({"text": text.get("text")} if isinstance(text, dict) else {})

    def to_dict(self) -> dict[str, Any]:
        """Return everything but what is in memory only, as JSON values."""
        own: dict[str, Any] = dict(self.__dict__)  # all kinds are dataclasses, with their fields in order
        return {"format": self.format} | {k: to_values(v) for k, v in own.items() if k not in self.in_memory}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Any:
        """Make a result from what `to_dict` gave, in this version or an earlier one."""
        values = in_this_format(values)
        if values.get("format") != cls.format:
            raise InputError(f"its format is {values.get('format')!r}, not {cls.format!r}")
        return cls(**cls.read({name: value for name, value in values.items() if name != "format"}))

    @classmethod
    def read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the fields from JSON values; a kind that writes some in a way of its own reads them so, too."""
        return read_fields(cls, values)

    @public
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the format of its suffix: .json (everything; `load_result` reads it), .csv or .parquet (the
        table), .html (a page), .png, .svg or .pdf (the picture). The file appears whole or not at all. Standard output
        ("-"), a device or a pipe gets the JSON."""
        content = _CONTENTS[check_result_file(path)]
        write_bytes(path, content(self))


def _json(result: Result) -> bytes:
    return (json.dumps(result.to_dict(), indent=1, allow_nan=False) + "\n").encode()


def _picture(suffix: str) -> Callable[[Result], bytes]:
    def draw(result: Result) -> bytes:
        content = io.BytesIO()
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # the same picture is the same file
        result.plot().figure.savefig(content, format=suffix[1:], dpi=_DPI, metadata=dated.get(suffix))
        return content.getvalue()

    return draw


def subject_of_map(map: dict[str, Any]) -> str:
    """Name what was measured, from how a result describes it: the model, else the map."""
    return str(map.get("model", map.get("map")))


_CONTENTS: dict[str, Callable[[Result], bytes]] = {
    ".json": _json,
    ".csv": lambda result: csv_of(result.records()).encode(),
    ".parquet": lambda result: parquet_of(result.records(), result.attributes()),
    ".html": lambda result: load_home(_PAGE)(result).encode(),
    **{suffix: _picture(suffix) for suffix in (".png", ".pdf", ".svg")},
}
SUFFIXES = tuple(_CONTENTS)


def check_result_file(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file for a result, or raise an error where there is no such format or it cannot be
    written there."""
    suffix = suffix_of(path)
    if suffix not in _CONTENTS and not Path(path).is_dir():  # which has an error of its own, below
        raise InputError(
            f"a result is saved in the format of the file's suffix, {either(_CONTENTS)}; got {os.fspath(path)!r}",
            argument="path",
        )
    if suffix == ".parquet":
        _check_pyarrow()
    check_target(path)
    return suffix


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix that says a file's format; standard output, a device or a pipe without one gets JSON."""
    suffix = Path(path).suffix.lower()
    return ".json" if not suffix and is_stream(path) else suffix


def _check_pyarrow() -> None:
    """Raise the error of a missing library now, not after the work."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise InputError("a Parquet file needs pyarrow: pip install 'wordsway[data]'; .csv needs nothing")


@public
def load_result(path: str | os.PathLike[str]) -> Any:
    """Read a result of any kind from the .json file that its `save` or -o of a command wrote, in this version or an
    earlier one."""
    name = repr(os.fspath(path))
    try:
        text = read_bytes(path).decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}; {_SAVED}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not JSON: {error}; {_SAVED}") from None
    try:
        values = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}; {_SAVED}") from None
    return result_of(values, name)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number that a result has")


def result_of(values: Any, name: str) -> Any:
    """Make a result of any kind from its JSON values; `name` is how an error calls them."""
    values = in_this_format(values) if isinstance(values, dict) else values
    known = values.get("format") if isinstance(values, dict) else None
    if not isinstance(known, str) or known not in RESULTS:
        raise InputError(f"{name} is no result of this version: its format is {known!r}; {_SAVED}")
    try:
        return load_home(RESULTS[known]).from_dict(values)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"{name} is a damaged result, make it again: {error}") from None
