"""The engine dask: cells on a Dask cluster, or on Dask workers of this machine."""

import os
import re
import socket
import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any

from wordsway.studies.cells.recipes import RESULT_VERSION, recipe_of
from wordsway.studies.run.engines import Engine, Reports, Started, Within, too_large
from wordsway.studies.run.worker import execute, lost
from wordsway.studies.study import Job
from wordsway.support.errors import InputError, one_line
from wordsway.support.stopping import signals_held

_START_ONE = "start one (dask scheduler), or leave out --scheduler for workers of this machine"
# What workers find in their environment. Dask's own choice also has the C library return freed memory to the system at
# once (MALLOC_TRIM_THRESHOLD_): then every tensor is made of new pages, and small cells take twice the CPU time.
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 1)
_STARTS = 3  # times that workers of this machine are started


class Dask(Engine):
    """A Dask cluster: the one at `scheduler`, or else workers of this machine with one thread each."""

    def __init__(self, workers: int, scheduler: str | None = None) -> None:
        self.workers = workers if scheduler is None else None
        self.scheduler = scheduler

    def run(self, jobs: Sequence[Job], started: Started, within: Within = None) -> Reports:
        try:
            import distributed
        except ImportError:
            raise InputError("the engine dask needs distributed: pip install 'wordsway[dask]'") from None
        cluster: Any = None
        if self.scheduler is None:
            cluster = self._local_cluster(distributed)
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

    def _local_cluster(self, distributed: Any) -> Any:
        """Start workers of this machine; where one is killed meanwhile, again."""
        from dask.config import set as configured

        options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
        problem: Exception | None = None
        for _ in range(_STARTS):
            try:
                with warnings.catch_warnings(), signals_held(), configured({_ENVIRONMENT: _ONE_THREAD}):
                    warnings.simplefilter("ignore")  # of ports that are taken
                    return distributed.LocalCluster(n_workers=self.workers, processes=True, **options)
            except (RuntimeError, OSError, TimeoutError) as error:
                problem = error
        raise InputError(
            f"Dask workers of this machine cannot start ({one_line(problem or RuntimeError())}); what was measured is "
            "kept: go on with another engine"
        )

    def _run(self, client: Any, as_completed: Any, jobs: Sequence[Job], started: Started) -> Reports:
        """Hand out cells. One whose workers die again and again may be a neighbour of the one to blame, so it is tried
        once more, alone."""
        limit, at_once = self._check_workers(client)
        waiting, suspects = deque(jobs), deque[Job]()
        blamed: set[str] = set()
        running: dict[str, Job] = {}
        finished = as_completed(loop=client.loop, raise_errors=False)
        serial = f"{os.getpid()}-{os.urandom(4).hex()}"  # another driver of this scheduler has tasks of its own

        def hand_out() -> Reports:
            while (waiting and len(running) < 2 * at_once) or (suspects and not waiting and not running):
                job = waiting.popleft() if waiting else suspects.popleft()
                refused = too_large(job, limit, "the smallest worker")
                if refused is not None:
                    yield job, refused
                    continue
                name = f"wordsway-{job.key}-{serial}" + ("-alone" if job.key in blamed else "")
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
                if type(error).__name__ == "KilledWorker" and job.key not in blamed:
                    blamed.add(job.key)
                    suspects.append(job)
                else:
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
        if not workers:  # the one that came is gone already
            return self._check_workers(client)
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
