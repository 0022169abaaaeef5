"""Runs for tools/chaos.py: a folder on which commands work, what it has stored, and whether its table is right."""

import contextlib
import errno
import json
import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos_commands import Command, End

STUDY = '[[panel]]\nmap = ["rf", "raf"]\nn = [4, 6, 8]\nd = 16\ntrials = 4\ncertificate = false\nkeep_delta = true\n'
CELLS = 24
VARYING = ("seconds", "peak_bytes", "started", "machine", "arrays", "versions")  # between two runs of a cell
SPACE = "16m"  # of a small disk: a run of the study takes less than 2
START = {"inline": 0.4, "processes": 4.0, "dask": 6.0}  # seconds in which an engine starts, about
Rows = dict[tuple[str, int], str]


@dataclass
class Tally:
    """Faults so far, and what went wrong."""

    faults: Counter[str] = field(default_factory=Counter)  # by kind and engine
    runs: int = 0
    fresh: int = 0  # commands that started Python anew
    missed: int = 0  # faults that came when the command had ended
    compared: int = 0
    lost: int = 0
    changed: int = 0
    unexplained: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(value)
            else:
                setattr(self, name, mine + value)


class Disturbed:
    """A run that is disturbed, on a disk of its own where it is to become full."""

    def __init__(self, place: Path, study: Path, whole: Path, expected: Rows, tally: Tally, small_disk: bool) -> None:
        self.place, self.folder, self.file = place, place / "run", place / "run" / "run.sqlite"
        self.study, self.whole, self.expected, self.tally = study, whole, expected, tally
        self.kept: dict[str, str] = {}  # results that were seen in the store: their keys, and when they were measured
        self.damaged = False
        self.again = False  # whether only the command that began it can go on
        self.small_disk = small_disk
        place.mkdir()
        if small_disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "none", str(place)], check=True)

    def close(self) -> None:
        if self.small_disk:
            subprocess.run(["umount", "--lazy", str(self.place)], check=True)
        shutil.rmtree(self.place)

    def command(self, engine: str, again: bool = False, fresh: bool = False, **options: Any) -> Command:
        """Start the run, or go on with it: by `resume`, or with `again` by the command that began it."""
        workers = [] if engine == "inline" else ["--workers", "2"]
        begin = again or self.again or not self.file.exists()
        words = ["run", str(self.study), "--out", str(self.folder)] if begin else ["resume", str(self.folder)]
        self.tally.fresh += fresh
        return Command(*words, "--engine", engine, *workers, fresh=fresh, **options)

    def look(self, command: Command, what: str) -> End:
        """Wait for a command's end and note what is not explained; rows that were stored must still be there."""
        end = command.end()
        problem = end.unexplained(command.sent)
        if problem is not None:
            self.problem(f"{what}: {problem}")
        if left := command.left_behind():
            self.problem(f"{what}: {len(left)} processes outlived their driver")
        if not self.damaged:
            now = self.stored()
            lost = [key for key, started in self.kept.items() if now.get(key) != started]
            self.tally.lost += len(lost)
            if lost:
                self.problem(f"{what}: {len(lost)} stored results are gone or were measured again")
            self.kept = now
        return end

    def problem(self, text: str) -> None:
        self.tally.unexplained.append(" ".join(text.split()))

    def stored(self) -> dict[str, str]:
        """Read what the store has measured, past wordsway: key, and when."""
        if not self.file.exists():
            return {}
        with contextlib.suppress(sqlite3.Error):
            with closing(sqlite3.connect(f"{self.file.as_uri()}?mode=ro", uri=True, timeout=5)) as db:
                return dict(db.execute("SELECT key, started FROM results WHERE status = 'done'"))
        return {}

    def little_left(self) -> bool:
        """Whether a fault would hardly meet a cell that is being measured."""
        return not self.damaged and len(self.stored()) > CELLS - 6

    def heed(self) -> None:
        """Do with a damaged run what its messages say before it can go on."""
        said = self.look(Command("status", str(self.folder)), "status").err
        if "move this file away" in said:
            os.replace(self.file, self.folder / "moved.away")
        self.again = "give the command" in said

    def wait(self, command: Command, engine: str, chance: random.Random) -> str:
        """Wait for a random moment while a command runs: after some seconds, or when some more rows are stored."""
        if chance.random() < 0.4:
            seconds = chance.uniform(0.0, START[engine])
            deadline = time.monotonic() + seconds
            while command.running() and time.monotonic() < deadline:
                time.sleep(0.01)
            told = f"after {seconds:.2f} s"
        else:
            rows = min(len(self.stored()) + chance.randrange(1, 12), CELLS - 1)
            pause = chance.uniform(0.0, 0.03)
            deadline = time.monotonic() + 30
            while command.running() and len(self.stored()) < rows and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(pause)
            told = f"with {rows} rows"
        if not self.damaged:
            self.kept |= self.stored()
        return told

    def read(self, end: End) -> Rows:
        """Read the rows that `wordsway export` gave."""
        table = json.loads(end.out) if end.code == 0 else []
        return {(row["key"], row["part"]): _numbers(row) for row in table}

    def show(self) -> str:
        """Export a damaged run as it is: what is shown must be right, or refused."""
        end = self.look(Command("export", str(self.folder), "--json"), "export of a damaged run")
        if end.code != 0:
            return "export refused"
        shown = self.read(end)
        self.tally.compared += len(shown)
        self.tally.changed += sum(self.expected.get(key) != row for key, row in shown.items())
        if len(shown) < len(self.expected) and "not measured yet" not in end.err:
            self.problem("export left rows out and did not say so")
        return f"export showed {len(shown)} rows"

    def finish(self, engine: str) -> None:
        """Go on as a user would who reads the messages, until the run is complete; then compare its table."""
        again, more = False, []
        for _ in range(4):
            command = self.command(engine, again=again) if not more else Command(*more)
            end = self.look(command, "resume")
            if end.code == 0:
                break
            again, more = "give the command" in end.err or "give the same command" in end.err, []
            if end.code == 1 and "--failed" in end.err:
                more = ["resume", str(self.folder), "--engine", "inline", "--failed"]
            elif "move this file away" in end.err:
                os.replace(self.file, self.folder / "moved.away")
            elif not again:
                self.problem(f"resume does not say how to go on: {end.err[-300:]!r}")
                break
        self.compare()

    def compare(self) -> None:
        """Compare the table with the undisturbed one, row by row, and let `verify` look."""
        end = self.look(Command("export", str(self.folder), "--json"), "export")
        rows = self.read(end)
        self.tally.compared += len(self.expected)
        self.tally.lost += sum(key not in rows for key in self.expected)
        self.tally.changed += sum(key in rows and rows[key] != row for key, row in self.expected.items())
        self.tally.changed += sum(key not in self.expected for key in rows)
        end = self.look(Command("verify", str(self.folder)), "verify")
        if end.code != 0:
            self.problem(f"verify is not content with a run that was resumed: {end.out[-300:]!r}")


