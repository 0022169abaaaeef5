"""Word sensitivity against context length: cells, their summary, fitted exponents."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from wordsway.studies.estimates import fit_exponent, mean_sd
from wordsway.studies.run.runner import Tell, run_rows
from wordsway.studies.run.tables import write_rows
from wordsway.studies.study import Study
from wordsway.support.errors import InputError
from wordsway.support.files import write_text
from wordsway.support.progress import takes_progress
from wordsway.support.public_gate import public
from wordsway.support.registry import load_home
from wordsway.support.result import Result

_PICTURE = "wordsway.studies.figures.grid_figures:plot_curve"  # figures lie above curves
Row = Mapping[str, Any]  # of the study's table


@public
@dataclass(frozen=True)
class CurvePlan:
    """A grid to measure: every map at every d, n and trial, each trial with weights and a text of its own.

    Texts are synthetic or, with `data` (what `load_texts` takes), the first n tokens and d coordinates of texts that
    are long enough for the largest n. The token that moves is the first one that is not special unless given.
    """

    maps: tuple[str, ...]
    n: tuple[int, ...]
    d: tuple[int, ...]
    trials: int
    seed: int = 0
    depth: int | None = None
    token: int | None = None
    data: str | None = None
    encoder: str = "minilm"
    layer: int = 0

    def __post_init__(self) -> None:
        if not (self.maps and self.n and self.d):
            raise InputError("a curve needs at least one map, one n and one d")
        self.study()  # what makes no sense is an error now, not after an hour

    def study(self) -> Study:
        """Make the study with one panel that measures it."""
        grid: dict[str, Any] = {"map": list(self.maps), "n": list(self.n), "d": list(self.d), "seed": self.seed}
        grid |= {"trials": self.trials} | ({} if self.depth is None else {"depth": self.depth})
        if self.data is not None:
            grid |= {"encoder": self.encoder, "data": self.data, "layer": self.layer}
        return Study("curves", {**grid, "token": "word" if self.token is None else self.token})

    def cells(self) -> Iterator[tuple[str, int, int, int]]:
        for map in self.maps:
            for d in self.d:
                for n in self.n:
                    for trial in range(self.trials):
                        yield map, d, n, trial


@dataclass(frozen=True)
class Trial:
    """One measurement of a curve: the columns of its row that a curve keeps."""

    map: str
    d: int
    n: int
    trial: int
    lower: float
    upper: float | None
    random_mean: float
    evaluations: int
    seconds: float


@dataclass(frozen=True)
class Point:
    """The trials of one map at one d and n."""

    map: str
    d: int
    n: int
    trials: int
    mean: float
    sd: float
    upper: float | None
    random: float
    theory: float | None


@dataclass(frozen=True)
class Fit:
    """S ~ n^exponent by least squares on logarithms, with a 95% interval (None where there are too few points), and
    the same for S divided by the prediction, which is flat where the prediction has the right shape."""

    map: str
    d: int
    exponent: float | None
    low: float | None
    high: float | None
    against_theory: float | None


@dataclass(frozen=True, repr=False)
class Curve(Result):
    """A measured curve. Its table and its data frame have a row for each map, d and n (`points`)."""

    format: ClassVar[str] = "wordsway.curve/1"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("map", "d", "n"), "mean")

    plan: CurvePlan
    cells: tuple[Trial, ...]
    points: tuple[Point, ...]
    fits: tuple[Fit, ...]

    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say the fitted exponents in a line."""
        fits = [f"{fit.map} d={fit.d}: S ~ n^{fit.exponent:.2f}" for fit in self.fits if fit.exponent is not None]
        return f"{len(self.cells)} trials; {', '.join(fits) or 'too few lengths for exponents'}"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row for each map, d and n."""
        return [asdict(point) for point in self.points]

    def plot(self, ax: Any = None) -> Any:
        """Draw S against n. Returns the axes."""
        return load_home(_PICTURE)(self, ax)


@public
@takes_progress("cell")
def curve(
    plan: CurvePlan,
    out: str | os.PathLike[str] | None = None,
    progress: Tell | bool | None = None,
    engine: str = "inline",
    workers: int | None = None,
) -> Curve:
    """Measure a plan. With `out`, every cell is kept in that folder as soon as it is known, and cells that are there
    already are not measured again, so a run that was stopped goes on where it was. `progress` gets (done, all, next),
    or True to show it; `engine` is one of `run`."""
    rows = run_rows(plan.study(), out, progress, engine, workers)
    by_key = {(row["map"], row["d"], row["n"], row["trial"]): row for row in rows}
    ordered = [by_key[key] for key in plan.cells()]
    trials = tuple(Trial(**{f.name: row[f.name] for f in fields(Trial)}) for row in ordered)
    result = Curve(plan, trials, tuple(_points(ordered)), tuple(_fits(ordered)))
    if out is not None:
        write_rows(Path(out) / "cells.csv", result.cells)
        write_rows(Path(out) / "curve.csv", result.points)
        write_text(Path(out) / "fits.json", json.dumps([asdict(fit) for fit in result.fits], indent=1) + "\n")
    return result


def _groups(rows: Iterable[Row], *names: str) -> Iterator[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from groups.values()


def _points(rows: Sequence[Row]) -> Iterator[Point]:
    for group in _groups(rows, "map", "d", "n"):
        first, count = group[0], len(group)
        mean, sd = mean_sd([row["lower"] for row in group])
        uppers = [row["upper"] for row in group if row["upper"] is not None]
        upper = math.fsum(uppers) / count if len(uppers) == count else None
        average = math.fsum(row["random_mean"] for row in group) / count
        yield Point(first["map"], first["d"], first["n"], count, mean, sd, upper, average, first["predicted"])


def _fits(rows: Sequence[Row]) -> Iterator[Fit]:
    for group in _groups(rows, "map", "d"):
        lengths = [row["n"] for row in group]
        exponent, low, high = fit_exponent(lengths, [row["lower"] for row in group])
        ratio = None
        if all(row["predicted"] is not None for row in group):
            ratio = fit_exponent(lengths, [row["lower"] / row["predicted"] for row in group])[0]
        yield Fit(group[0]["map"], group[0]["d"], exponent, low, high, ratio)
