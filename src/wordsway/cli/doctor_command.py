"""`wordsway doctor`: what is installed, what is at hand, and what to do about the rest."""

import json
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from wordsway.cli.command import app, one_line_errors, printable
from wordsway.cli.help_pages import RUN, PanelCommand
from wordsway.cli.options import Debug, Json, option

if TYPE_CHECKING:
    from wordsway.cli.doctor import Diagnosis

_MARKS = {"ok": ("ok", "green"), "absent": ("-", "dim"), "note": ("note", "yellow"), "broken": ("BROKEN", "bold red")}


@app.command(cls=PanelCommand)
def doctor(
    check: Annotated[bool, option(RUN, None, "Load torch, and measure and encode something.", "--check")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check the installation: packages, devices, installed models, and how to get what is missing.

    Asks no network. With --check, torch and the bundled encoder are loaded and tried, which takes some seconds. The
    exit code is 1 if something that is installed does not work.
    """
    with one_line_errors(debug):
        from wordsway.cli.doctor import diagnose
        from wordsway.support.progress import waiting

        with waiting("looking around"):
            found = diagnose(check)
        print(json.dumps(found.to_dict())) if as_json else _show(found)
    if not found.healthy:
        raise typer.Exit(1)


def _show(found: "Diagnosis") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from wordsway.cli.doctor import PURPOSES

    console = Console(highlight=False)
    for section, findings in groupby(found.findings, key=lambda finding: finding.section):
        console.print(Text(section, style="bold"))
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(width=6, justify="right")
        table.add_column(min_width=9, overflow="fold")
        table.add_column(overflow="fold")
        for finding in findings:
            mark, style = _MARKS[finding.state]
            about = f"{PURPOSES[finding.name]}: " if section == "extras" and finding.name in PURPOSES else ""
            detail = Text(printable(about + finding.detail))
            if finding.fix is not None:
                detail.append(f"\n{printable(finding.fix)}", style="cyan")
            table.add_row(Text(mark, style=style), Text(printable(finding.name)), detail)
        console.print(table)
    broken = [finding.name for finding in found.findings if finding.state == "broken"]
    if broken:
        verdict = f"Broken: {', '.join(broken)}. The lines marked BROKEN say what to do."
    else:
        works = "wordsway works" if found.checked else "Nothing broken was found"
        verdict = f"{works}. What is marked - is optional; the line below it says how to get it."
    console.print(Text(f"{printable(verdict)} ({found.seconds:.1f} s)", style="bold"))
