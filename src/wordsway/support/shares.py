"""Progress of worker processes, for their driver to read: how much of its job each has done. This module imports
nothing heavy: a worker reads it before its libraries.

Shares lie in memory that the processes have in common, without a lock: a worker that is killed would keep it.
"""

from typing import Any

from wordsway.support.following import follow_parent

_of_this_worker: Any = None


class Shares:
    """Shares of jobs that run, as their driver sees them: each running job has a place of its own."""

    def __init__(self, context: Any, count: int) -> None:
        try:
            self.values: Any = context.RawArray("d", count)
        except OSError:  # no room for it: then nothing is told
            self.values = None
        self._free = list(range(count))
        self._places: dict[str, int] = {}

    def place(self, job: str) -> int:
        """Give a job that begins a place, where its share is 0."""
        place = self._places[job] = self._free.pop()
        if self.values is not None:
            self.values[place] = 0.0
        return place

    def free(self, job: str) -> None:
        """Take the place of a job that has ended, if it has one."""
        if job in self._places:
            self._free.append(self._places.pop(job))

    def share(self, job: str) -> float:
        """Read how much of a running job is done, from 0 to 1."""
        return 0.0 if self.values is None else self.values[self._places[job]]


def begin_worker(values: Any) -> None:
    """Begin a worker: it follows its parent, and tells its shares in `values`."""
    global _of_this_worker
    follow_parent()
    _of_this_worker = values


def tell_share(place: int, done: int, total: int) -> None:
    """In a worker, tell the driver how much of the job at a place is done."""
    if _of_this_worker is not None:
        _of_this_worker[place] = done / max(total, 1)
