"""Disturb runs at random, resume them, and compare their tables with an undisturbed one, row by row. For Linux.

    python tools/chaos.py --minutes 20 --seed 1      until the time is over
    python tools/chaos.py --faults 6 --seed 1        a number of faults
    python tools/chaos.py --seed 1 --repeat 17       run number 17 once more

A run is a folder on which commands work, and to which three faults happen one after the other: its driver or a worker
is killed (at a random moment: while it starts, too) or asked to stop, its disk is full, its files may not grow, a
second driver comes, bits of its files flip, a page is overwritten, its file is cut off. Engines change from command to
command. Then it is resumed as the messages say. The exit code is 1 if a row was lost or changed, if a process was left
behind, or if an end was not explained: one that is not in `chaos_commands.KNOWN_ENDS`, a traceback, code 0 with cells
missing. What is chosen depends on the seed and the number of the run alone; moments also on how fast the machine is.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from chaos_commands import warm_up
from chaos_faults import BETWEEN, DURING
from chaos_runs import STUDY, Disturbed, Tally, can_mount, undisturbed

KINDS = (
    "driver",
    "worker",
    "bits",
    "sigterm",
    "two",
    "page",
    "disk",
    "ctrl-c",
    "log",
    "driver",
    "limit",
    "worker",
    "cut",
)
ENGINES = ("inline", "inline", "processes", "processes", "dask")
A_RUN = 3  # faults
FRESH = 10  # one in so many runs begins in a new Python


class Lane:
    """One of several processes that disturb runs at the same time: it has every so many-th run."""

    def __init__(self, folder: Path, given: argparse.Namespace, small_disks: bool) -> None:
        self.folder, self.given, self.small_disks, self.tally = folder, given, small_disks, Tally()
        self.study, self.whole = folder / "chaos.toml", folder / "undisturbed"
        self.expected = json.loads((folder / "expected.json").read_text())
        self.expected = {(key, part): row for key, part, row in self.expected}
        self.kinds = [kind for kind in KINDS if kind in given.only and (small_disks or kind != "disk")]
        random.Random(given.seed).shuffle(self.kinds)

    def work(self, number: int, faults: int | None, deadline: float) -> None:
        """Disturb run after run."""
        while time.monotonic() < deadline and (faults is None or self.tally.faults.total() < faults):
            self.one_run(number, A_RUN if faults is None else min(A_RUN, faults - self.tally.faults.total()))
            number += self.given.lanes

    def one_run(self, number: int, faults: int) -> None:
        chance = random.Random(f"{self.given.seed}/{number}")
        kinds = [self.kinds[(number * A_RUN + k) % len(self.kinds)] for k in range(faults)]
        run = self.new_run(number, "disk" in kinds)
        fresh = number % FRESH == 0
        try:
            for place, kind in enumerate(kinds):
                if kind in DURING and (run.little_left() or (run.damaged and kind == "worker")):
                    run.finish("inline")
                    run.close()
                    run = self.new_run(number, "disk" in kinds)
                if kind in DURING and run.damaged:
                    run.heed()
                self.one_fault(run, f"{number}.{place + 1}", kind, chance, fresh and place == 0)
            before, began = self.state(), time.monotonic()
            run.finish(chance.choice(ENGINES))
            self.tally.runs += 1
            if self.state() != before:
                self.say(f"{number}.-", "", "resumed and compared", began, before)
        finally:
            run.close()

    def new_run(self, number: int, small_disk: bool) -> Disturbed:
        place = self.folder / f"run-{number}"
        return Disturbed(place, self.study, self.whole, self.expected, self.tally, small_disk)

    def one_fault(self, run: Disturbed, name: str, kind: str, chance: random.Random, fresh: bool) -> None:
        engine = chance.choice([engine for engine in ENGINES if kind != "worker" or engine != "inline"])
        before, began = self.state(), time.monotonic()
        told = (DURING | BETWEEN)[kind](run, engine, chance, fresh)
        where = engine if kind in DURING else "files"
        self.tally.faults[f"{kind} {where}"] += 1
        self.say(name, f"{kind} {where}", told + (" (new Python)" if fresh and kind in DURING else ""), began, before)

    def state(self) -> tuple[int, int, int]:
        return self.tally.lost, self.tally.changed, len(self.tally.unexplained)

    def say(self, name: str, what: str, told: str, began: float, before: tuple[int, int, int]) -> None:
        lost, changed, problems = (now - then for now, then in zip(self.state(), before, strict=True))
        state = "ok"
        if lost or changed or problems:
            listed = "; ".join(self.tally.unexplained[before[2] :])
            state = f"LOST {lost} CHANGED {changed} UNEXPLAINED {problems} {listed}"
        print(f"{name:>6} {what:17s} {told}; {time.monotonic() - began:.1f} s: {state}", flush=True)


def in_lanes(folder: Path, given: argparse.Namespace, deadline: float) -> Tally:
    """Fork the lanes, wait for them, add up what they found."""
    small_disks, pids = can_mount(folder), []
    if not small_disks:
        print("no small disk can be mounted here: no fault of the kind disk; files that may not grow take its place")
    for lane in range(given.lanes):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                worker = Lane(folder, given, small_disks)
                faults = None if given.faults is None else (given.faults + lane) // given.lanes
                worker.work(lane, faults, deadline)
                (folder / f"lane-{lane}.json").write_text(json.dumps(vars(worker.tally)))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        pids.append(pid)
    total = Tally()
    for lane, pid in enumerate(pids):
        if os.waitpid(pid, 0)[1] != 0:
            total.unexplained.append(f"lane {lane} of the harness ended with an error")
        else:
            found = json.loads((folder / f"lane-{lane}.json").read_text())
            total.add(Tally(**{**found, "faults": Counter(found["faults"])}))
    return total


def show(tally: Tally, minutes: float) -> None:
    kinds: dict[str, Counter[str]] = {}
    for name, count in tally.faults.items():
        kind, where = name.split()
        kinds.setdefault(kind, Counter())[where] += count
    for problem in tally.unexplained:
        print(f"unexplained: {problem}")
    for kind in sorted(kinds):
        print(f"{kind:8s} {kinds[kind].total():4d}: " + ", ".join(f"{w} {c}" for w, c in sorted(kinds[kind].items())))
    print(
        f"{minutes:.1f} minutes, {tally.faults.total()} faults ({tally.missed} of them too late to hit anything) on "
        f"{tally.runs} runs ({tally.fresh} begun in a new Python): {tally.compared} rows compared, {tally.lost} rows "
        f"lost, {tally.changed} rows changed, {len(tally.unexplained)} unexplained ends"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--faults", type=int, help="stop after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=2, help="runs at the same time")
    parser.add_argument("--only", nargs="+", choices=sorted(set(KINDS)), default=sorted(set(KINDS)))
    parser.add_argument("--repeat", type=int, metavar="RUN", help="only the run of this number")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="wordsway-chaos-"))
    try:
        warm_up()
        (folder / "chaos.toml").write_text(STUDY)
        expected = undisturbed(folder / "chaos.toml", folder / "undisturbed")
        (folder / "expected.json").write_text(json.dumps([[*key, row] for key, row in expected.items()]))
        began = time.monotonic()
        if given.repeat is None:
            tally = in_lanes(folder, given, began + 60 * given.minutes)
        else:
            lane = Lane(folder, given, can_mount(folder))
            lane.one_run(given.repeat, A_RUN)
            tally = lane.tally
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(tally, (time.monotonic() - began) / 60)
    return int(bool(tally.lost or tally.changed or tally.unexplained))


if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when libraries are loaded
    sys.exit(main())
