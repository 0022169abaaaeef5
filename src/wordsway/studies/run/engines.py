"""Engines, which run cells: in this process, in processes of this machine, or on a Dask cluster.

An engine takes jobs and yields (job, report) as they finish, in any order. Closing it stops what is running. All give
the same reports, since a cell draws its own randomness and runs on one thread.
"""

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from wordsway.studies.cells.recipes import RESULT_VERSION, recipe_of
from wordsway.studies.run.worker import Report, execute, execute_at, lost
from wordsway.studies.study import Job
from wordsway.support.errors import InputError
from wordsway.support.following import WORKER, answer, leave_unguarded_script
from wordsway.support.memory import available_bytes, show_bytes
from wordsway.support.names import ENGINES
from wordsway.support.progress import Tell, heard_within
from wordsway.support.public_gate import called_by_the_user
from wordsway.support.shares import Shares, begin_worker
from wordsway.support.stopping import signals_held

_SHARE = 0.85  # of the memory that is available when a run begins
_TRIES = 2  # times that a cell may take its process down
_AHEAD = 2  # cells handed out for each worker: one waits while another runs, so that small ones leave no gap
_STARTS = 5  # times that workers are started: somebody may kill one meanwhile
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LOOK = 0.5  # seconds after which the shares of running cells are read
Started = Callable[[Job], None]
Within = Callable[[Job, float], None] | None  # hears how much of a running cell is done, from 0 to 1
Reports = Generator[tuple[Job, Report], None, None]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Engine(ABC):
    """`workers` is how many cells run at once; None where only a cluster knows."""

    workers: int | None = 1

    @abstractmethod
    def run(self, jobs: Sequence[Job], started: Started, within: Within = None) -> Reports:
        """Carry out jobs; `started` hears of each when it is handed out, `within` of its share that is done, where the
        engine knows it."""


def make_engine(name: str, workers: int | None = None, scheduler: str | None = None) -> Engine:
    """Make an engine by its name; `scheduler` is the address of a Dask scheduler that is running."""
    if name not in ENGINES:
        raise InputError(f"engine={name!r} is not known; use one of: {', '.join(ENGINES)}")
    if scheduler is not None and name != "dask":
        raise InputError(f"a scheduler is for the engine dask, not for {name!r}")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers must be a whole number of at least 1, got {workers!r}")
    if name == "inline":
        if workers not in (None, 1):
            raise InputError(f"the engine inline has one worker, not {workers}; use processes or dask")
        return Inline()
    if name == "processes":
        return Processes(workers or cores())
    if scheduler is not None and workers is not None:
        raise InputError("workers has no meaning with a scheduler, which has workers of its own")
    from wordsway.studies.run.dask_engine import Dask

    return Dask(workers or cores(), scheduler)


class Inline(Engine):
    """One cell after the other, here."""

    def run(self, jobs: Sequence[Job], started: Started, within: Within = None) -> Reports:
        for job in jobs:
            started(job)
            report = too_large(job, available_bytes(), "this machine")
            if report is None:
                with heard_within(_share_of(job, within)):
                    report = execute(recipe_of(job.cell), job.revision, RESULT_VERSION)
            yield job, report


def _share_of(job: Job, within: Within) -> Tell:
    """Make a listener to the progress of a cell from one to its share."""

    def tell(done: int, total: int) -> None:
        if within is not None:
            within(job, done / max(total, 1))

    return tell


