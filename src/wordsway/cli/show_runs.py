"""How runs are shown: the plan, a live line while cells are measured, the claims, comparisons."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wordsway.cli.common import printable
from wordsway.memory import show_bytes

if TYPE_CHECKING:
    from wordsway.claims import Verdict
    from wordsway.differences import Differences
    from wordsway.engines import Engine
    from wordsway.execution import Report
    from wordsway.runner import Plan
    from wordsway.study import Job, Study

_LINE_EVERY = 30.0  # seconds, where stderr is no terminal
_START = 4.0  # seconds that workers take to load their libraries


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class LiveWatcher:
    """Cells done, rate, time left and the current cell: a bar on a terminal, else a line now and then. Time left is by
    the cells' expected cost, at the pace so far."""

    def __init__(self, studies: "Sequence[Study]", quiet: bool = False) -> None:
        self.studies, self.quiet = studies, quiet
        self.failed: list[tuple[str, str]] = []
        self.done = 0
        self._spent = 0.0
        self._bar: Any = None
        self._task: Any = None

    def begin(self, plan: "Plan", engine: "Engine") -> None:
        self.plan = plan
        self._began = self._told = time.monotonic()
        if self.quiet:
            return
        for study in self.studies:
            panels = ", ".join(panel.id for panel in study.panels if panel.skip is None) or "nothing to run"
            cells = plan.cells_of.get(study.name, 0)
            print(f"{study.name}: {printable(study.title or '')} ({panels}): {cells} cells", file=sys.stderr)
        known = f", {plan.done} of them known" if plan.done else ""
        failed = f", {plan.failed} failed before" if plan.failed else ""
        if not plan.pending:
            print(f"{len(plan.jobs)} cells{known}{failed}: nothing left to measure", file=sys.stderr)
            return
        expected = duration(_START + plan.seconds / engine.workers)
        workers = f"{engine.workers} worker" + ("s" if engine.workers > 1 else "")
        print(
            f"{len(plan.jobs)} cells{known}{failed}; {len(plan.pending)} to measure on {workers}: about {expected}, "
            f"at most {show_bytes(plan.memory)} a worker",
            file=sys.stderr,
        )
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (MofNCompleteColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("starting", total=len(plan.pending))
            self._bar.start()

    def started(self, job: "Job") -> None:
        self._show(job.cell.label)

    def finished(self, job: "Job", report: "Report") -> None:
        self.done += 1
        self._spent += job.cell.seconds()
        if report.error is not None:
            self.failed.append((job.cell.label, report.error))
        self._show(job.cell.label)

    def _show(self, label: str) -> None:
        if self.quiet:
            return
        text = f"{self._pace()}  {printable(label)}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, description=text)
        elif time.monotonic() - self._told > _LINE_EVERY:
            self._told = time.monotonic()
            print(f"{self.done} of {len(self.plan.pending)} cells, {text}", file=sys.stderr)

    def _pace(self) -> str:
        gone = time.monotonic() - self._began
        if not self.done or gone <= 0:
            return ""
        left = gone * (self.plan.seconds - self._spent) / self._spent if self._spent else 0.0
        return f"{self.done / gone:.1f}/s, {duration(left)} left"

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextmanager
def watching(studies: "Sequence[Study]", quiet: bool) -> Iterator[LiveWatcher]:
    watcher = LiveWatcher(studies, quiet)
    try:
        yield watcher
    finally:
        watcher.close()


def show_claims(found: "Sequence[Verdict]") -> None:
    """A line for each claim, and under it one for each of its groups."""
    from rich.console import Console
    from rich.text import Text

    from wordsway.reproduction import figure, interval

    console = Console(highlight=False)
    colours = {"holds": "green", "does not hold": "red"}
    width = max(len(each.group) for each in found)
    last = ""
    for each in found:
        says = f"{each.study} {each.panel}: {each.says}"
        if says != last:
            predicted = "" if each.predicted is None else f"predicted {figure(each.predicted)}, "
            console.print(_plain(says), soft_wrap=True)
            console.print(_plain(f"    {each.source}; {predicted}holds if {each.wanted}", "dim"), soft_wrap=True)
            last = says
        ends = f"[{interval(each)}]" if each.low is not None else ""
        number = figure(each.measured) or "-"
        line = Text(f"    {each.group:{width}}  {number:>8}  {ends:22}  ")
        line.append(each.verdict, colours.get(each.verdict, "yellow"))
        line.append(f" ({printable(each.note)})" if each.note else "")
        console.print(line, soft_wrap=True)
    counts = {name: sum(each.verdict == name for each in found) for name in ("holds", "does not hold", "not tested")}
    shown = {"holds": "hold", "does not hold": "do not hold", "not tested": "not tested"}
    console.print("claims: " + ", ".join(f"{count} {shown[name]}" for name, count in counts.items()))


def show_differences(found: "Differences") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for name, (first, second) in found.settings.items():
        console.print(_plain(f"{name}: {first} against {second}"))
    if found.equal:
        console.print("the two tables are equal")
    names = list(dict.fromkeys(name for each in found.cells for name in each.cell))
    table = Table(box=None, padding=(0, 1))
    for heading in (*names, "column", "first", "second", "difference", "95% interval"):
        table.add_column(heading, no_wrap=True)
    for each in found.cells:
        values = ["-" if each.cell.get(name) is None else str(each.cell[name]) for name in names]
        ends = "-" if each.low is None or each.high is None else f"{each.low:+.4f} to {each.high:+.4f}"
        numbers = (f"{each.first:.4f}", f"{each.second:.4f}", f"{each.difference:+.4f}", ends)
        table.add_row(*(_plain(value) for value in (*values, each.column, *numbers)))
    console.print(table)
    apart = sum(
        each.low is not None and each.high is not None and (each.low > 0 or each.high < 0) for each in found.cells
    )
    console.print(f"{len(found.cells)} cells in both; in {apart} the interval of the difference does not hold 0")
    for count, name in zip(found.only, ("first", "second"), strict=True):
        if count:
            console.print(f"{count} cells only in the {name}")


def _plain(text: str, style: str = "") -> Any:
    """Text as it is, not as markup."""
    from rich.text import Text

    return Text(printable(text), style=style)
