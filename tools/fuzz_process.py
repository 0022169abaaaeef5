"""One call of tools/fuzz.py in a process of its own, and whether it ended as a call may end.

The process is forked from one that has loaded everything, since loading takes longer than most calls. It is a session
of its own, with a limit of memory; when it takes too long it is ended, with all that it started.
"""

import contextlib
import json
import os
import random
import re
import resource
import runpy
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import psutil
from fuzz_calls import draw
from fuzz_files import Place
from fuzz_samples import Samples

SECONDS = 60.0  # of processor time; other programs may hold a call up for twice as long
MEMORY = 2 * 10**9  # bytes
ALLOWED = 3 * 10**9  # bytes of memory that is asked for, used or not, beyond what was there before the call
LONGEST_LINE = 4000  # characters of an error that is still one clear line
LONGEST_READ = 1_000_000  # characters of what a call said
LINGERING = 5.0  # seconds that processes may outlive the call that started them
# Errors that nobody meant for a user, also where a failed cell or a note tells of them.
RAW = re.compile(
    r"\b(Type|Value|Runtime|Attribute|Key|Index|Overflow|ZeroDivision|Assertion|Recursion|Memory|Import|"
    r"ModuleNotFound|NotImplemented|UnboundLocal|Name|UnicodeEncode|UnicodeDecode)Error\b"
)


@dataclass
class End:
    """How a call ended."""

    shown: str = "?"
    how: str = "killed"  # or "exit" of a command, "returned", "refused", "raised"
    code: int = 0
    text: str = ""  # of an exception, or what was returned
    out: str = ""
    err: str = ""
    wrote: bool = False  # whether it wrote a file
    gives: bool = False
    seconds: float = 0.0
    memory: int = 0
    left: int = 0  # processes that outlived it
    too_long: bool = False

    def problem(self) -> str | None:
        """Say in what way the call failed."""
        if self.too_long:
            return f"no end within {SECONDS:.0f} s ({self.err[-200:]!r})"
        if self.memory > MEMORY:
            return f"{self.memory / 1e9:.1f} GB of memory"
        if self.how == "killed":
            return f"its process was ended by signal {self.code}: {self.err[-500:]!r}"
        if self.how == "raised":
            return self.text
        if self.left:
            return f"{self.left} processes outlived it"
        return self._of_command() if self.how == "exit" else self._of_function()

    def _of_command(self) -> str | None:
        said = self.out + self.err
        if "Traceback" in said or "Exception ignored" in said:
            return f"a traceback: {said[-700:]!r}"
        # What other libraries say about a damaged model is part of a sentence of ours.
        if match := RAW.search("\n".join(line for line in self.err.splitlines() if ": cannot " not in line)):
            return f"a raw error ({match[0]}): {self.err[-500:]!r}"
        if self.code == 0 and not self.out.strip() and not self.wrote:
            return f"code 0, and nothing was done: {self.err[-300:]!r}"
        if self.code not in (0, 1, 2, 130):
            return f"code {self.code}: {self.err[-300:]!r}"
        if self.code != 0 and not (said + self.text).strip():
            return f"code {self.code}, and nothing was said"
        return None

    def _of_function(self) -> str | None:
        if self.how == "returned" and self.gives and self.text == "None":
            return "returned nothing"
        if self.how == "refused" and not 0 < len(self.text.strip()) <= LONGEST_LINE:
            return f"an InputError of {len(self.text.strip())} characters: {self.text[:200]!r}"
        return None


