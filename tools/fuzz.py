"""Call every command and every public function with odd values, and say which calls end as none should. For Linux.

    python tools/fuzz.py --calls 3000 --seed 1     a number of calls
    python tools/fuzz.py --minutes 60 --seed 1     until the time is over
    python tools/fuzz.py --seed 1 --repeat 17      call number 17 once more, with all that it says
    python tools/fuzz.py --calls 100 --only flip   calls of one command or function

Commands are found in the application, functions and classes in `wordsway.__all__`. A call fails that raises anything
but an `InputError` (a command: but what typer makes of it), shows a traceback, ends with code 0 with nothing done,
takes over 60 s or over 2 GB, or leaves processes behind. The exit code is 1 if one did. What is called depends on the
seed and the number of the call alone.
"""

import argparse
import gc
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any


def main() -> int:
    given = _options()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when libraries are loaded; processes are forked, which threads do not survive
    os.environ["TQDM_DISABLE"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    folder = Path(tempfile.mkdtemp(prefix="wordsway-fuzz-"))
    os.environ["WORDSWAY_CACHE"] = str(folder / "cache")
    try:
        return _calls(given, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _calls(given: argparse.Namespace, folder: Path) -> int:
    from fuzz_process import one_call
    from fuzz_samples import Samples

    samples = Samples(folder)
    gc.freeze()  # what is there is not gone through again in every call
    print(f"ready: calls are forked from here, seed {given.seed}", flush=True)
    began, ends, failed, slowest, largest = time.monotonic(), Counter[str](), list[int](), 0.0, 0
    deadline = began + 60 * given.minutes
    number = given.first if given.repeat is None else given.repeat
    last = number + 1 if given.repeat is not None else number + given.calls
    while number < last and time.monotonic() < deadline:
        place = folder / f"call-{number}"
        end = one_call(number, given.seed, place, samples, given.only)
        problem = end.problem()
        ends["failed" if problem else end.how if end.how != "exit" else f"code {end.code}"] += 1
        slowest, largest = max(slowest, end.seconds), max(largest, end.memory)
        if problem:
            failed.append(number)
            print(f"{number:>5} FAILED {end.shown}\n      {problem}", flush=True)
        if given.repeat is not None or given.verbose:
            _tell(number, end)
        shutil.rmtree(place, ignore_errors=True)
        number += 1
    made = ", ".join(f"{count} {how}" for how, count in sorted(ends.items()))
    took, most = (time.monotonic() - began) / 60, largest / 1e9
    print(f"{took:.1f} minutes, seed {given.seed}: {made}; slowest {slowest:.1f} s, most memory {most:.2f} GB")
    if failed:
        again = f" --only {given.only}" if given.only else ""
        print(f"once more: python tools/fuzz.py --seed {given.seed}{again} --repeat {failed[0]}")
    print(f"{ends.total()} calls, {len(failed)} failures")
    return int(bool(failed))


def _tell(number: int, end: Any) -> None:
    print(
        f"{number:>5} {end.shown}\n      {end.how} {end.code}, {end.seconds:.1f} s, {end.memory / 1e9:.2f} GB: "
        f"{end.text[:300]!r} {end.out[-200:]!r} {end.err[-300:]!r}",
        flush=True,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10**9)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--only", metavar="NAME", help="a command, or a public name")
    parser.add_argument("--repeat", type=int, metavar="CALL", help="only the call of this number")
    parser.add_argument("--verbose", action="store_true", help="show every call")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
