"""Load a model for a job. Loading cannot be interrupted, so it has a thread of its own, which a cancelled job leaves.

What was left ends by itself, and its outcome is thrown away. Few may be left at a time, as each takes memory; a job
that comes while there are as many waits for one of them to end.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from wordsway.app.jobs import Job

T = TypeVar("T")

MOST_LEFT = 2
_PAUSE = 0.05  # seconds between two looks at whether the job was cancelled
_left: list[threading.Thread] = []


def load(function: Callable[[], T], job: Job) -> T:
    """Call a function that loads something, and end at once when the job is cancelled."""
    while len(loading()) >= MOST_LEFT:
        job.check()
        _left[0].join(_PAUSE)
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.extend([function(), None])
        except BaseException as error:  # handed to the job's own thread
            outcome.extend([None, error])

    thread = threading.Thread(target=run, name="wordsway-loading", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            job.check()
            thread.join(_PAUSE)
    except BaseException:
        _left.append(thread)
        raise
    loaded, error = outcome
    if error is not None:
        raise error
    return loaded


def loading() -> list[threading.Thread]:
    """The threads that were left and still load."""
    _left[:] = [thread for thread in _left if thread.is_alive()]
    return _left
