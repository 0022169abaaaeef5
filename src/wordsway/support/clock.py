"""Time that work has taken, as far as other programs on the machine do not change it."""

import time


class Clock:
    """A clock that starts when it is made. Where other programs hold this one up, its own processor time is less than
    the time that passes, and counts instead, so that a limit in seconds means the same amount of work."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        """Return the seconds since the start."""
        return min(time.perf_counter() - self._began[0], time.process_time() - self._began[1])
