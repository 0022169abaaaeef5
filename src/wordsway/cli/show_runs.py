"""Text that is printed about runs: the plan, a live line while cells are measured, the claims, comparisons."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import printable
from wordsway.support.digits import count_of, signed, three
from wordsway.support.memory import show_bytes
from wordsway.support.progress import duration, heartbeat

if TYPE_CHECKING:
    from wordsway.studies.claims import Verdict
    from wordsway.studies.compare_runs import Difference, Differences
    from wordsway.studies.reproduce import Written
    from wordsway.studies.run.engines import Engine
    from wordsway.studies.run.runner import Plan
    from wordsway.studies.run.worker import Report
    from wordsway.studies.study import Job, Study

START = 4.0  # seconds that workers take to load their libraries


class LiveWatcher:
    """Cells done, rate, time left and the current cell: a bar on a terminal, else a line every ten seconds. Time
    left is by the cells' expected cost, at the pace so far."""

    def __init__(self, studies: "Sequence[Study]", quiet: bool = False) -> None:
        self.studies, self.quiet = studies, quiet
        self.failed: list[tuple[str, str]] = []
        self.done = 0
        self._spent = 0.0
        self._beat = ExitStack()  # lines every ten seconds, where stderr is no terminal
        self._label = ""
        self._bar: Any = None
        self._task: Any = None

    def begin(self, plan: "Plan", engine: "Engine") -> None:
        self.plan = plan
        self._began = time.monotonic()
        if self.quiet:
            return
        for study in self.studies:
            panels = ", ".join(panel.id for panel in study.panels if panel.skip is None) or "nothing to run"
            cells = plan.cells_of.get(study.name, 0)
            title = f"{printable(study.title)} " if study.title else ""
            print(f"{study.name}: {title}({panels}): {count_of(cells, 'cell')}", file=sys.stderr)
        known = f", {plan.done} of them known" if plan.done else ""
        failed = f", {plan.failed} failed before" if plan.failed else ""
        if not plan.pending:
            print(f"{count_of(len(plan.jobs), 'cell')}{known}{failed}: nothing left to measure", file=sys.stderr)
            return
        if engine.workers is None:
            expected = f"{duration(plan.seconds)} on one core"
        else:
            expected = duration(START + plan.seconds / engine.workers)
        workers = "the cluster's workers" if engine.workers is None else count_of(engine.workers, "worker")
        print(
            f"{count_of(len(plan.jobs), 'cell')}{known}{failed}; {len(plan.pending)} to measure on {workers}: "
            f"about {expected}, at most {show_bytes(plan.memory)} a worker",
            file=sys.stderr,
        )
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (MofNCompleteColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("starting", total=len(plan.pending))
            self._bar.start()
        else:
            self._beat.enter_context(heartbeat(self._line))

    def started(self, job: "Job") -> None:
        self._show(job.cell.label)

    def finished(self, job: "Job", report: "Report") -> None:
        self.done += 1
        self._spent += job.cell.seconds() * self.plan.pace
        if report.error is not None:
            self.failed.append((job.cell.label, report.error))
        self._show(job.cell.label)

    def _show(self, label: str) -> None:
        self._label = label
        if self.quiet:
            return
        text = f"{self._pace()}  {printable(label)}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, description=text)

    def _line(self) -> str:
        return f"{self.done} of {len(self.plan.pending)} cells, {self._pace()}  {printable(self._label)}"

    def _pace(self) -> str:
        gone = time.monotonic() - self._began
        if not self.done or gone <= 0:
            return ""
        left = gone * (self.plan.seconds - self._spent) / self._spent if self._spent else 0.0
        return f"{self.done / gone:.1f}/s, {duration(left)} left"

    def close(self) -> None:
        self._beat.close()
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

    from wordsway.studies.reproduce import figure, interval

    console = Console(highlight=False)
    colours = {"holds": "green", "does not hold": "red"}
    width = max(len(each.group) for each in found)
    last = ""
    for each in found:
        says = f"{each.study} {each.panel}: {each.says}"
        if says != last:
            predicted = "" if each.predicted is None else f"predicted {figure(each.predicted)}, "
            console.print(plain_cell(says), soft_wrap=True)
            console.print(plain_cell(f"    {each.source}; {predicted}holds if {each.wanted}", "dim"), soft_wrap=True)
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

    console = Console(highlight=False)
    for name, (first, second) in found.settings.items():
        console.print(plain_cell(f"{name}: {first} against {second}"), soft_wrap=True)
    if found.equal:
        console.print("the two tables are equal")
    panels: dict[tuple[Any, Any], list[Difference]] = {}
    for each in found.cells:
        panels.setdefault((each.cell.get("study"), each.cell.get("panel")), []).append(each)
    for (study, panel), cells in panels.items():
        how = "paired by trial" if all(each.paired for each in cells) else "not paired, as trials differ"
        where = "" if study is None else f"{study} {panel}, "
        console.print(plain_cell(f"{where}{cells[0].column}, second - first, {how}"), soft_wrap=True)
        rows = []
        for each in cells:
            ends = "-" if each.low is None or each.high is None else f"{signed(each.low)} to {signed(each.high)}"
            numbers = (three(each.first), three(each.second), signed(each.difference), ends)
            cell = {name: value for name, value in each.cell.items() if name not in ("study", "panel")}
            rows.append((cell, numbers))
        _print_cells(console, rows, ("first", "second", "difference", "95% interval"))
    many = count_of(len(found.cells), "cell")
    console.print(f"{many} in both; in {found.apart} the interval of the difference does not hold 0")
    for count, name in zip(found.only, ("first", "second"), strict=True):
        if count:
            console.print(f"{count_of(count, 'cell')} only in the {name}")


def show_means(written: "Written") -> None:
    """Of studies without claims: the mean over trials of every cell."""
    from rich.console import Console

    from wordsway.studies.compare_runs import cell_means
    from wordsway.studies.run.tables import Table

    console = Console(highlight=False)
    panels: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in written.table.rows:
        panels.setdefault((row["study"], row["panel"]), []).append(row)
    for (study, panel), part in panels.items():
        found = cell_means(Table(tuple(part)))
        if not found:
            continue
        console.print(plain_cell(f"{study} {panel}, {found[0][1]}"), soft_wrap=True)
        rows = []
        for cell, _, mean, trials in found:
            ends = "-" if mean.low is None or mean.high is None else f"{three(mean.low)} to {three(mean.high)}"
            rows.append((cell, (three(mean.value), ends, str(trials))))
        _print_cells(console, rows, ("mean", "95% interval", "trials"))


def _print_cells(
    console: Any, rows: "Sequence[tuple[dict[str, Any], tuple[str, ...]]]", headings: tuple[str, ...]
) -> None:
    """A table of cells: what tells them apart, then numbers."""
    from rich.table import Table as Grid

    names = list(dict.fromkeys(name for cell, _ in rows for name in cell))
    grid = Grid(box=None, padding=(0, 1))
    for heading in (*names, *headings):
        grid.add_column(heading, no_wrap=True, justify="right" if heading in headings else "left")
    for cell, numbers in rows:
        values = ["-" if cell.get(name) is None else str(cell[name]) for name in names]
        grid.add_row(*(plain_cell(value) for value in (*values, *numbers)))
    console.print(grid)


def plain_cell(text: str, style: str = "") -> Any:
    """Show a text as it is, not as markup."""
    from rich.text import Text

    return Text(printable(text), style=style)
