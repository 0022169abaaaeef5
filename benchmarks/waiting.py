"""What people wait for: `python benchmarks/waiting.py [JOB ...]`, all of them unless given. Ends with a table.

commands    the commands that show what is there already: the slowest one, against 1.5 s
measure     `wordsway measure "I love her smile"`, and all of it but the measurement, against `python -c "import torch"`
runner      10,000 trivial cells on two processes, 100,000 planned
dask        the same small cells on two processes and on two Dask workers; 1,000 trivial ones on Dask
substitute  one word of a text of 25 tokens, all words of the vocabulary: CPU seconds

Ratios are of CPU time, medians of runs side by side: on a busy machine they say more than a clock does. What has a
limit in seconds by the clock needs an idle machine.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = "I love her smile"
LONG = (
    "The film was a quiet triumph, full of small moments that stay with you long after the lights have come up again "
    "in the hall"
)
SMALL = {"map": ["rf", "raf", "relu-raf"], "n": [20, 30], "d": 192, "trials": 8}
# Imports that `measure` needs, and nothing else of it: its start-up.
START = (
    "import wordsway.cli.main, wordsway.measures.answers, wordsway.measures.compare_draws, "
    "wordsway.models.encoding.encode as e; e.encode('I love her smile', 'minilm', cache=False)"
)
Line = tuple[str, float, float]  # a figure's name, its value, the most that it may be


def used(command: list[str], folder: Path, runs: int = 3) -> tuple[float, float]:
    """Medians of the CPU seconds and of the seconds that a command takes."""
    times = []
    for _ in range(runs):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append((cpu, ended - began))
    return statistics.median(cpu for cpu, _ in times), statistics.median(clock for _, clock in times)


def wordsway(*words: str) -> list[str]:
    return [sys.executable, "-m", "wordsway", *words]


def commands(folder: Path) -> list[Line]:
    used(wordsway("measure", TEXT, "-o", "result.json"), folder, 1)
    used(wordsway("run", "fig3", "--scale", "smoke", "--out", "run"), folder, 1)
    asked = (["doctor"], ["studies"], ["status", "run"], ["verify", "run"], ["report", "result.json"])
    lines = []
    for words in asked:
        cpu, clock = used(wordsway(*words), folder)
        lines += [(f"{words[0]}, seconds", clock, 1.5), (f"{words[0]}, CPU seconds", cpu, 1.5)]
    return lines


def measure(folder: Path) -> list[Line]:
    """Take the three one after the other, several times."""
    rows = []
    for _ in range(5):
        torch, _ = used([sys.executable, "-c", "import torch"], folder, 1)
        start, _ = used([sys.executable, "-c", START], folder, 1)
        whole, _ = used(wordsway("measure", TEXT), folder, 1)
        rows.append((start / torch, whole / torch))
    started, ended = (statistics.median(column) for column in zip(*rows, strict=True))
    return [("start-up / import torch", started, 1.7), ("measure / import torch", ended, 2.5)]


def trivial(count: int) -> Any:
    import wordsway as ws

    ws.allow_maps("studies")
    return ws.Study("nothing", {"measure": "studies:Nothing", "n": list(range(1, count // 10 + 1)), "trials": 10})


def runner(folder: Path) -> list[Line]:
    import wordsway as ws
    from wordsway.studies.run.runner import make_plan
    from wordsway.support.provenance import peak_bytes

    lines = []
    for count in (1000, 10_000):
        seconds, _ = timed(lambda count=count: ws.run(trivial(count), folder / f"cells{count}", workers=2))
        lines.append((count, seconds, peak_bytes() / 1e6))
    (_, _, few), (_, seconds, many) = lines
    planned, plan = timed(lambda: make_plan({}, [trivial(100_000)]))
    assert len(plan.pending) == 100_000
    print(f"runner: peak memory {few:.0f} MB of 1,000 cells, {many:.0f} MB of 10,000")
    return [("10,000 trivial cells, seconds", seconds, 40), ("100,000 planned, seconds", planned, 10)]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def dask(folder: Path) -> list[Line]:
    import wordsway as ws

    ratios = []
    for _ in range(3):
        tables = [ws.run(ws.Study("small", SMALL), engine=engine, workers=2) for engine in ("processes", "dask")]
        assert tables[0].numbers() == tables[1].numbers()
        times = [statistics.median(row["seconds"] for row in table.rows) for table in tables]
        ratios.append(times[1] / times[0])
    seconds, _ = timed(lambda: ws.run(trivial(1000), folder / "dask", engine="dask", workers=2))
    return [
        ("Dask / processes, time a cell", statistics.median(ratios), 1.3),
        ("1,000 trivial cells on Dask, seconds", seconds, 60),
    ]


def substitute(folder: Path) -> list[Line]:
    script = f"import wordsway as ws; ws.substitutions('minilm', {LONG!r}, 'quiet', search='exhaustive', max_tokens=25)"
    cpu, _ = used([sys.executable, "-W", "ignore", "-c", script], folder, 1)
    return [("substitute, all words, CPU seconds", cpu, 45)]


JOBS = {"commands": commands, "measure": measure, "runner": runner, "dask": dask, "substitute": substitute}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help=", ".join(JOBS))
    here = str(Path(__file__).parent)  # workers find the trivial cells there
    sys.path.append(here)
    os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), here])
    lines: list[Line] = []
    for name in parser.parse_args().jobs or list(JOBS):
        with tempfile.TemporaryDirectory() as folder:
            lines += JOBS[name](Path(folder))
    width = max(len(name) for name, _, _ in lines)
    print(f"{'job':{width}}  {'figure':>8}  {'required':>8}  met")
    for name, figure, most in lines:
        print(f"{name:{width}}  {figure:8.2f}  {f'<= {most:g}':>8}  {'yes' if figure <= most else 'no'}")


if __name__ == "__main__":
    main()
