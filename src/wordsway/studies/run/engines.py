"""Engines, which run cells: in this process, in processes of this machine, or on a Dask cluster.

An engine takes jobs and yields (job, report) as they finish, in any order. Closing it stops what is running. All give
the same reports, since a cell draws its own randomness and runs on one thread.
"""

import os
import re
import signal
import socket
import threading
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from wordsway.studies.cells.recipes import RESULT_VERSION, recipe_of
from wordsway.studies.run.worker import Report, execute, lost
from wordsway.studies.study import Job
from wordsway.support.errors import InputError, one_line
from wordsway.support.memory import available_bytes, show_bytes
from wordsway.support.names import ENGINES

_START_ONE = "start one (dask scheduler), or leave out --scheduler for workers of this machine"
_SHARE = 0.85  # of the memory that is available when a run begins
_TRIES = 2  # times that a cell may take its process down
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Started = Callable[[Job], None]
Reports = Generator[tuple[Job, Report], None, None]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Engine(ABC):
    """`workers` is how many cells run at once; None where only a cluster knows."""

    workers: int | None = 1

    @abstractmethod
    def run(self, jobs: Sequence[Job], started: Started) -> Reports:
        """Carry out jobs; `started` hears of each when it is handed out."""


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
    return Dask(workers or cores(), scheduler)


class Inline(Engine):
    """One cell after the other, here."""

    def run(self, jobs: Sequence[Job], started: Started) -> Reports:
        for job in jobs:
            started(job)
            refused = _too_large(job, available_bytes(), "this machine")
            yield job, refused or execute(recipe_of(job.cell), job.revision, RESULT_VERSION)


class Processes(Engine):
    """One process a core. No more cells at once than fit into memory; a cell whose process dies is tried once more,
    alone, so that no other one is blamed for it."""

    def __init__(self, workers: int) -> None:
        self.workers = self._count = workers

    def run(self, jobs: Sequence[Job], started: Started) -> Reports:
        budget = _SHARE * available_bytes()
        waiting, suspects = deque(jobs), deque[Job]()
        deaths: dict[str, int] = {}
        running: dict[Future[Report], Job] = {}
        pool = _new_pool(self._count)
        try:
            while waiting or suspects or running:
                alone = suspects if suspects else None
                queue = alone if alone is not None else waiting
                while queue and len(running) < (1 if alone is not None else self._count):
                    job = queue[0]
                    refused = _too_large(job, budget, "this machine")
                    if refused is not None:
                        queue.popleft()
                        yield job, refused
                        continue
                    if sum(other.cell.memory() for other in running.values()) + job.cell.memory() > budget:
                        break
                    queue.popleft()
                    try:
                        running[pool.submit(execute, recipe_of(job.cell), job.revision, RESULT_VERSION)] = job
                    except BrokenProcessPool:  # a worker was killed while it was idle
                        queue.appendleft(job)
                        pool = _new_pool(self._count)
                        break
                    started(job)
                if not running:
                    continue
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
                for future in done:
                    if future not in broken:
                        yield running.pop(future), future.result()
                if broken:
                    pool.shutdown(wait=True, cancel_futures=True)
                    for job in running.values():
                        deaths[job.key] = deaths.get(job.key, 0) + (len(running) == 1)
                        if deaths[job.key] >= _TRIES:
                            yield job, lost("its process was killed each time it ran (out of memory?)")
                        else:
                            suspects.append(job)
                    running.clear()
                    pool = _new_pool(self._count)
            pool.shutdown(wait=True)
        finally:
            _stop(pool)


def _new_pool(workers: int) -> ProcessPoolExecutor:
    import multiprocessing

    # Workers read these when they load their libraries; more than one thread each would oversubscribe the machine.
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)
        first, *_ = [pool.submit(_nothing) for _ in range(workers)]  # all are started now, under these settings
        try:
            first.result()
        except BrokenProcessPool:
            raise InputError(
                "worker processes cannot start; in a script of your own, call run below `if __name__ == '__main__':`, "
                'or use engine="inline"'
            ) from None
        return pool
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _nothing() -> None:
    pass


