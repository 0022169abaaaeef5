"""Progress on stderr: a bar on a terminal, a line every ten seconds elsewhere, and an estimate of what takes long."""

import functools
import inspect
import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Tell = Callable[[int, int], None]
Progress = Tell | bool | None  # of a library call: a function of (done, in all), or True for a bar or lines on stderr

LINE_EVERY = 10.0  # seconds, where stderr is no terminal
LONG = 5.0  # seconds in all, from which work is announced with an estimate
_SOON = 1.5  # seconds after which the pace says how long the rest takes
_FEWEST = 50  # things to do below which a library call shows no bar of its own
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_within: ContextVar[Tell | None] = ContextVar("within", default=None)


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Show no progress within this block, if `quiet`."""
    before = _quiet.set(_quiet.get() or quiet)
    try:
        yield
    finally:
        _quiet.reset(before)


@contextmanager
def heard_within(listener: Tell) -> Iterator[None]:
    """Let a listener hear of progress inside the parts of some work, as far as they run in this thread."""
    before = _within.set(listener)
    try:
        yield
    finally:
        _within.reset(before)


def tell_within(done: int, total: int) -> None:
    """Tell whoever listens how much of a part of some work is done."""
    listener = _within.get()
    if listener is not None:
        listener(done, total)


def say(line: str) -> None:
    """Print a line about what is done on stderr, unless that is to be quiet."""
    if not _quiet.get():
        print(f"wordsway: {line}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Write a time for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def exactly(seconds: float) -> str:
    """Write a time to the second, which shows that it goes on."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{max(1, rest)} s"


@contextmanager
def heartbeat(line: Callable[[], str]) -> Iterator[None]:
    """Print a line every ten seconds for as long as the block takes, whether or not there is news."""
    stop, stream = threading.Event(), sys.stderr

    def beat() -> None:
        while not stop.wait(LINE_EVERY):
            print(f"wordsway: {line()}", file=stream, flush=True)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Pace:
    """Progress of some work: how much is done, how long that took and, from that, how long the rest takes.

    An estimate over `LONG` is said once, with what would make it `shorter`: at the start where `expected` seconds are
    known, else when the pace shows it.
    """

    def __init__(self, what: str, shorter: str = "", expected: float | None = None) -> None:
        self.what, self.shorter, self.expected = what, shorter, expected
        self.done, self.total, self.label = 0, 0, ""
        self.began = time.monotonic()
        self.said = False
        self.announce(expected)

    def announce(self, seconds: float | None) -> None:
        """Say once how long it takes in all, if that is long."""
        if seconds is not None and seconds > LONG and not self.said:
            self.said = True
            say(f"about {duration(seconds)} in all" + (f"; shorter: {self.shorter}" if self.shorter else ""))

    def update(self, done: int, total: int, label: str = "") -> None:
        self.done, self.total, self.label = done, total, label
        gone = time.monotonic() - self.began
        if done and gone >= _SOON and self.expected is None:
            self.announce(gone * total / done)

    def _rest(self, gone: float) -> float | None:
        """Estimate the seconds that are left: what is expected at first, and slowly the pace so far."""
        share = self.done / self.total if self.total else 0.0
        if not share:
            return None if self.expected is None or self.expected <= gone else self.expected - gone
        if self.expected is None:
            return gone * (1 - share) / share
        return (1 - share) * (gone + (1 - share) * self.expected)

    def line(self) -> str:
        """Describe it in one line."""
        gone = time.monotonic() - self.began
        counted = f"{self.what} {self.done} of {self.total}" if self.total else self.what
        rest = self._rest(gone)
        left = "" if rest is None else f", about {duration(rest)} left"
        return f"{counted}, {exactly(gone)} so far{left}" + (f"  {self.label}" if self.label else "")


@contextmanager
def progress_bar(what: str, shorter: str = "", expected: float | None = None) -> Iterator[Callable[..., None]]:
    """Show progress as update(done, total, label) tells it. `what` is counted; `shorter` and `expected`: see `Pace`."""
    if _quiet.get():
        yield lambda done, total, label="": None
        return
    pace = Pace(what, shorter, expected)
    if not sys.stderr.isatty():
        with heartbeat(pace.line):
            yield pace.update
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def update(done: int, total: int, label: str = "") -> None:
            pace.update(done, total, label)
            bar.update(task, completed=done, total=total, description=label or what)

        yield update


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a sign of life on stderr, for work whose length is not known."""
    if _quiet.get():
        yield
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(what):
            yield
    else:
        with heartbeat(Pace(what).line):
            yield


@contextmanager
def bars_for_people() -> Iterator[None]:
    """Keep other libraries' progress bars, but only where somebody looks at them."""
    with redirect_stderr(sys.stderr if sys.stderr.isatty() else io.StringIO()):
        yield


def takes_progress(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function's argument `progress` be True as well: then progress is shown while it works."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        place = list(inspect.signature(function).parameters).index("progress")

        @functools.wraps(function)
        def run(*args: P.args, **options: P.kwargs) -> R:
            given: Any = options.get("progress", args[place] if len(args) > place else None)
            if not isinstance(given, bool):
                return function(*args, **options)
            with progress_bar(what) if given else quietly() as update:
                if len(args) > place:
                    args = (*args[:place], update, *args[place + 1 :])  # pyright: ignore[reportAssignmentType]
                else:
                    options["progress"] = update
                return function(*args, **options)

        return run

    return decorate


def as_function(progress: Callable[P, None] | bool | None) -> Callable[P, None] | None:
    """Return the function that `takes_progress` put there, or the caller's own."""
    return progress if callable(progress) else None


@contextmanager
def shown_progress(given: Progress, what: str, count: int) -> Iterator[Tell]:
    """Yield the caller's own progress function; with True show progress, and with None on a terminal if it is long."""
    if callable(given):
        yield given
        return
    shown = given if given is not None else count >= _FEWEST and sys.stderr.isatty()
    with progress_bar(what) if shown else nullcontext() as update:
        yield update or (lambda done, total: None)
