"""Carry out one cell, anywhere: on one thread, with its time and peak memory, its error if it fails."""

import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from wordsway import __version__
from wordsway.studies.cells.base import Cell, Outcome, Shelf
from wordsway.studies.cells.recipes import RESULT_VERSION, cell_of, revision_of
from wordsway.support.errors import InputError, TextWarning, one_line
from wordsway.support.progress import heard_within
from wordsway.support.provenance import machine, peak_bytes, reset_peak, versions
from wordsway.support.shares import tell_share

_shelf = Shelf()  # of this process: every worker is one


@dataclass(frozen=True)
class Report:
    """Outcome or error of a cell, with where and how it ran. `error` is None where it was measured."""

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
    reset_peak()
    with _one_thread():
        try:
            _check_same(recipe, revision, result_version)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TextWarning)  # what is cropped is in the recipe
                cell = cell_of(recipe)
                outcome = _with_known_columns(cell, cell.measure_with(_shelf))
        except Exception as problem:  # a cell that fails is a result; the run goes on without it
            kind = "" if isinstance(problem, InputError) else f"{type(problem).__name__}: "
            error, trace = kind + one_line(problem), traceback.format_exc()
    return Report(outcome, error, trace, started, time.perf_counter() - began, peak_bytes(), 1, machine(), versions())


def execute_at(place: int, recipe: dict[str, Any], revision: str, result_version: int) -> Report:
    """Measure a cell in a worker process, which tells its driver at a place how much of it is done."""
    with heard_within(partial(tell_share, place)):
        return execute(recipe, revision, result_version)


def _with_known_columns(cell: Cell, outcome: Outcome) -> Outcome:
    """Return an outcome, or raise an InputError where it has a column that no table would show."""
    unknown = {column for row in outcome.rows for column in row} - {*cell.numbers, *cell.names}
    if unknown:
        kind = type(cell).__name__
        raise InputError(f"{kind} gives a column {min(unknown)!r} that it does not list in its numbers or names")
    return outcome


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
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
