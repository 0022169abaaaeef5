"""Damage in a run's file: which rows are whole, what SQLite says of its pages, and a new file of all that is whole.

A row is whole if its checksum is that of its values. Pages that cannot be read are stepped over from both ends, and by
the index, so that one of them costs its own rows only.
"""

import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wordsway.studies.cells.recipes import key_of
from wordsway.studies.run.run_file import (
    FACT,
    FILE,
    PLAN,
    RESULT,
    UNCHECKED,
    checksum,
    create,
    has_checksums,
    insert,
    read_fact,
)

_IN_NAME = re.compile(r"\.([0-9a-f]{32})\.safetensors$")


@dataclass
class Content:
    """The whole rows of a file, by id and each with its checksum; how many are damaged or carry no checksum; the
    problems that SQLite found."""

    plans: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    results: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    damaged_plans: int = 0
    damaged_results: int = 0
    damaged_arrays: int = 0
    unchecked: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def damaged(self) -> bool:
        return bool(self.damaged_plans or self.damaged_results or self.damaged_arrays or self.problems)

    def describe(self) -> str:
        """Say what is damaged, for a line."""
        rows = self.damaged_plans + self.damaged_results
        parts = [f"{rows} {'row is' if rows == 1 else 'rows are'} damaged"] if rows else []
        parts += [f"{self.damaged_arrays} files of arrays are damaged or missing"] if self.damaged_arrays else []
        parts += [f"SQLite reports: {self.problems[0]}"] if self.problems else []
        return "; ".join(parts)


def read_content(db: sqlite3.Connection, arrays_of: Path | None = None, pages: bool = True) -> Content:
    """Read plans and results and check them; with a folder, the files of its arrays too; with `pages`, SQLite's own
    check of the file."""
    content = Content(problems=_problems(db) if pages else [])
    sums = has_checksums(db)
    last = int(read_fact(db, UNCHECKED) or 0) if sums else None
    tables: tuple[tuple[str, Sequence[str], dict[int, tuple[Any, ...]]], ...] = (
        ("plans", PLAN, content.plans),
        ("results", RESULT, content.results),
    )
    for table, columns, whole in tables:
        rows, torn = _scan(db, table, (*columns, "checksum" if sums else "NULL"))
        bad = 0
        for id, (*values, found) in rows.items():
            unchecked = found is None and (last is None or id <= last)
            if (not makes_sense(table, values)) if unchecked else found != checksum(values):
                bad += 1
                continue
            content.unchecked += unchecked
            whole[id] = (*values, found)
        content.problems += [torn] if torn and not content.problems else []
        if table == "plans":
            content.damaged_plans = bad
        else:
            content.damaged_results = bad
    if arrays_of is not None:
        _drop_without_arrays(content, arrays_of)
    return content


def makes_sense(table: str, values: Sequence[Any]) -> bool:
    """Whether a row without a checksum can be read, and its recipe is the one that its key is the hash of."""
    row = dict(zip(PLAN if table == "plans" else RESULT, values, strict=True))
    try:
        if table == "plans":
            return isinstance(json.loads(row["plan"]), dict)
        recipe, rows, versions = (json.loads(row[name]) for name in ("recipe", "rows", "versions"))
        numbers = all(isinstance(row[name], int | float) for name in ("threads", "seconds", "peak_bytes"))
        same = key_of(recipe, row["revision"], row["result_version"]) == row["key"]
        listed = isinstance(rows, list) and all(isinstance(each, dict) for each in rows)
        return numbers and same and listed and isinstance(versions, dict) and row["status"] in ("done", "failed")
    except (TypeError, ValueError):
        return False


def _problems(db: sqlite3.Connection) -> list[str]:
    try:
        found = [" ".join(str(text).split()) for (text,) in db.execute("PRAGMA integrity_check(10)")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def _scan(db: sqlite3.Connection, table: str, columns: Sequence[str]) -> tuple[dict[int, tuple[Any, ...]], str]:
    """Read all rows that can be reached, by id, and say why some cannot."""
    names = ", ".join(("id", *columns))
    rows: dict[int, tuple[Any, ...]] = {}

    def read(sql: str, *values: Any) -> str:
        try:
            for id, *rest in db.execute(sql, values):
                rows[id] = tuple(rest)
        except sqlite3.DatabaseError as error:
            return str(error)
        return ""

    torn = read(f"SELECT {names} FROM {table} ORDER BY id")
    if torn:
        read(f"SELECT {names} FROM {table} ORDER BY id DESC")
        ids: list[int] = []
        try:
            for (id,) in db.execute("SELECT id FROM results INDEXED BY by_key") if table == "results" else ():
                ids.append(id)
        except sqlite3.DatabaseError:
            pass  # the index is damaged too: what was read from both ends is what there is
        for id in ids:
            if id not in rows:
                read(f"SELECT {names} FROM {table} WHERE id = ?", id)
    return dict(sorted(rows.items(), key=lambda item: item[0])), torn


def _drop_without_arrays(content: Content, folder: Path) -> None:
    """Leave out results whose arrays are gone or changed."""
    place = RESULT.index("arrays")
    for id, values in list(content.results.items()):
        if values[place] is not None and not arrays_are_whole(folder / str(values[place])):
            content.damaged_arrays += 1
            del content.results[id]


def arrays_are_whole(file: Path) -> bool:
    """Whether a file of arrays is there and has the hash that its name says; earlier names say none."""
    try:
        digest = _IN_NAME.search(file.name)
        return (digest is None and file.is_file()) or (digest is not None and hash_of(file.read_bytes()) == digest[1])
    except OSError:
        return False


def hash_of(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def rebuild(folder: Path, content: Content, facts: Mapping[str, str]) -> Path:
    """Put a new file of what is whole in the place of a damaged one, which nobody may have open. The damaged file is
    kept beside it; its name is returned. A kill at any moment leaves either of the two in place."""
    old, new = folder / FILE, folder / f"{FILE}.new"
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(new)) as db, db:
        db.execute("BEGIN IMMEDIATE")
        create(db)
        for item in facts.items():
            insert(db, "facts", FACT, item)
        for table, columns, rows in (("plans", PLAN, content.plans), ("results", RESULT, content.results)):
            names = ("id", *columns, "checksum")
            sql = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
            db.executemany(sql, [(id, *values) for id, values in rows.items()])
    kept = next(place for k in range(1, 10**6) if not (place := folder / f"run.damaged-{k}.sqlite").exists())
    shutil.copyfile(old, kept)
    os.replace(new, old)
    return kept
