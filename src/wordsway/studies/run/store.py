"""The store of a run: a folder with one SQLite file, to which results are only ever added, and arrays beside it.

A result is found by its cell's key. Writing one is a single transaction, after its arrays are in place, so a run that
is killed at any moment has every result whole or not at all. One driver writes at a time; readers need not wait.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from wordsway import __version__
from wordsway.studies.cells.recipes import RESULT_VERSION, recipe_of
from wordsway.studies.run.worker import Report
from wordsway.studies.study import Job, Study
from wordsway.support.errors import InputError
from wordsway.support.files import write_bytes

_FORMAT = "wordsway.run/1"
_FILE, _LOCK, _ARRAYS = "run.sqlite", "run.lock", "arrays"
_WHERE = "name the folder that was --out of wordsway reproduce, run or curve (runs/... unless given)"
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE plans (id INTEGER PRIMARY KEY, at TEXT NOT NULL, version TEXT NOT NULL, study TEXT NOT NULL,
                    plan TEXT NOT NULL);
CREATE TABLE results (id INTEGER PRIMARY KEY, key TEXT NOT NULL, status TEXT NOT NULL, recipe TEXT NOT NULL,
                      rows TEXT NOT NULL, arrays TEXT, error TEXT, trace TEXT, seed INTEGER, version TEXT NOT NULL,
                      result_version INTEGER NOT NULL, revision TEXT NOT NULL, versions TEXT NOT NULL,
                      machine TEXT NOT NULL, threads INTEGER NOT NULL, started TEXT NOT NULL, seconds REAL NOT NULL,
                      peak_bytes INTEGER NOT NULL);
CREATE INDEX by_key ON results (key);
CREATE UNIQUE INDEX measured_once ON results (key) WHERE status = 'done';
CREATE TRIGGER no_change BEFORE UPDATE ON results BEGIN SELECT RAISE(ABORT, 'results are only ever added'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON results BEGIN SELECT RAISE(ABORT, 'results are only ever added'); END;
"""
PROVENANCE = ("key", "version", "result_version", "revision", "versions", "machine", "threads", "started", "seconds",
              "peak_bytes", "arrays")  # fmt: skip


class StoreError(OSError):
    """The run's file cannot be written: a full disk, for one."""


@dataclass(frozen=True)
class Result:
    """One result as it is kept."""

    key: str
    done: bool
    recipe: dict[str, Any]
    rows: list[dict[str, Any]]
    error: str | None
    provenance: dict[str, Any]