def one_call(number: int, seed: int, folder: Path, samples: Samples, only: str | None) -> End:
    """Draw the call of a number and make it, in a process of its own."""
    folder.mkdir()
    began = time.monotonic()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            _be_the_call(number, seed, folder, samples, only)
        except BaseException:  # of the harness: of a call they are caught where it is made
            (folder / "end.json").write_text(json.dumps({"how": "raised", "text": f"in the harness: {_last_lines()}"}))
        finally:
            os._exit(99)
    status, usage, too_long = _wait(pid, folder, began)
    end = _read(folder)
    end.too_long = too_long
    if end.how == "killed":
        end.code = -os.waitstatus_to_exitcode(status)
    end.seconds, end.memory = time.monotonic() - began, usage.ru_maxrss * 1024
    end.left = 0 if too_long else _left_behind(pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return end


def _wait(pid: int, folder: Path, began: float) -> tuple[int, Any, bool]:
    """Wait for the end of a process, and bring it about when it takes too long; a server is asked to stop."""
    pause, asked = 0.002, False
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return status, usage, False
        lasted = time.monotonic() - began
        if lasted > 2 * SECONDS or (lasted > SECONDS and _processor_time(pid) > SECONDS):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            return status, usage, True
        if not asked and lasted > 1 and _serves(folder):
            os.kill(pid, signal.SIGINT)
            asked = True
        time.sleep(pause)
        pause = min(0.1, pause * 1.3)


def _serves(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return b"http://127.0.0.1" in (folder / "stdout").read_bytes() + (folder / "stderr").read_bytes()
    return False


def _processor_time(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system + times.children_user + times.children_system


def _left_behind(group: int) -> int:
    """Count processes of a call that go on after its end."""
    deadline = time.monotonic() + LINGERING
    while True:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return 0
        alive = [each for each in psutil.process_iter(["status"]) if _of_group(each, group)]
        if not alive or time.monotonic() > deadline:
            return len(alive)
        time.sleep(0.1)


def _of_group(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.Error):
        return False


def _read(folder: Path) -> End:
    def content(name: str) -> str:
        with contextlib.suppress(OSError):
            return (folder / name).read_bytes()[-LONGEST_READ:].decode("utf-8", "replace")
        return ""

    end = End()
    for name in ("drawn.json", "end.json"):
        with contextlib.suppress(ValueError):
            for key, value in json.loads(content(name) or "{}").items():
                setattr(end, key, value)
    end.out, end.err = content("stdout"), content("stderr")
    return end


def _be_the_call(number: int, seed: int, folder: Path, samples: Samples, only: str | None) -> NoReturn:
    """Draw the call and make it, in the process that was forked."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    work = folder / "work"
    work.mkdir()
    os.chdir(work)
    os.environ["WORDSWAY_CACHE"] = str(folder / "cache")
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    place = Place(work, random.Random(f"{seed}/{number}"), samples)
    call = draw(place, only)
    (folder / "drawn.json").write_text(json.dumps({"shown": call.shown, "gives": call.gives}))
    (folder / "stdin").write_bytes(call.stdin)
    os.dup2(os.open(folder / "stdin", os.O_RDONLY), 0)
    before = _files(work)
    used = psutil.Process().memory_info().data
    resource.setrlimit(resource.RLIMIT_DATA, (used + ALLOWED, used + ALLOWED))
    end = _command(call.words) if call.make is None else _function(call.make)
    end.wrote = _files(work) != before
    told = {key: value for key, value in asdict(end).items() if key in ("how", "code", "text", "wrote")}
    (folder / "end.json").write_text(json.dumps(told))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _files(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*")}


def _command(words: tuple[str, ...]) -> End:
    from wordsway import InputError

    sys.argv = ["wordsway", *words]
    try:
        runpy.run_module("wordsway", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return End(how="exit", code=end.code if isinstance(end.code, int) else int(end.code is not None))
    except BaseException as error:
        if "--debug" in words and isinstance(error, InputError | OSError):  # its traceback is what was asked for
            return End(how="exit", code=2, text=str(error))
        return End(how="raised", text=_last_lines())
    return End(how="exit")


def _function(make: Any) -> End:
    from wordsway import InputError

    try:
        returned = make()
    except InputError as error:
        return End(how="refused", text=str(error)[: 2 * LONGEST_LINE])
    except BaseException:
        return End(how="raised", text=_last_lines())
    return End(how="returned", text="None" if returned is None else type(returned).__name__)


def _last_lines() -> str:
    """Show the end of a traceback on one line: where it was raised, and what."""
    text = traceback.format_exc(limit=-4).strip()
    return (
        " | ".join(" ".join(line.split()) for line in text.splitlines()[1:])[-1500:].encode("utf-8", "replace").decode()
    )
