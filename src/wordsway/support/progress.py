"""A progress bar on stderr, where that is a terminal."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from contextvars import ContextVar

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_FEWEST = 50  # things to do below which a library call shows no bar of its own


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Show no progress within this block, if `quiet`."""
    before = _quiet.set(_quiet.get() or quiet)
    try:
        yield
    finally:
        _quiet.reset(before)


def say(line: str) -> None:
    """Print a line about what is done on stderr, unless that is to be quiet."""
    if not _quiet.get():
        print(f"wordsway: {line}", file=sys.stderr, flush=True)


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Callable[[int, int, str], None]]:
    """update(done, total, what)."""
    if not shown or _quiet.get() or not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total, what: progress.update(task, completed=done, total=total, description=what)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A sign of life on stderr, where that is a terminal, for work whose length is not known."""
    if _quiet.get() or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def bars_for_people() -> Iterator[None]:
    """Keep other libraries' progress bars, but only where somebody looks at them."""
    with redirect_stderr(sys.stderr if sys.stderr.isatty() else io.StringIO()):
        yield


@contextmanager
def shown_progress(
    given: Callable[[int, int], None] | None, what: str, count: int
) -> Iterator[Callable[[int, int], None]]:
    """The caller's own progress function, or a bar for a long list."""
    if given is not None:
        yield given
        return
    with progress_bar(count >= _FEWEST) as update:
        yield lambda done, total: update(done, total, what)
