"""The store of a run: a folder with one SQLite file, to which results are only ever added, and arrays beside it.

The plan comes first, in one transaction with the tables. A result is found by its cell's key; writing one is a single
transaction, after its arrays are in place, so a run that is killed at any moment has every result whole or not at all.
One driver writes at a time; readers need not wait. Every row has a checksum: readers refuse a damaged run, and a driver
puts a file of all that is whole in its place, so that what is missing is measured again.
"""

import json
import os
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from wordsway import __version__
from wordsway.studies.cells.recipes import RESULT_VERSION, recipe_of
from wordsway.studies.run.damage import Content, arrays_are_whole, hash_of, read_content, rebuild
from wordsway.studies.run.run_file import (
    FACT,
    FILE,
    PLAN,
    RESULT,
    UNCHECKED,
    WHERE,
    DamageError,
    add_checksums,
    connect,
    create,
    explained,
    has_checksums,
    insert,
    is_empty,
    read_fact,
)
from wordsway.studies.run.worker import Report
from wordsway.studies.study import Job, Study
from wordsway.support.errors import DamageWarning, InputError
from wordsway.support.files import write_bytes

_LOCK, _ARRAYS = "run.lock", "arrays"
PROVENANCE = ("key", "version", "result_version", "revision", "versions", "machine", "threads", "started", "seconds",
              "peak_bytes", "arrays")  # fmt: skip


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

    def __init__(self, folder: Path, connection: sqlite3.Connection, writes: bool) -> None:
        self.folder, self._db, self._writes = folder, connection, writes

    @staticmethod
    @contextmanager
    def open(folder: str | os.PathLike[str], create: bool = True) -> "Iterator[Store]":
        """The store, for the one driver that may write to it. Without `create` it must have a plan."""
        home = Path(folder)
        if not create and not has_run(home):
            raise InputError(f"there is no run in {str(folder)!r}; {WHERE}")
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = "it is a file" if home.is_file() else error.strerror
            raise InputError(f"cannot make the folder {str(folder)!r}: {why}; name another one with --out") from None
        lock = FileLock(home / _LOCK, timeout=1)  # not 0: who asks whether a driver is at work holds it for a moment
        try:
            with explained(home, begun=False):
                lock.acquire()
        except Timeout:
            raise InputError(
                f"another run is at work on {str(folder)!r}; wait for it (wordsway status {folder}) or stop it first"
            ) from None
        try:
            with explained(home, begun=not create):
                connection = _mended(home, must_have_plan=not create)
            with closing(connection):
                yield Store(home, connection, writes=True)
        finally:
            lock.release()

    @staticmethod
    @contextmanager
    def read(folder: str | os.PathLike[str]) -> "Iterator[Store]":
        """The store, to look at while a driver may be writing."""
        home = Path(folder)
        if not has_run(home):
            raise InputError(f"there is no run in {str(folder)!r}; {WHERE}")
        with explained(home):
            connection = connect(home / FILE, write=False)
        with closing(connection):
            yield Store(home, connection, writes=False)

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

    def add_plans(self, studies: Sequence[Study], command: str | None = None) -> None:
        """Note what this run is to measure, and the command that was given. A study takes the place of an earlier one
        of its name; results stay. In a new file the tables are made in the same transaction: a run has a plan, or is
        no run yet."""
        plans = {study.name: json.dumps(study.to_dict()) for study in studies}
        known = {} if is_empty(self._db) else self._plans()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with explained(self.folder, begun=bool(known)):
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                if is_empty(self._db):
                    create(self._db)
                for name, plan in plans.items():
                    if known.get(name) != json.loads(plan):
                        insert(self._db, "plans", PLAN, (now, __version__, name, plan))
                if command is not None:
                    insert(self._db, "facts", FACT, ("command", command))
            # Into the file itself: what happens to the log later cannot take the plan away.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def fact(self, name: str) -> str | None:
        return read_fact(self._db, name)

    def plan(self) -> list[Study]:
        """Read the plan; a run without one is an error."""
        studies = self.studies()
        if not studies:
            raise InputError(_no_plan(self.folder))
        return studies

    def studies(self) -> list[Study]:
        """Read the plan: the last one of every study, in the order in which they first came."""
        return [Study.from_dict(plan) for plan in self._plans().values()]

    def _plans(self) -> dict[str, Any]:
        """Read the last plan of every study, as JSON values."""
        content = self.content(pages=False)
        if content.damaged_plans:
            raise DamageError(_plan_is_damaged(self.folder, self.fact("command")))
        return {name: json.loads(plan) for _, _, name, plan, _ in content.plans.values()}

    def content(self, pages: bool = True, arrays: bool = False) -> Content:
        """Read all rows and check them; with `pages` SQLite's own check too, with `arrays` the files of arrays."""
        if is_empty(self._db):
            return Content()
        with explained(self.folder):
            return read_content(self._db, self.folder if arrays else None, pages)

    def add(self, job: Job, report: Report) -> None:
        """Keep what became of a cell."""
        outcome = report.outcome
        name = None
        with explained(self.folder):
            if outcome is not None and outcome.arrays:
                from safetensors.torch import save

                content = save({k: v.contiguous() for k, v in outcome.arrays.items()})
                name = f"{_ARRAYS}/{job.key}.{hash_of(content)}.safetensors"
                (self.folder / _ARRAYS).mkdir(exist_ok=True)
                write_bytes(self.folder / name, content)
            recipe = recipe_of(job.cell)
            with self._db:
                insert(
                    self._db,
                    "results",
                    RESULT,
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

    def results(self, skip_damaged: bool = False) -> dict[str, Result]:
        """By key: what was measured or else, where nothing was, the last failure. Damage is an error unless it is to be
        skipped."""
        content = self.content(pages=not self._writes)  # a driver has looked when it opened the file
        if content.damaged and not skip_damaged:
            raise DamageError(
                f"{str(self.folder / FILE)!r} is damaged: {content.describe()}; wordsway resume {self.folder} measures "
                f"again what is lost, --skip-damaged shows only what is whole, wordsway verify {self.folder} says more"
            )
        rows = [dict(zip(RESULT, values, strict=False)) for values in content.results.values()]
        found: dict[str, Result] = {}
        for row in sorted(rows, key=lambda row: row["status"] == "done"):
            provenance = {name: row[name] for name in PROVENANCE}
            done, recipe = row["status"] == "done", json.loads(row["recipe"])
            found[row["key"]] = Result(row["key"], done, recipe, json.loads(row["rows"]), row["error"], provenance)
        return found


def load_arrays(folder: Path, name: str) -> dict[str, Any]:
    """Read the arrays of a result in a run's folder, by the file name in its row."""
    from safetensors.torch import load_file

    if not arrays_are_whole(folder / name):
        raise DamageError(
            f"{str(folder / name)!r} is damaged or missing; wordsway resume {folder} measures its cell again"
        )
    return load_file(folder / name)


def has_run(folder: Path) -> bool:
    return (folder / FILE).is_file()


def _mended(folder: Path, must_have_plan: bool) -> sqlite3.Connection:
    """Open a run's file to write to it. Where it is damaged, a file of what is whole takes its place."""
    db = connect(folder / FILE, write=True)
    try:
        content = Content() if is_empty(db) else read_content(db, folder)
        command = read_fact(db, "command")
        if must_have_plan and content.damaged_plans:
            raise DamageError(_plan_is_damaged(folder, command))
        if must_have_plan and not content.plans:
            raise InputError(_no_plan(folder))
        if content.damaged:
            facts = {} if command is None else {"command": command}
            old = str(max((*content.plans, *content.results), default=0))
            last = read_fact(db, UNCHECKED) if has_checksums(db) else old
            facts |= {} if last is None else {UNCHECKED: last}
            return _replaced(folder, db, content, facts)
        if not is_empty(db) and not has_checksums(db):
            add_checksums(db)
        return db
    except BaseException:
        db.close()
        raise


def _replaced(folder: Path, db: sqlite3.Connection, content: Content, facts: dict[str, str]) -> sqlite3.Connection:
    """Put a file of what is whole in the place of a damaged one, and open it."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    log = folder / f"{FILE}-wal"
    if log.exists() and log.stat().st_size:
        raise InputError(f"the run in {str(folder)!r} is damaged, and somebody reads it; stop that, then try again")
    kept = rebuild(folder, content, facts)
    warnings.warn(
        DamageWarning(
            f"the run was damaged ({content.describe()}); {len(content.results)} results are whole and kept, what is "
            f"lost is measured again; the damaged file is now {kept.name}"
        ),
        stacklevel=2,
    )
    return connect(folder / FILE, write=True)


def _no_plan(folder: Path) -> str:
    return (
        f"the run in {str(folder)!r} was stopped before its plan was stored, so nothing was measured and there is "
        f"nothing to resume; begin again: give the command that began it, with --out {folder}"
    )


def _plan_is_damaged(folder: Path, command: str | None) -> str:
    known = "" if command is None else f" ({command})"
    return (
        f"the plan of the run in {str(folder)!r} is damaged; give the command that began it again{known}, with "
        f"--out {folder}: what was measured and is whole is kept"
    )
