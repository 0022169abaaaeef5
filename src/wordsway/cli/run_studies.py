"""Run studies while somebody watches, then write and show what came out."""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wordsway.cli.command import command_line, printable

if TYPE_CHECKING:
    from wordsway.studies.reproduce import Written
    from wordsway.studies.study import Study


def run_and_show(
    asked: "Sequence[Study] | None",
    out: Path,
    engine: str,
    workers: int | None,
    scheduler: str | None,
    retry: bool = False,
    as_json: bool = False,
    quiet: bool = False,
    join: bool = False,
) -> None:
    """Run studies (None: those that a folder has), then write and show what came out. With `join`, panels that a folder
    has beside those asked for stay part of their study."""
    from wordsway.cli.output import write_report
    from wordsway.cli.show_runs import watching
    from wordsway.report.runs import of_run
    from wordsway.studies.loaded_run import Run
    from wordsway.studies.reproduce import joined, replaced, write_files
    from wordsway.studies.run.engines import make_engine
    from wordsway.studies.run.runner import work
    from wordsway.studies.run.store import Store
    from wordsway.support.progress import waiting

    chosen = make_engine(engine, workers, scheduler)
    with Store.open(out, create=asked is not None) as store:
        before = store.studies()
        if asked is not None:
            for note in replaced(before, asked):
                print(f"wordsway: note: {printable(note)}", file=sys.stderr)
            asked = joined(before, asked) if join else asked
            store.add_plans(asked, shlex.join(command_line()))
        known = list(asked) if asked is not None else before
        plan = list({study.name: study for study in [*before, *known]}.values())
        with watching(known, quiet) as watcher:
            try:
                work(store, known, chosen, retry, watcher)
            except KeyboardInterrupt:
                watcher.close()
                done = f"{watcher.done} of {len(watcher.plan.pending)} cells" if hasattr(watcher, "plan") else "nothing"
                print(
                    f"\nwordsway: stopped; {done} measured and kept. Go on with: wordsway resume {out}", file=sys.stderr
                )
                raise typer.Exit(130) from None
        finished = Run.of(store, plan)
        with waiting("drawing figures"):
            written = write_files(finished, [study.name for study in known])
    write_report(of_run(finished), out / "report.html", quiet=True)
    written.paths.append(out / "report.html")
    if asked is None and any(study.name in ("curves", "generalize") for study in known):
        print(
            "wordsway: note: for the tables and pictures of wordsway curve or generalize, give that command again with "
            f"--out {out}: nothing is measured twice",
            file=sys.stderr,
        )
    _show(written, out, as_json)


def expected_seconds(study: "Study", out: Path | None, engine: str, workers: int | None) -> float:
    """Estimate how long the cells of a study take that a folder does not have yet. Texts that cannot be had are an
    error first: those of the cell that needs most are looked up."""
    from wordsway.cli.show_runs import START
    from wordsway.studies.run.engines import make_engine
    from wordsway.studies.run.runner import make_plan
    from wordsway.studies.run.store import Store, has_run
    from wordsway.support.progress import waiting

    results = {}
    if out is not None and has_run(out):
        with Store.read(out) as store:
            results = store.results(skip_damaged=True)  # what is damaged is measured again
    plan, chosen = make_plan(results, [study], retry_failed=True), make_engine(engine, workers, None)
    if plan.pending:
        with waiting("reading texts"):
            max((job.cell for job in plan.pending), key=_need).check_texts()
    return START + plan.seconds / (chosen.workers or 1) if plan.pending else 0.0


def _need(cell: Any) -> tuple[int, int, int]:
    """Order cells by how many texts they need, and how long ones."""
    return getattr(cell, "train_size", 0), cell.n, cell.trial


def _show(written: "Written", out: Path, as_json: bool) -> None:
    """Print what came out; cells that failed end the command with code 1."""
    from wordsway.cli.show_runs import show_claims, show_means
    from wordsway.support.digits import count_of

    if as_json:
        print(json.dumps(_as_dict(written, out), allow_nan=False))
    else:
        if written.verdicts:
            show_claims(written.verdicts)
        else:
            show_means(written)
        print("written to " + str(out) + ": " + ", ".join(path.name for path in written.paths))
    if written.table.failed:
        shown = list(written.table.failed.items())
        for label, error in shown[:5]:
            print(f"wordsway: failed: {printable(label)}: {printable(error)}", file=sys.stderr)
        print(
            f"wordsway: {count_of(len(shown), 'cell')} failed; the others are kept. Try again with: "
            f"wordsway resume {out} --failed",
            file=sys.stderr,
        )
        raise typer.Exit(1)


def _as_dict(written: "Written", out: Path) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "folder": str(out),
        "rows": [dict(row) for row in written.table.rows],
        "claims": [asdict(each) for each in written.verdicts],
        "failed": dict(written.table.failed),
        "files": [str(path) for path in written.paths],
    }


def built_in_with_notes(names: Sequence[str], scale: str, **options: Any) -> "list[Study]":
    """Find built-in studies, and say on stderr what a reader should know of them."""
    from wordsway.studies.reproduce import known_studies

    asked, notes = known_studies(names, scale, **options)
    if scale == "smoke":
        notes.append("smoke tries out the machinery; its texts and sizes are too small for the claims")
    for note in notes:
        print(f"wordsway: note: {printable(note)}", file=sys.stderr)
    return asked
