"""Run tests as other processors would: with three instruction sets, and with one and two threads.

    python tools/portable.py                                  quick tests, docs blocks and notebooks, in all six ways
    python tools/portable.py --sets sse --threads 1 --tests tests/search
    python tools/portable.py -k attention -x                  what it does not know goes to pytest

Every way is run, whatever became of those before it; the exit code is 1 if any failed.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETS = {
    "native": {},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "WORDSWAY_HALF": "0",
    },
    "sse": {
        "ATEN_CPU_CAPABILITY": "default",
        "DNNL_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "MKL_CBWR": "COMPATIBLE",  # MKL ignores the line above on processors of other makers than Intel
        "WORDSWAY_HALF": "0",
    },
}
VARIABLES = {variable for settings in SETS.values() for variable in settings}
CAPABILITY = {"avx2": "AVX2", "sse": "DEFAULT"}  # the names that torch has for them
QUICK = ["-m", "not slow"]
DOCS = ["tests/project/test_docs_run.py::test_block", "tests/project/test_notebooks.py"]
ASK = "import torch; print(torch.backends.cpu.get_cpu_capability())"


def environment(name: str, threads: int) -> dict[str, str]:
    """Make the environment of one way."""
    kept = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    return {**kept, **SETS[name], "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def run_way(name: str, threads: int, selections: list[list[str]], more: list[str]) -> bool:
    """Run all selections of tests in one way, and return whether they passed."""
    env = environment(name, threads)
    asked = subprocess.run([sys.executable, "-c", ASK], env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    capability = asked.stdout.strip()
    print(f"\n=== {name}, threads: {threads} (torch: {capability or 'cannot be loaded'})", flush=True)
    if asked.returncode or CAPABILITY.get(name, capability) != capability:
        print(f"torch does not use the instruction set {name} here", flush=True)
        return False
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", str(max(1, 2 // threads)), "--dist", "loadfile"]
    codes = [subprocess.run([*pytest, *selection, *more], env=env, cwd=ROOT).returncode for selection in selections]
    return not any(codes)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--tests", nargs="+", help="instead of the quick tests, the docs blocks and the notebooks")
    options, more = parser.parse_known_args()
    selections = [options.tests] if options.tests else [QUICK, DOCS]
    ways = [(name, threads) for name in options.sets for threads in options.threads]
    passed = {way: run_way(*way, selections, more) for way in ways}
    print("\n=== all ways")
    for (name, threads), good in passed.items():
        print(f"{'passed' if good else 'FAILED'}  {name}, threads: {threads}")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
