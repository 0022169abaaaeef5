"""A folder for a run that may be stopped: its plan, and a table to which finished rows are appended."""

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from wordsway.errors import InputError
from wordsway.files import decode, write_text

Row = TypeVar("Row")  # a dataclass of str, int, float and float | None


class RunLog(Generic[Row]):
    """plan.json and a CSV file of rows, append only. A folder serves one plan: another one is refused."""

    def __init__(self, folder: Path, plan: Any, row: type[Row], table: str, what: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None
        self.folder, self.table, self.row = folder, folder / table, row
        text = json.dumps(asdict(plan), indent=1) + "\n"
        plan_file = folder / "plan.json"
        if not plan_file.exists() or not self.read():  # a plan of which nothing was measured holds no one up
            write_text(plan_file, text)
        elif plan_file.read_bytes() != text.encode():
            raise InputError(
                f"{str(folder)!r} holds another {what} (see its plan.json); choose another folder for this one"
            )

    def read(self) -> list[Row]:
        names = [field.name for field in fields(self.row)]  # pyright: ignore[reportArgumentType]
        if not self.table.exists():
            write_text(self.table, ",".join(names) + "\n")
            return []
        text = decode(self.table.read_bytes(), str(self.table))
        if not text.endswith("\n"):  # the last line was being written when the run was killed
            text = text[: text.rfind("\n") + 1]
            write_text(self.table, text)
        kinds = get_type_hints(self.row)
        reader = csv.DictReader(io.StringIO(text))
        if reader.fieldnames != names:
            raise InputError(f"{str(self.table)!r} is not a table of this version; choose another folder")
        found = []
        for number, line in enumerate(reader, start=2):
            try:
                found.append(self.row(**{name: _parse(line[name], kinds[name]) for name in names}))
                if None in line:  # more fields than columns
                    raise ValueError
            except (TypeError, ValueError):
                raise InputError(f"line {number} of {str(self.table)!r} is damaged; mend it, or delete it") from None
        return found

    def append(self, rows: Sequence[Row]) -> None:
        with open(self.table, "a", encoding="utf-8") as file:
            file.write(as_csv(rows))
            file.flush()
            os.fsync(file.fileno())

    def replace(self, rows: Sequence[Row]) -> None:
        """Rewrite the table, for when some of its rows cannot be used."""
        write_table(self.table, self.row, rows)


def write_table(path: Path, row: type[Any], rows: Iterable[Any]) -> None:
    """A CSV file with a heading."""
    write_text(path, ",".join(field.name for field in fields(row)) + "\n" + as_csv(rows))


def as_csv(rows: Iterable[Any]) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerows(("" if value is None else value for value in asdict(row).values()) for row in rows)
    return lines.getvalue()


def _parse(text: str, kind: Any) -> Any:
    options = get_args(kind) or (kind,)
    if text == "" and NoneType in options:
        return None
    return next(option for option in options if option is not NoneType)(text)
