"""Commands for tools/chaos.py: `wordsway` in a process of its own, and whether a user would understand how it ended.

Starting Python and torch takes longer than a small run, so a process that has loaded them once forks a driver for every
command. A driver is a session of its own: killing it is as real as killing one that a shell started, and its workers
start as ever. A `fresh` command starts Python anew.
"""

import atexit
import contextlib
import os
import re
import resource
import runpy
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psutil

PATIENCE = 120.0  # seconds until a command counts as hanging
ORPHANS = 5.0  # seconds that workers may outlive their driver
HANGS = 999  # the code of a command that was ended because it hung

# All ends that a disturbed run may have, beside success: the code, and what one of its lines says.
KNOWN_ENDS = (
    (1, r"wordsway: .* failed; the others are kept\. Try again with: wordsway resume .* --failed"),
    (2, r"wordsway: another run is at work on .*; wait for it .* or stop it first"),
    (2, r"wordsway: cannot write to .*: .*; what was measured before is kept: free some space, then wordsway resume"),
    (2, r"wordsway: cannot write to .*: .*; nothing was measured yet: free some space, then give the same command"),
    (2, r"wordsway: No space left on device: .*; free some space, or name another place"),
    (2, r"wordsway: File too large: .*; files may not grow beyond a limit \(ulimit -f\); raise it"),
    (2, r"wordsway: the run in .* was stopped before its plan was stored.*begin again: give the command that began it"),
    (2, r"wordsway: the plan of the run in .* is damaged; give the command that began it again"),
    (2, r"wordsway: .* is damaged: .*; wordsway resume .* measures again what is lost"),
    (2, r"wordsway: .* is damaged or is no run, and cannot be read .* give the command that began the run again"),
    (2, r"wordsway: the run in .* is damaged, and somebody reads it; stop that, then try again"),
    (2, r"wordsway: .* is no run but an SQLite file of another program .*; choose another folder"),
    (2, r"wordsway: .* is not a run of this version .*; choose another folder"),
    (2, r"wordsway: worker processes were killed while they started, .* go on with fewer workers"),
    (2, r"wordsway: Dask workers of this machine cannot start .*; what was measured is kept"),
    (2, r"wordsway: the Dask scheduler is gone; what was measured is kept: resume when it is back"),
    (130, r"wordsway: stopped"),
)
NEVER_SAID = ("Traceback", "Exception ignored", "leaked")


@dataclass
class End:
    """How a command ended."""

    code: int
    out: str
    err: str

    def unexplained(self, sent: int = 0) -> str | None:
        """Say what a user would not understand about it; `sent` is the signal that it got."""
        said = self.err + self.out
        for word in NEVER_SAID:
            # After kill -9 nobody is left to clean up but Python's own tracker, which says so.
            if word in said and not (word == "leaked" and sent == signal.SIGKILL):
                return f"{word}: {said.strip()[-400:]!r}"
        if self.code == HANGS:
            return f"no end within {PATIENCE:.0f} s: {said[-300:]!r}"
        if self.code == 0 or (sent == signal.SIGKILL and self.code == -sent):
            return None
        if sent and self.code == -sent and "written to" in self.out:
            return None  # the signal came when all was done
        if any(self.code == code and re.search(text, self.err) for code, text in KNOWN_ENDS):
            return None
        return f"code {self.code}: {self.err.strip()[-400:]!r}"


class Command:
    """The command wordsway, running. No file that it writes may grow beyond `limit` bytes."""

    def __init__(self, *arguments: str, limit: int | None = None, fresh: bool = False) -> None:
        self._output, self._errors = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.sent, self._status = 0, None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(arguments, limit, fresh)

    def _become(self, arguments: Sequence[str], limit: int | None, fresh: bool) -> NoReturn:
        """Be the command, in the process that was forked."""
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(self._output.fileno(), 1)
        os.dup2(self._errors.fileno(), 2)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if fresh:
            os.execv(sys.executable, [sys.executable, "-m", "wordsway", *arguments])
        code = 0
        sys.argv = ["wordsway", *arguments]
        try:
            runpy.run_module("wordsway", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        # What Python does when it ends by itself; the harness's own `with` blocks are not for this process.
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def running(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is None

    def send(self, number: signal.Signals, whole_group: bool = False) -> bool:
        """Send a signal, to its workers too with `whole_group`; False where it has ended already."""
        if not self.running():
            return False
        self.sent = number
        os.killpg(self.pid, number) if whole_group else os.kill(self.pid, number)
        return True

    def hears_sigterm(self) -> bool:
        """Whether it has got as far as to treat SIGTERM; before that it ends as every program does."""
        try:
            caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{self.pid}/status").read_text())
        except OSError:
            return False
        return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)

    def workers(self) -> list[psutil.Process]:
        """List the processes that measure cells, or are about to."""
        workers = []
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "spawn_main" in " ".join(process.cmdline()):
                        workers.append(process)
        return workers

    def end(self) -> End:
        """Wait for its end. One that hangs is ended, and has a code of its own."""
        deadline, pause = time.monotonic() + PATIENCE, 0.002
        while self.running() and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(1.2 * pause, 0.05)
        code = self._status
        if code is None:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            code, self._status = HANGS, HANGS
        texts = []
        for file in (self._output, self._errors):
            file.seek(0)
            texts.append(file.read())
            file.close()
        return End(code, *texts)

    def left_behind(self) -> list[int]:
        """Wait for what the command started; list, and end, what outlives it for too long."""
        deadline = time.monotonic() + ORPHANS
        while (left := _session(self.pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


def _session(leader: int) -> list[int]:
    """List the processes of a session, without those that have ended."""
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                state, _, _, session = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    members.append(int(entry))
    return members


def warm_up() -> None:
    """Load what commands load. Only a process with one thread may fork."""
    import distributed  # noqa: F401
    import matplotlib.pyplot as plt
    import torch

    import wordsway.cli.main
    import wordsway.report.runs
    import wordsway.studies.reproduce
    import wordsway.studies.run.dask_engine  # noqa: F401

    plt.switch_backend("agg")
    torch.set_num_threads(1)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise SystemExit(f"chaos: {threads} threads after loading, so no driver can be forked")
