"""The runner of studies: `python benchmarks/studies.py [JOB ...]`.

overhead  1,000 cells that do nothing, inline, into a store: what the runner itself takes
scaling   real cells on two one-thread processes against one, side by side in one run
engines   the same cells inline, in processes and on Dask: seconds, and whether the tables are equal

Without a job: all of them.
"""

import argparse
import statistics
import time
from dataclasses import dataclass

import wordsway as ws
from wordsway.studies.cells.base import PROCESS, Cell, Outcome

REAL = {"map": ["rf", "raf", "relu-raf"], "n": [100, 150], "d": 768, "trials": 10}


@dataclass(frozen=True)
class Nothing(Cell):
    """A cell that costs nothing."""

    first = "lower"
    numbers = ("lower",)

    n: int = 1

    def measure(self) -> Outcome:
        return Outcome([{"lower": 1.0}])

    def memory(self) -> float:
        return PROCESS

    def seconds(self) -> float:
        return 1e-3

    def models(self) -> tuple[str, ...]:
        return ()

    @property
    def label(self) -> str:
        return f"nothing {self.trial}"


def timed(study: ws.Study, engine: str, workers: int | None = None) -> tuple[float, ws.Table]:
    began = time.perf_counter()
    table = ws.run(study, engine=engine, workers=workers)
    assert not table.failed and not table.missing
    return time.perf_counter() - began, table


def overhead() -> None:
    kind = "studies:Nothing"  # of this file, as a module
    ws.allow_maps("studies")
    ws.run(ws.Study("warm", {"measure": kind, "trials": 2}), engine="inline")
    seconds, table = timed(ws.Study("nothing", {"measure": kind, "trials": 1000}), "inline")
    print(f"overhead: {len(table)} trivial cells inline in {seconds:.2f} s")


def scaling() -> None:
    study, ratios = ws.Study("real", {**REAL, "trials": 20}), []
    for _ in range(3):
        one, first = timed(study, "processes", 1)
        two, second = timed(study, "processes", 2)
        equal = first.numbers() == second.numbers()
        print(f"scaling: {len(first)} real cells, one process {one:.1f} s, two {two:.1f} s: {one / two:.2f} x, "
              f"tables equal: {equal}")  # fmt: skip
        ratios.append(one / two)
    print(f"scaling: median {statistics.median(ratios):.2f} x")


def engines() -> None:
    study = ws.Study("real", {**REAL, "trials": 3})
    known = None
    for name in ("inline", "processes", "dask"):
        seconds, table = timed(study, name)
        known = known or table.numbers()
        print(f"engines: {name} {seconds:.1f} s, equal to inline: {table.numbers() == known}")


JOBS = {"overhead": overhead, "scaling": scaling, "engines": engines}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help=", ".join(JOBS))
    for job in parser.parse_args().jobs or list(JOBS):
        JOBS[job]()