def _numbers(row: dict[str, Any]) -> str:
    """Write what is the same in every run of a cell, to the last bit."""
    numbers = {name: value for name, value in row.items() if name not in VARYING and not name.endswith("_seconds")}
    return json.dumps(numbers, sort_keys=True)


def undisturbed(study: Path, folder: Path) -> Rows:
    """Run the study without faults, and read its table."""
    for words in (["run", str(study), "--engine", "inline", "--out", str(folder)], ["export", str(folder), "--json"]):
        end = Command(*words).end()
        if end.code != 0:
            raise SystemExit(f"chaos: the undisturbed run fails: {end.err}")
    rows = {(row["key"], row["part"]): _numbers(row) for row in json.loads(end.out)}
    if len({key for key, _ in rows}) != CELLS:
        raise SystemExit(f"chaos: the undisturbed run has {len(rows)} rows")
    return rows


def fill(file: Path, room: int) -> None:
    """Fill a disk but for some bytes."""
    block = bytes(2**16)
    with file.open("wb", buffering=0) as filler:
        try:
            while filler.write(block):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        filler.truncate(max(0, filler.tell() - room))


def can_mount(folder: Path) -> bool:
    """Whether a small disk of its own can be had."""
    place = folder / "mount"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "none", str(place)]
    try:
        done = subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
    if done:
        subprocess.run(["umount", str(place)], check=True)
    return done