def _begin() -> None:
    """In a worker: Ctrl-C is the driver's business; when the driver is gone, so is the worker."""
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _stop(pool: ProcessPoolExecutor) -> None:
    """End a pool at once: what is half done is of no use to anybody."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


def _too_large(job: Job, budget: float, where: str) -> Report | None:
    need = job.cell.memory()
    if need <= budget:
        return None
    return lost(f"needs {show_bytes(need)} of memory, but {where} has {show_bytes(budget)} for it")


class Dask(Engine):
    """A Dask cluster: the one at `scheduler`, or else workers of this machine with one thread each."""

    def __init__(self, workers: int, scheduler: str | None = None) -> None:
        self.workers = workers if scheduler is None else None
        self.scheduler = scheduler

    def run(self, jobs: Sequence[Job], started: Started) -> Reports:
        try:
            import distributed
        except ImportError:
            raise InputError("the engine dask needs distributed: pip install 'wordsway[dask]'") from None
        cluster: Any = None
        if self.scheduler is None:
            options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of ports that are taken
                cluster = distributed.LocalCluster(n_workers=self.workers, processes=True, **options)
        else:
            _check_address(self.scheduler)
        try:
            client = _client(distributed.Client, cluster or self.scheduler)
            try:
                yield from self._run(client, distributed.as_completed, jobs, started)
            finally:
                client.close()
        finally:
            if cluster is not None:
                cluster.close()

    def _run(self, client: Any, as_completed: Any, jobs: Sequence[Job], started: Started) -> Reports:
        limit, at_once = self._check_workers(client)
        waiting = deque(jobs)
        running: dict[str, Job] = {}
        finished = as_completed(loop=client.loop, raise_errors=False)
        serial = f"{os.getpid()}-{os.urandom(4).hex()}"  # another driver of this scheduler has tasks of its own

        def hand_out() -> Reports:
            while waiting and len(running) < 2 * at_once:
                job = waiting.popleft()
                refused = _too_large(job, limit, "the smallest worker")
                if refused is not None:
                    yield job, refused
                    continue
                name = f"wordsway-{job.key}-{serial}"
                running[name] = job
                arguments = (recipe_of(job.cell), job.revision, RESULT_VERSION)
                finished.add(client.submit(execute, *arguments, key=name, pure=False))
                started(job)

        yield from hand_out()
        while running:
            future = next(finished)
            job = running.pop(future.key)
            if future.status == "finished":
                yield job, future.result()
            else:
                error = future.exception() if future.status == "error" else None
                if error is None:
                    raise InputError("the Dask scheduler is gone; what was measured is kept: resume when it is back")
                yield job, lost(one_line(error))
            future.release()
            yield from hand_out()

    def _check_workers(self, client: Any) -> tuple[float, int]:
        """Wait for workers; the memory of the smallest one, and their number."""
        try:
            client.wait_for_workers(1, timeout=60)
        except TimeoutError:
            raise InputError("no Dask worker came within a minute; start one with: dask worker ADDRESS") from None
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        several = [worker for worker in workers if worker["nthreads"] != 1]
        if several:
            raise InputError(
                f"{len(several)} of {len(workers)} Dask workers have more than one thread, and cells that share a "
                "process share its memory and time; start them with --nthreads 1 (and --nworkers for more of them)"
            )
        return min(float(worker["memory_limit"] or float("inf")) for worker in workers), len(workers)


def _check_address(address: str) -> None:
    """Whether somebody listens there; the client itself would try for long."""
    match = re.fullmatch(r"(?:tcp|tls)://(\[.+\]|[^:\[\]]+):(\d+)", address)
    if match is None:
        raise InputError(f"a scheduler is given as tcp://HOST:PORT, got {address!r}")
    try:
        socket.create_connection((match[1].strip("[]"), int(match[2])), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot reach the Dask scheduler {address!r}: {one_line(error)}; {_START_ONE}") from None


def _client(kind: Any, place: Any) -> Any:
    import logging

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return kind(place, timeout=20, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"cannot reach the Dask scheduler {place!r}: {one_line(error)}; {_START_ONE}") from None