class Store:
    """A run's folder. Use `Store.open` to write to it, `Store.read` to look."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder, self._db = folder, connection

    @staticmethod
    @contextmanager
    def open(folder: str | os.PathLike[str], create: bool = True) -> "Iterator[Store]":
        """The store, for the one driver that may write to it."""
        home = Path(folder)
        if not create and not (home / _FILE).is_file():
            raise InputError(f"there is no run in {str(folder)!r}; {_WHERE}")
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = "it is a file" if home.is_file() else error.strerror
            raise InputError(f"cannot make the folder {str(folder)!r}: {why}; name another one with --out") from None
        lock = FileLock(home / _LOCK, timeout=1)  # not 0: who asks whether a driver is at work holds it for a moment
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                f"another run is at work on {str(folder)!r}; wait for it (wordsway status {folder}) or stop it first"
            ) from None
        try:
            with _explained(home):
                connection = _connect(home / _FILE, write=True)
            with closing(connection):
                yield Store(home, connection)
        finally:
            lock.release()

    @staticmethod
    @contextmanager
    def read(folder: str | os.PathLike[str]) -> "Iterator[Store]":
        """The store, to look at while a driver may be writing."""
        home = Path(folder)
        if not (home / _FILE).is_file():
            raise InputError(f"there is no run in {str(folder)!r}; {_WHERE}")
        with _explained(home):
            connection = _connect(home / _FILE, write=False)
        with closing(connection):
            yield Store(home, connection)

    def busy(self) -> bool:
        """Whether a driver is at work."""
        lock = FileLock(self.folder / _LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            return True
        except OSError:  # a folder that cannot be written to has no driver
            return False
        lock.release()
        return False

    def add_plans(self, studies: Sequence[Study]) -> None:
        """Note what this run is to measure. A study takes the place of an earlier one of its name; results stay."""
        known = self._plans()
        new = [study for study in studies if known.get(study.name) != json.loads(json.dumps(study.to_dict()))]
        with _explained(self.folder), self._db:
            self._db.executemany(
                "INSERT INTO plans (at, version, study, plan) VALUES (?, ?, ?, ?)",
                [
                    (datetime.now(UTC).isoformat(timespec="seconds"), __version__, study.name,
                     json.dumps(study.to_dict()))
                    for study in new
                ],
            )  # fmt: skip

    def remember(self, name: str, value: str) -> None:
        """A fact about the run as a whole, as the command that was given last."""
        with _explained(self.folder), self._db:
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def fact(self, name: str) -> str | None:
        found = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]

    def studies(self) -> list[Study]:
        """Read the plan: the last one of every study, in the order in which they first came."""
        return [Study.from_dict(plan) for plan in self._plans().values()]

    def _plans(self) -> dict[str, Any]:
        """Read the last plan of every study, as JSON values."""
        return {name: json.loads(plan) for name, plan in self._db.execute("SELECT study, plan FROM plans ORDER BY id")}

    def add(self, job: Job, report: Report) -> None:
        """Keep what became of a cell."""
        outcome = report.outcome
        name = None
        with _explained(self.folder):
            if outcome is not None and outcome.arrays:
                from safetensors.torch import save

                name = f"{_ARRAYS}/{job.key}.safetensors"
                (self.folder / _ARRAYS).mkdir(exist_ok=True)
                write_bytes(self.folder / name, save({k: v.contiguous() for k, v in outcome.arrays.items()}))
            recipe = recipe_of(job.cell)
            with self._db:
                self._db.execute(
                    "INSERT INTO results (key, status, recipe, rows, arrays, error, trace, seed, version, "
                    "result_version, revision, versions, machine, threads, started, seconds, peak_bytes) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        job.key,
                        "failed" if outcome is None else "done",
                        json.dumps(recipe),
                        json.dumps([] if outcome is None else outcome.rows, allow_nan=False),
                        name,
                        report.error,
                        report.trace,
                        recipe.get("seed"),
                        __version__,
                        RESULT_VERSION,
                        job.revision,
                        json.dumps(report.versions),
                        report.machine,
                        report.threads,
                        report.started,
                        report.seconds,
                        report.peak_bytes,
                    ),
                )

    def results(self) -> dict[str, Result]:
        """By key: what was measured or else, where nothing was, the last failure."""
        self._db.row_factory = sqlite3.Row
        found: dict[str, Result] = {}
        for row in self._db.execute("SELECT * FROM results ORDER BY status = 'done', id"):
            provenance = {name: row[name] for name in PROVENANCE}
            found[row["key"]] = Result(
                row["key"],
                row["status"] == "done",
                json.loads(row["recipe"]),
                json.loads(row["rows"]),
                row["error"],
                provenance,
            )
        return found


def load_arrays(folder: Path, name: str) -> dict[str, Any]:
    """Read the arrays of a result in a run's folder, by the file name in its row."""
    from safetensors.torch import load_file

    return load_file(folder / name)


def has_run(folder: Path) -> bool:
    return (folder / _FILE).is_file()


def _connect(file: Path, write: bool) -> sqlite3.Connection:
    """Open the file and check that it is a run. A connection that fails on the way is closed."""
    connection = sqlite3.connect(file if write else _read_only(file), uri=not write, timeout=30)
    try:
        if write:
            _prepare(connection)
        _check(connection, file)
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(file: Path) -> str:
    # In a folder that cannot be written to, SQLite cannot make the file that readers of a live run share.
    immutable = "" if os.access(file.parent, os.W_OK) else "&immutable=1"
    return f"{file.resolve().as_uri()}?mode=ro{immutable}"


def _prepare(db: sqlite3.Connection) -> None:
    """Set how the file is written and, in an empty one, make the tables."""
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")  # survives any kill of ours; after a power cut the last cells run again
    if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        db.executescript(f"BEGIN; {_SCHEMA} INSERT INTO facts VALUES ('format', '{_FORMAT}'); COMMIT;")


def _check(db: sqlite3.Connection, file: Path) -> None:
    try:
        (found,) = db.execute("SELECT value FROM facts WHERE name = 'format'").fetchone() or ("",)
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        found = "another file"
    if found != _FORMAT:
        raise InputError(f"{str(file)!r} is not a run of this version ({found}, not {_FORMAT}); choose another folder")


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """SQLite's errors as ones that say what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.IntegrityError):
            raise
        if "not a database" in str(error) or "malformed" in str(error):
            raise InputError(f"{str(folder / _FILE)!r} is damaged or is no run: {error}; {_WHERE}") from None
        raise StoreError(
            f"cannot write to {str(folder)!r}: {error}; what was measured before is kept: free some space, then "
            f"wordsway resume {folder}"
        ) from error
    except OSError as error:
        if isinstance(error, StoreError) or error.errno is None:
            raise
        raise StoreError(
            f"cannot write to {str(folder)!r}: {error.strerror}; what was measured before is kept: free some space, "
            f"then wordsway resume {folder}"
        ) from error
