"""The SQLite file of a run: its tables, the checksums of its rows, how it is opened, errors that say what to do."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wordsway.support.errors import InputError

FORMAT = "wordsway.run/2"
WITHOUT_CHECKSUMS = "wordsway.run/1"  # the format before: it is read, and gets checksums when it is written to
FILE = "run.sqlite"
WHERE = "name the folder that was --out of wordsway reproduce, run or curve (runs/... unless given)"
UNCHECKED = "rows without checksum"  # the fact that says up to which id results and plans come from the format before
FACT = ("name", "value")
PLAN = ("at", "version", "study", "plan")
RESULT = ("key", "status", "recipe", "rows", "arrays", "error", "trace", "seed", "version", "result_version",
          "revision", "versions", "machine", "threads", "started", "seconds", "peak_bytes")  # fmt: skip
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum TEXT);
CREATE TABLE plans (id INTEGER PRIMARY KEY, at TEXT NOT NULL, version TEXT NOT NULL, study TEXT NOT NULL,
                    plan TEXT NOT NULL, checksum TEXT);
CREATE TABLE results (id INTEGER PRIMARY KEY, key TEXT NOT NULL, status TEXT NOT NULL, recipe TEXT NOT NULL,
                      rows TEXT NOT NULL, arrays TEXT, error TEXT, trace TEXT, seed INTEGER, version TEXT NOT NULL,
                      result_version INTEGER NOT NULL, revision TEXT NOT NULL, versions TEXT NOT NULL,
                      machine TEXT NOT NULL, threads INTEGER NOT NULL, started TEXT NOT NULL, seconds REAL NOT NULL,
                      peak_bytes INTEGER NOT NULL, checksum TEXT);
CREATE INDEX by_key ON results (key);
CREATE UNIQUE INDEX measured_once ON results (key) WHERE status = 'done';
CREATE TRIGGER no_change BEFORE UPDATE ON results BEGIN SELECT RAISE(ABORT, 'results are only ever added'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON results BEGIN SELECT RAISE(ABORT, 'results are only ever added'); END;
"""


class StoreError(OSError):
    """The run's file cannot be written: a full disk, for one."""


class DamageError(InputError):
    """A run whose file does not say any more what was written to it."""


