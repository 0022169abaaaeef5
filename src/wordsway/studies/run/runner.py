"""The public function `run`: measure what of some studies a store does not have yet."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from wordsway.maps.map_names import check_allowed, is_own
from wordsway.studies.run.engines import Engine, make_engine
from wordsway.studies.run.store import Result, Store
from wordsway.studies.run.tables import Table, read_table
from wordsway.studies.run.worker import Report
from wordsway.studies.study import Job, Study
from wordsway.support.errors import InputError
from wordsway.support.following import leave_unguarded_script
from wordsway.support.progress import as_function, takes_progress
from wordsway.support.public_gate import public


@runtime_checkable
class Watcher(Protocol):
    """Callbacks of a run."""

    def begin(self, plan: "Plan", engine: Engine) -> None: ...

    def started(self, job: Job) -> None: ...

    def finished(self, job: Job, report: Report) -> None: ...


Tell = Callable[[int, int, str], None]  # cells done, cells in all, the label of one


class Silent:
    """Callbacks that do nothing."""

    def begin(self, plan: "Plan", engine: Engine) -> None:
        pass

    def started(self, job: Job) -> None:
        pass

    def finished(self, job: Job, report: Report) -> None:
        pass


class Telling(Silent):
    """Passes (done, all, what) on."""

    def __init__(self, progress: Tell | None = None) -> None:
        self.progress = progress or (lambda done, total, what: None)
        self.done = self.total = 0

    def begin(self, plan: "Plan", engine: Engine) -> None:
        self.done, self.total = plan.done, len(plan.jobs)
        self.progress(self.done, self.total, "")

    def started(self, job: Job) -> None:
        self.progress(self.done, self.total, job.cell.label)

    def finished(self, job: Job, report: Report) -> None:
        self.done += 1
        self.progress(self.done, self.total, job.cell.label)


class Strict(Telling):
    """Stops at the first cell that fails."""

    def finished(self, job: Job, report: Report) -> None:
        if report.error is not None:
            raise InputError(report.error)
        super().finished(job, report)


@dataclass
class Plan:
    """The distinct cells of some studies, and how many of them are done."""

    jobs: list[Job]
    pending: list[Job]
    done: int
    failed: int
    cells_of: dict[str, int] = field(default_factory=dict)  # by study
    pace: float = 1.0  # how much longer cells took than expected, where some are done

    @cached_property
    def seconds(self) -> float:
        """Estimate how long the pending cells take on one thread."""
        return self.pace * sum(job.cell.seconds() for job in self.pending)

    @cached_property
    def memory(self) -> float:
        """Estimate the bytes that the largest pending cell needs."""
        return max((job.cell.memory() for job in self.pending), default=0.0)


def make_plan(results: Mapping[str, Result], studies: Sequence[Study], retry_failed: bool = False) -> Plan:
    """Plan what is to be done beside the results that are there: cells that several panels share are done once."""
    jobs: dict[str, Job] = {}
    counts: dict[str, int] = {}
    for study in studies:
        found = [job for _, job in study.jobs()]
        counts[study.name] = len(found)
        # The first trial of all panels before the second of any: they share its texts, and a whole picture is early.
        for job in sorted(found, key=lambda job: job.cell.trial):
            jobs.setdefault(job.key, job)
    pending = [job for job in jobs.values() if job.key not in results or (retry_failed and not results[job.key].done)]
    done = sum(key in results and results[key].done for key in jobs)
    failed = len(jobs) - done - sum(job.key not in results for job in jobs.values())
    known = [(job, results[key].provenance["seconds"]) for key, job in jobs.items() if key in results]
    expected = sum(job.cell.seconds() for job, _ in known)
    pace = sum(seconds for _, seconds in known) / expected if len(known) >= 10 else 1.0
    return Plan(list(jobs.values()), pending, done, failed, counts, pace)


@public
@takes_progress("cell")
def run(
    study: Study | Sequence[Study],
    store: str | os.PathLike[str] | None = None,
    engine: str = "processes",
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
    progress: Tell | bool | None = None,
) -> Table:
    """Measure the cells of one or several studies that the folder `store` does not have yet, and return the table.

    Every result is kept as soon as it is known, so a run that was stopped goes on where it was; without a store the
    table is all that is left. A cell that fails is kept with its error (`table.failed`) and tried again only with
    `retry_failed`. `engine` is "inline", "processes" (`workers` of them, one a core unless given) or "dask" (at the
    address `scheduler`, or on this machine): all give the same rows. `progress` is called with (cells done, cells in
    all, the label of one), or True to show it; a `watcher` takes its place.
    """
    studies = [study] if isinstance(study, Study) else list(study)
    if not studies or not all(isinstance(each, Study) for each in studies):
        raise InputError(f"run takes a Study or a list of them, got {study!r}")
    if engine == "processes":
        leave_unguarded_script()  # before a folder is opened
    names = [each.name for each in studies]
    if len(set(names)) < len(names):
        raise InputError(f"two studies have one name: {', '.join(names)}")
    with _place(store) as folder, Store.open(folder) as opened:
        opened.add_plans(studies)
        work(
            opened,
            studies,
            make_engine(engine, workers, scheduler),
            retry_failed,
            watcher or Telling(as_function(progress)),
        )
        return read_table(opened, studies)


def run_rows(
    study: Study,
    out: str | os.PathLike[str] | None,
    progress: Tell | bool | None,
    engine: str,
    workers: int | None,
) -> tuple[dict[str, Any], ...]:
    """Measure a study as `run` does, and return its rows; cells that failed before are tried again, and the first one
    that fails is an InputError."""
    watcher = Strict(as_function(progress))
    return run(study, out, engine, workers=workers, retry_failed=True, watcher=watcher).rows


def work(store: Store, studies: Sequence[Study], engine: Engine, retry_failed: bool, watcher: Watcher) -> None:
    """Carry out what is pending and keep it."""
    plan = make_plan(store.results(), studies, retry_failed)
    for name in dict.fromkeys(name for job in plan.pending for name in job.cell.maps()):
        if is_own(name):
            check_allowed(name)  # now, not in every cell
    watcher.begin(plan, engine)
    if not plan.pending:
        return
    within = getattr(watcher, "within", None)  # few watchers look inside cells
    with closing(engine.run(plan.pending, watcher.started, within)) as finished:
        for job, report in finished:
            store.add(job, report)
            watcher.finished(job, report)


@contextmanager
def _place(store: str | os.PathLike[str] | None) -> Iterator[str | os.PathLike[str]]:
    if store is not None:
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="wordsway-") as folder:
        yield folder