class Processes(Engine):
    """One process a core. No more cells at once than fit into memory; a cell whose process dies is tried once more,
    alone, so that no other one is blamed for it."""

    def __init__(self, workers: int) -> None:
        self.workers = self._count = workers

    def run(self, jobs: Sequence[Job], started: Started, within: Within = None) -> Reports:
        budget = _SHARE * available_bytes()
        waiting, suspects = deque(jobs), deque[Job]()
        deaths: dict[str, int] = {}
        running: dict[Future[Report], Job] = {}
        shares = Shares(_context(), _AHEAD * self._count)
        pool = _new_pool(self._count, shares)
        try:
            while waiting or suspects or running:
                alone = suspects if suspects else None
                queue = alone if alone is not None else waiting
                while queue and len(running) < (1 if alone is not None else _AHEAD * self._count):
                    job = queue[0]
                    refused = too_large(job, budget, "this machine")
                    if refused is not None:
                        queue.popleft()
                        yield job, refused
                        continue
                    if sum(other.cell.memory() for other in running.values()) + job.cell.memory() > budget:
                        break
                    queue.popleft()
                    task = (shares.place(job.key), recipe_of(job.cell), job.revision, RESULT_VERSION)
                    try:
                        running[pool.submit(execute_at, *task)] = job
                    except BrokenProcessPool:  # a worker was killed while it was idle
                        shares.free(job.key)
                        queue.appendleft(job)
                        if not running:  # else those that run are found broken below
                            _stop(pool)
                            pool = _new_pool(self._count, shares)
                        break
                    started(job)
                if not running:
                    continue
                done, _ = wait(running, None if within is None else _LOOK, FIRST_COMPLETED)
                if within is not None:
                    for job in running.values():
                        within(job, shares.share(job.key))
                broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
                for future in done:
                    if future not in broken:
                        shares.free(running[future].key)
                        yield running.pop(future), future.result()
                if broken:
                    pool.shutdown(wait=True, cancel_futures=True)
                    for job in running.values():
                        shares.free(job.key)
                        deaths[job.key] = deaths.get(job.key, 0) + (len(running) == 1)
                        if deaths[job.key] >= _TRIES:
                            yield job, lost("its process was killed each time it ran (out of memory?)")
                        else:
                            suspects.append(job)
                    running.clear()
                    pool = _new_pool(self._count, shares)
            pool.shutdown(wait=True)
        finally:
            _stop(pool)


def _context() -> Any:
    import multiprocessing

    return multiprocessing.get_context("spawn")


def _new_pool(workers: int, shares: Shares) -> ProcessPoolExecutor:
    """Start a pool. Workers that are killed while they start are started again."""
    for _ in range(_STARTS):
        begin: dict[str, Any] = {"initializer": begin_worker, "initargs": (shares.values,)}
        pool, processes = ProcessPoolExecutor(workers, mp_context=_context(), **begin), list[Any]()
        try:
            processes, first = _start_workers(pool)
            first.result()
            return pool
        except BrokenProcessPool:
            pool.shutdown(wait=True, cancel_futures=True)
        except BaseException:  # the run is stopped
            _stop(pool)
            raise
        # One that was killed has a negative code, as those have that the pool ended for it.
        if any((process.exitcode or 0) > 0 for process in processes):
            raise InputError(
                f"worker processes cannot start; in a script of your own, call {called_by_the_user() or 'run'} below "
                "`if __name__ == '__main__':`, or use engine=\"inline\""
            )
    raise InputError(
        f"worker processes were killed while they started, {_STARTS} times (out of memory?); what was measured is "
        "kept: go on with fewer workers, or with the engine inline"
    )


def _start_workers(pool: ProcessPoolExecutor) -> tuple[list[Any], Future[None]]:
    """Start all workers of a pool, then its thread that watches them: Python's own way starts them one by one beside
    that thread, which waits forever for one that it did not know of when it found another dead. The first call starts
    the thread; a signal amid that would leave a pool that cannot be closed."""
    # Workers read these when they load their libraries; more than one thread each would oversubscribe the machine.
    leave_unguarded_script()
    settings: dict[str, str] = dict.fromkeys((*_ONE_THREAD, WORKER), "1")
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        with signals_held():
            pool._launch_processes()  # pyright: ignore[reportAttributeAccessIssue]
            processes = list((pool._processes or {}).values())
            return processes, pool.submit(answer)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _stop(pool: ProcessPoolExecutor) -> None:
    """End a pool at once: what is half done is of no use to anybody."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


def too_large(job: Job, budget: float, where: str) -> Report | None:
    need = job.cell.memory()
    if need <= budget:
        return None
    return lost(f"needs {show_bytes(need)} of memory, but {where} has {show_bytes(budget)} for it")
