"""Carry out one cell, anywhere: on one thread, with its time and peak memory, its error if it fails."""

import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from wordsway import __version__
from wordsway.cells.base import Outcome
from wordsway.cells.recipes import RESULT_VERSION, cell_of, revision_of
from wordsway.errors import InputError, TextWarning, one_line


@dataclass(frozen=True)
class Report:
    """What became of a cell, with where and how it ran. `error` is None where it was measured."""

    outcome: Outcome | None
    error: str | None
    trace: str | None
    started: str
    seconds: float
    peak_bytes: int
    threads: int
    machine: str
    versions: dict[str, str]


def execute(recipe: dict[str, Any], revision: str, result_version: int) -> Report:
    """Measure a cell. Every error becomes part of the report: one cell that fails must not stop the others."""
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="milliseconds")
    outcome = error = trace = None
    _reset_peak()
    with _one_thread():
        try:
            _check_same(recipe, revision, result_version)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TextWarning)  # what is cropped is in the recipe
                outcome = cell_of(recipe).measure()
        except Exception as problem:
            kind = "" if isinstance(problem, InputError) else f"{type(problem).__name__}: "
            error, trace = kind + one_line(problem), traceback.format_exc()
    return Report(outcome, error, trace, started, time.perf_counter() - began, _peak(), 1, machine(), versions())


def lost(error: str) -> Report:
    """The report of a cell whose process is gone."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Report(None, error, None, now, 0.0, 0, 1, machine(), versions())


def _check_same(recipe: dict[str, Any], revision: str, result_version: int) -> None:
    """A worker elsewhere must have the code and the models that the plan was made with."""
    if result_version != RESULT_VERSION:
        raise InputError(
            f"this worker has wordsway {__version__} with results of version {RESULT_VERSION}, but the run is of "
            f"version {result_version}; install the same wordsway everywhere"
        )
    found = revision_of(cell_of(recipe))
    if found != revision:
        raise InputError(f"this worker has {found or 'no model'}, but the run was planned with {revision}; "
                         "give all workers the same files, by the same path")  # fmt: skip


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums of several threads depend on their number: on one, a cell gives the same bits whatever the engine is."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _reset_peak() -> None:
    """Begin anew with the process's peak memory, where the system lets us."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def _peak() -> int:
    """Peak resident memory since the last reset or, where there is none, since the process began."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # not on Windows
        import psutil

        return int(psutil.Process().memory_info().rss)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@lru_cache(maxsize=1)
def machine() -> str:
    return f"{platform.node()} {platform.system()} {platform.machine()} {_processor()} {os.cpu_count()} cores"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "wordsway": __version__}
    for name in ("torch", "numpy", "scipy", "transformers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
