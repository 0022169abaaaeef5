"""One thread does all heavy work, one job after the other; what has not begun waits in line."""

import secrets
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from wordsway.support.errors import InputError, one_line

MOST_WAITING = 4


class Stopped(BaseException):
    """Ends a job that was cancelled. Not an Exception, so that nobody on the way takes it for a fault."""


class Full(Exception):
    """Too many jobs wait already."""


class Job:
    """Some work, and what it has said so far. Events are only ever added, so that readers need no lock."""

    def __init__(self, work: "Callable[[Job], None]") -> None:
        self.id = secrets.token_urlsafe(16)
        self.work = work
        self.events: list[dict[str, Any]] = []
        self.cancelled = self.ended = False

    def say(self, event: str, **values: Any) -> None:
        self.events.append({"event": event, **values})

    def check(self) -> None:
        """End the work if the job was cancelled; called by whatever runs for long, as often as possible."""
        if self.cancelled:
            raise Stopped


class Worker:
    """The line and the thread. `closing` is a plain flag, which a signal handler may set."""

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self.most_waiting, self.closing = most_waiting, False
        self._waiting: deque[Job] = deque()
        self.running: Job | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._loop, name="wordsway-worker", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Job], None]) -> Job:
        job = Job(work)
        with self._changed:
            if self.closing or len(self._waiting) >= self.most_waiting:
                raise Full
            self._waiting.append(job)
            self._changed.notify()
        return job

    def ahead(self, job: Job) -> int:
        """Count the jobs that must end before this one begins."""
        with self._changed:
            if job not in self._waiting:
                return 0
            return self._waiting.index(job) + (self.running is not None)

    @property
    def busy(self) -> bool:
        with self._changed:
            return self.running is not None or bool(self._waiting)

    def cancel(self, job: Job) -> None:
        job.cancelled = True
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
                job.say("stopped")
                job.ended = True

    def close(self, seconds: float) -> bool:
        """End everything; False where the thread has not ended by then."""
        with self._changed:
            self.closing = True
            for job in (*self._waiting, *([self.running] if self.running else [])):
                job.cancelled = True
            self._waiting.clear()
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self.closing:
                    self._changed.wait()
                if self.closing:
                    return
                job = self.running = self._waiting.popleft()
            try:
                job.check()
                job.work(job)
            except Stopped:
                job.say("stopped")
            except InputError as error:
                job.say("error", message=str(error))
            except Exception as error:  # a fault of ours: the page says so, the terminal has it whole
                traceback.print_exc(file=sys.stderr)
                job.say("error", message=f"this went wrong: {type(error).__name__}: {one_line(error)}")
            finally:
                with self._changed:
                    self.running = None
                job.ended = True
