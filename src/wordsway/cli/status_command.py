"""`wordsway status`: how far a run is."""

import json

from wordsway.cli.command import app, one_line_errors, printable
from wordsway.cli.help_pages import PanelCommand
from wordsway.cli.options import Debug, Json, Own, RunArgument


@app.command(cls=PanelCommand)
def status(folder: RunArgument, own: Own = None, as_json: Json = False, debug: Debug = False) -> None:
    """Show the progress of a run and its failures, also while it is running."""
    with one_line_errors(debug):
        from wordsway.studies import loaded_run
        from wordsway.studies.run.runner import make_plan
        from wordsway.studies.run.store import Store
        from wordsway.support.progress import duration

        with Store.read(folder) as store:
            run, busy = loaded_run.Run.of(store, skip_damaged=True), store.busy()
            damage = store.content().describe()
        parts = {study.name: make_plan(run.results, [study]) for study in run.studies}
        table = run.table()
        seconds = sum(result.provenance["seconds"] for result in run.results.values() if result.done)
        if as_json:
            counts = {
                name: {"cells": len(p.jobs), "done": p.done, "failed": p.failed, "left": len(p.pending)}
                for name, p in parts.items()
            }
            print(
                json.dumps(
                    {
                        "studies": counts,
                        "running": busy,
                        "seconds": seconds,
                        "failed": dict(table.failed),
                        "damage": damage,
                    }
                )
            )
            return
        for name, plan in parts.items():
            left = f", {len(plan.pending)} left (about {duration(plan.seconds)} on one core)" if plan.pending else ""
            failed = f", {plan.failed} failed" if plan.failed else ""
            print(f"{name}: {plan.done} of {len(plan.jobs)} cells done{failed}{left}")
        for study in run.studies:
            for panel in study.panels:
                if panel.skip is not None:
                    print(f"{study.name} {panel.id} is not run: {printable(panel.skip)}")
        print(
            f"{duration(seconds) if seconds else '0 s'} of cells measured; {'at work now' if busy else 'not running'}"
        )
        for label, error in table.failed.items():
            print(f"failed: {printable(label)}: {printable(error)}")
        if damage:
            print(f"damaged: {printable(damage)}")
        if not busy and (table.missing or damage):
            print(f"go on with: wordsway resume {folder}")
        if not busy and table.failed:
            print(f"try again what failed with: wordsway resume {folder} --failed")
