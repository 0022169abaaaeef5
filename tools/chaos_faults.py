"""Faults for tools/chaos.py. Each takes a run, an engine and a source of chance, lets one thing happen, and tells what.

Those in DURING happen while a command works on the run, those in BETWEEN to its files while nobody does.
"""

import contextlib
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import psutil
from chaos_commands import Command
from chaos_runs import CELLS, Disturbed, fill

PAGE = 4096
Fault = Callable[[Disturbed, str, Random, bool], str]


def kill_driver(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    command = run.command(engine, again=chance.random() < 0.3, fresh=fresh)
    moment = run.wait(command, engine, chance)
    return _sent(run, command, signal.SIGKILL, "driver killed", moment)


def stop_driver(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    command = run.command(engine, again=chance.random() < 0.3, fresh=fresh)
    moment = run.wait(command, engine, chance)
    _wait_for_handler(command)
    return _sent(run, command, signal.SIGTERM, "SIGTERM", moment)


def interrupt(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    """Ctrl-C on a terminal: workers get the signal too."""
    command = run.command(engine, again=chance.random() < 0.3, fresh=fresh)
    moment = run.wait(command, engine, chance)
    _wait_for_handler(command)
    return _sent(run, command, signal.SIGINT, "Ctrl-C", moment)


def _wait_for_handler(command: Command) -> None:
    while command.running() and not command.hears_sigterm():
        time.sleep(0.005)


def _sent(run: Disturbed, command: Command, number: signal.Signals, told: str, moment: str) -> str:
    came = command.send(number, whole_group=number == signal.SIGINT)
    run.tally.missed += not came
    end = run.look(command, told)
    return f"{told if came else told + ' too late'} {moment}, code {end.code}"


def kill_worker(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    """Kill a worker while it starts, or when some rows are stored; the run goes on by itself, to its end or until its
    driver is killed."""
    command = run.command(engine, fresh=fresh)
    if starting := chance.random() < 0.5:
        while not command.workers() and command.running():
            time.sleep(0.005)
        seconds = chance.uniform(0.0, 2.5)
        time.sleep(seconds)
        moment = f"{seconds:.2f} s after the first came"
    else:
        moment = run.wait(command, engine, chance)
    workers = command.workers()
    came = False
    if workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            chance.choice(workers).kill()
            came = True
    run.tally.missed += not came
    end = run.look(command, "worker killed" + (" while it started" if starting else ""))
    return f"{'worker killed' if came else 'no worker left to kill'} {moment}, code {end.code}"


def full_disk(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    """Another program fills the disk, before the command or while it works, and frees it when it has ended."""
    filler, room = run.place / "filler", chance.choice([0, 0, 4, 16, 40, 64, 100, 200]) * 1024
    early = chance.random() < 0.4
    if early:
        fill(filler, room)
    command = run.command(engine, fresh=fresh)
    moment = "before it began"
    if not early:
        moment = run.wait(command, engine, chance)
        fill(filler, room)
    end = run.look(command, "disk full")
    filler.unlink()
    return f"disk full but for {room // 1024} kB {moment}, code {end.code}"


def small_files(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    # What a command says goes to a file too: below 2 kB its last lines would be lost.
    limit = chance.choice([2048, 2048, 2048, 4096, 8192, 20_000, 40_000, 45_000, 60_000, 100_000])
    end = run.look(run.command(engine, fresh=fresh, limit=limit), "small files")
    return f"no file may exceed {limit} bytes, code {end.code}"


def two_drivers(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    """A second driver comes, on the quick engine; or, now and then, when the first was just killed."""
    first = run.command(engine, fresh=fresh)
    moment = run.wait(first, engine, chance)
    second = run.command("inline", again=chance.random() < 0.5)
    if chance.random() < 0.3:
        first.send(signal.SIGKILL)
    codes = [run.look(first, "first of two drivers").code, run.look(second, "second of two drivers").code]
    if 0 not in codes and first.sent == 0:
        run.problem(f"of two drivers both gave up, with codes {codes}")
    return f"second driver {moment}{', first killed' if first.sent else ''}, codes {codes[0]} and {codes[1]}"


def flip_bits(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    _have_rows(run, chance)
    files = [run.file, *sorted((run.folder / "arrays").glob("*.safetensors"))]
    file = files[0] if chance.random() < 0.7 else chance.choice(files)
    return _flip(run, file, chance)


def flip_log(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    """Flip bits in the log of a driver that was killed, which has rows that are not yet in the file itself."""
    log = run.folder / "run.sqlite-wal"
    if not (log.exists() and log.stat().st_size):
        command = run.command("inline", again=True)
        _wait_for_rows(run, command, chance.randrange(2, CELLS - 2))
        command.send(signal.SIGKILL)
        run.look(command, "driver killed")
    if not (log.exists() and log.stat().st_size):
        return flip_bits(run, engine, chance, fresh)  # all was stored already
    return _flip(run, log, chance)


def _wait_for_rows(run: Disturbed, command: Command, rows: int) -> None:
    while command.running() and len(run.stored()) < rows:
        time.sleep(0.003)


def _flip(run: Disturbed, file: Path, chance: Random) -> str:
    content = bytearray(file.read_bytes())
    count = chance.choice([1, 1, 1, 8, 100])
    for _ in range(count):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return _damage(run, file, content, f"{count} bits of {_short(file)} flipped")


def overwrite_page(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    _have_rows(run, chance)
    content = bytearray(run.file.read_bytes())
    page = chance.randrange(len(content) // PAGE)
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE) if chance.random() < 0.3 else chance.randbytes(PAGE)
    return _damage(run, run.file, content, f"page {page + 1} of {len(content) // PAGE} overwritten")


def cut_off(run: Disturbed, engine: str, chance: Random, fresh: bool) -> str:
    _have_rows(run, chance)
    content = bytearray(run.file.read_bytes())
    size = chance.randrange(len(content))
    size -= size % PAGE if chance.random() < 0.5 else 0
    return _damage(run, run.file, content[:size], f"cut off at {size} of {len(content)} bytes")


def _have_rows(run: Disturbed, chance: Random) -> None:
    """See to it that there is something to damage."""
    if not (run.file.exists() and run.file.stat().st_size > PAGE and run.stored()):
        if run.folder.exists():
            shutil.rmtree(run.folder)
        shutil.copytree(run.whole, run.folder)
        run.kept = {}


def _damage(run: Disturbed, file: Path, content: bytearray, told: str) -> str:
    run.damaged = True
    file.write_bytes(bytes(content))
    return f"{told}, {run.show()}"


def _short(file: Path) -> str:
    return file.name if file.name.startswith("run") else "an array"


DURING: dict[str, Fault] = {
    "driver": kill_driver,
    "worker": kill_worker,
    "sigterm": stop_driver,
    "ctrl-c": interrupt,
    "disk": full_disk,
    "limit": small_files,
    "two": two_drivers,
}
BETWEEN: dict[str, Fault] = {"bits": flip_bits, "log": flip_log, "page": overwrite_page, "cut": cut_off}
