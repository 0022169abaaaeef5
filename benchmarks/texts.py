"""Many texts: how long a table takes on one process and on two, whether both give one table, and what a kill costs.

    python benchmarks/texts.py --file reviews.parquet --limit 200 --model sentiment

Prints one line for each number of processes and the speed of the last over the first. With --kill, a third run on one
process is killed (SIGKILL) after half of the texts and goes on; its table must be equal. Run it on an idle machine with
at least as many cores as processes: models are loaded by every process, which counts.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas


def command(arguments: argparse.Namespace, workers: int, out: Path) -> list[str]:
    """Make the command line of one run."""
    engine = ["--engine", "inline"] if workers == 1 else ["--engine", "processes", "--workers", str(workers)]
    texts = ["--file", arguments.file, "--limit", str(arguments.limit), "--text-column", arguments.text_column]
    model = ["--model", arguments.model, "--budget", arguments.budget]
    return [sys.executable, "-m", "wordsway", "measure", *texts, *model, *engine, "-o", str(out)]


def timed(arguments: argparse.Namespace, workers: int, out: Path) -> float:
    """Run once, and return the seconds."""
    one_thread = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    began = time.perf_counter()
    subprocess.run(command(arguments, workers, out), check=True, stdout=subprocess.DEVNULL, env=one_thread)
    return time.perf_counter() - began


def killed(arguments: argparse.Namespace, out: Path) -> int:
    """Start a run, kill it after half of the texts, and return how many it had kept."""
    from wordsway.studies.run.store import Store

    process = subprocess.Popen(command(arguments, 1, out), stdout=subprocess.DEVNULL)
    kept = 0
    while kept < arguments.limit // 2 and process.poll() is None:
        time.sleep(0.2)
        try:
            with Store.read(out.with_suffix(".run")) as store:
                kept = len(store.results())
        except (ValueError, OSError):
            continue  # not there yet
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return kept


def main() -> None:
    """Read the options, run, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", required=True)
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--budget", default="step")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds, tables = {}, {}
        for workers in (1, arguments.workers):
            out = Path(folder) / f"words-{workers}.parquet"
            seconds[workers] = timed(arguments, workers, out)
            tables[workers] = pandas.read_parquet(out)
            print(f"{workers} processes: {seconds[workers]:.1f} s, {len(tables[workers]):,} words", flush=True)
        pandas.testing.assert_frame_equal(tables[1], tables[arguments.workers])
        print(f"speed: {seconds[1] / seconds[arguments.workers]:.2f} x; the tables are equal")
        if arguments.kill:
            out = Path(folder) / "killed.parquet"
            kept = killed(arguments, out)
            rest = timed(arguments, 1, out)
            pandas.testing.assert_frame_equal(tables[1], pandas.read_parquet(out))
            print(f"killed with {kept} of {arguments.limit} texts kept; the rest took {rest:.1f} s; an equal table")


if __name__ == "__main__":
    main()