def checksum(values: Sequence[Any]) -> str:
    """Hash the values of a row, as SQLite returns them."""
    text = json.dumps(list(values), ensure_ascii=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def insert(db: sqlite3.Connection, table: str, columns: Sequence[str], values: Sequence[Any]) -> None:
    """Add a row with its checksum; a fact takes the place of the one of its name."""
    names = (*columns, "checksum")
    how = "INSERT OR REPLACE" if table == "facts" else "INSERT"
    db.execute(
        f"{how} INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", (*values, checksum(values))
    )


def connect(file: Path, write: bool) -> sqlite3.Connection:
    """Open the file and check that it is a run, or empty. A connection that fails on the way is closed."""
    connection = sqlite3.connect(file if write else _read_only(file), uri=not write, timeout=30)
    # A damaged text may be no UTF-8: it is read all the same, so that its checksum can tell.
    connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
    try:
        _check(connection, file)
        if write:
            connection.execute("PRAGMA journal_mode = WAL")
            # Survives any kill of ours; after a power cut the last cells run again.
            connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(file: Path) -> str:
    # In a folder that cannot be written to, SQLite cannot make the file that readers of a live run share.
    immutable = "" if os.access(file.parent, os.W_OK) else "&immutable=1"
    return f"{file.resolve().as_uri()}?mode=ro{immutable}"


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether nothing was stored yet, not even a plan: a run that was stopped at its very beginning."""
    return not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def has_checksums(db: sqlite3.Connection) -> bool:
    return not is_empty(db) and format_of(db) == FORMAT


def format_of(db: sqlite3.Connection) -> str:
    return str((db.execute("SELECT value FROM facts WHERE name = 'format'").fetchone() or ("no format",))[0])


def _check(db: sqlite3.Connection, file: Path) -> None:
    """Raise an error unless the file is a run of a format that is known. Nothing is written to a file of others."""
    if is_empty(db):
        return
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = {"facts", "plans", "results"} - tables
    if missing and _has_ours(db):  # the name of a table is damaged
        raise unreadable(file.parent, InputError(f"its table {min(missing)} is missing"))
    if missing:
        raise InputError(
            f"{str(file)!r} is no run but an SQLite file of another program (its tables: "
            f"{', '.join(sorted(map(str, tables))[:5]) or 'none'}); choose another folder"
        )
    found = format_of(db)
    if not found.startswith(FORMAT.rpartition("/")[0]):
        raise unreadable(file.parent, InputError(f"its format is {found!r:.60}"))
    if found not in (FORMAT, WITHOUT_CHECKSUMS):
        raise InputError(f"{str(file)!r} is not a run of this version ({found}, not {FORMAT}); choose another folder")


def _has_ours(db: sqlite3.Connection) -> bool:
    """Whether a table of a file without all of ours has the columns of one of them."""
    some = {"facts": {"name", "value"}, "results": {"key", "status", "started"}}
    columns = {table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")} for table in some}
    return any(wanted <= columns[table] for table, wanted in some.items())


def create(db: sqlite3.Connection) -> None:
    """Make the tables, as part of a transaction that is open."""
    for statement in SCHEMA.split(";\n"):
        if statement.strip():
            db.execute(statement)
    insert(db, "facts", FACT, ("format", FORMAT))


def add_checksums(db: sqlite3.Connection) -> None:
    """Turn a file of the format before into one of today. Its rows stay as they are, without checksums."""
    last = max(db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0] for table in ("plans", "results"))
    with db:
        db.execute("BEGIN IMMEDIATE")
        for table in ("facts", "plans", "results"):
            db.execute(f"ALTER TABLE {table} ADD COLUMN checksum TEXT")
        insert(db, "facts", FACT, (UNCHECKED, str(last)))
        insert(db, "facts", FACT, ("format", FORMAT))


def read_fact(db: sqlite3.Connection, name: str) -> str | None:
    """Read a fact; one that is damaged is none."""
    if is_empty(db):
        return None
    sums = "checksum" if has_checksums(db) else "NULL"
    found = db.execute(f"SELECT value, {sums} FROM facts WHERE name = ?", (name,)).fetchone()
    return None if found is None or found[1] not in (None, checksum((name, found[0]))) else str(found[0])


@contextmanager
def explained(folder: Path, begun: bool = True) -> Iterator[None]:
    """SQLite's errors as ones that say what to do. `begun` is whether the run has a plan, so that it can be resumed."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        if _is_damage(error):
            raise unreadable(folder, error) from None
        raise _cannot_write(folder, str(error), begun) from error
    except UnicodeDecodeError as error:  # SQLite's own message repeats damaged bytes
        raise unreadable(folder, error) from None
    except OSError as error:
        if isinstance(error, StoreError) or error.errno is None:
            raise
        raise _cannot_write(folder, error.strerror, begun) from error


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    # What a healthy file never says: a flipped bit in the schema can make any name or word of it unknown.
    signs = ("not a database", "malformed", "no such", "syntax error", "unsupported file format", "values for")
    return any(sign in str(error) for sign in signs)


def unreadable(folder: Path, error: BaseException) -> DamageError:
    """The error of a file of which nothing can be read."""
    return DamageError(
        f"{str(folder / FILE)!r} is damaged or is no run, and cannot be read ({error}); if a run was there, move this "
        f"file away and give the command that began the run again with --out {folder}; else {WHERE}"
    )


def _cannot_write(folder: Path, why: str | None, begun: bool) -> StoreError:
    then = (
        f"what was measured before is kept: free some space, then wordsway resume {folder}"
        if begun
        else "nothing was measured yet: free some space, then give the same command again"
    )
    return StoreError(f"cannot write to {str(folder)!r}: {why}; {then}")
