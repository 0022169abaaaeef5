"""Learning experiments on a grid: Err against gamma for every map, n, training size and way of training."""

import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from wordsway.studies.run.runner import Tell, run_rows
from wordsway.studies.run.tables import write_rows
from wordsway.studies.study import Study
from wordsway.support.errors import InputError
from wordsway.support.names import TRAININGS
from wordsway.support.progress import takes_progress
from wordsway.support.public_gate import public
from wordsway.support.registry import load_home
from wordsway.support.result import Result

_UNDEFINED = (
    "the features of their text lie in the span of the training features, so that re-training has nothing to change "
    "(as many texts as features, N >= n d, or a training text with the same first n tokens)"
)
_PICTURE = "wordsway.studies.figures.grid_figures:plot_all_flips"  # figures lie above flips
SMALL_GAMMA = 0.5  # points that hardly tell the two texts apart before training
Key = tuple[str, int | None, int, int, int]  # map, d, n, training size, trial


@public
@dataclass(frozen=True)
class FlipPlan:
    """A grid to run: every map at every d, n, training size and trial; in each, a flip for every way of training and
    objective, with every penalty where the objective has one.

    A trial has weights and texts of its own; larger training sets begin with smaller ones. Texts are Gaussian with a
    linear rule for their labels or, with `data` (what `load_texts` takes), the first n tokens of real ones that are
    long enough for the largest n (beyond layer 0 their states have seen that much of the text). d is None for all
    coordinates of the encoder, or 384 of Gaussian texts. The token that moves is the first one of the text that is not
    special unless given.
    """

    maps: tuple[str, ...]
    n: tuple[int, ...]
    train_sizes: tuple[int, ...]
    trainings: tuple[str, ...] = TRAININGS
    objectives: tuple[str, ...] = ("align", "error")
    penalties: tuple[float, ...] = (0.1,)
    trials: int = 10
    d: tuple[int | None, ...] = (None,)
    seed: int = 0
    depth: int | None = None
    token: int | None = None
    data: str | None = None
    encoder: str = "minilm"
    layer: int = 0
    shorter_than: int | None = None

    def __post_init__(self) -> None:
        for name in ("maps", "n", "train_sizes", "trainings", "objectives", "penalties", "d"):
            values = getattr(self, name)
            if not isinstance(values, tuple):
                raise InputError(f"{name} must be a tuple, as ({values!r},), got {values!r}")
            if not values:
                raise InputError(f"{name} is empty; name at least one")
        if None in self.d and len(self.d) > 1:
            raise InputError("d=None, which is all coordinates of the encoder, must be alone")
        self.study()  # what makes no sense is an error now, not after an hour

    def study(self, device: str = "cpu") -> Study:
        """Make the study with one panel that runs it."""
        lists: dict[str, Any] = {"map": self.maps, "n": self.n, "train_size": self.train_sizes}
        lists |= {} if self.d == (None,) else {"d": self.d}
        asked = {"trainings": self.trainings, "objectives": self.objectives, "penalties": self.penalties}
        single: dict[str, Any] = {"trials": self.trials, "seed": self.seed, "device": device, "at_least": max(self.n)}
        single |= {} if self.depth is None else {"depth": self.depth}
        if self.data is not None:
            single |= {"encoder": self.encoder, "data": self.data, "layer": self.layer}
            single |= {} if self.shorter_than is None else {"shorter_than": self.shorter_than}
        grid = {name: list(values) for name, values in {**lists, **asked}.items()}
        token = "word" if self.token is None else self.token
        return Study("generalize", {"measure": "flips", **grid, **single, "token": token})

    def cells(self) -> Iterator[Key]:
        for trial in range(self.trials):  # outermost, as all cells of a trial share its texts
            for map in self.maps:
                for d in self.d:
                    for n in self.n:
                        for size in self.train_sizes:
                            yield map, d, n, size, trial


@dataclass(frozen=True)
class FlipPoint:
    """One flip: a point of the scatter. `length` is |delta| in units of the radius; `rank` and `residual` belong to the
    training, and so do the seconds, except those of the update by the pair and of the search."""

    map: str
    d: int
    n: int
    train_size: int
    trial: int
    training: str
    objective: str
    penalty: float | None
    gamma: float
    err: float
    bound: float
    alignment: float
    before: float
    moved: float
    after: float
    y: int
    token: int
    length: float
    value: float
    rank: int
    residual: float
    evaluations: int
    features_seconds: float
    gram_seconds: float
    solve_seconds: float
    update_seconds: float
    search_seconds: float


@dataclass(frozen=True)
class FlipGroup:
    """The trials of one setting. `close` counts points with gamma below 0.5, `below` those of them that lie under half
    the bound, (2 - gamma)^2 / 2; `shortfall` is the largest of 2 - gamma - sqrt(err), or 0."""

    map: str
    d: int
    n: int
    train_size: int
    training: str
    objective: str
    penalty: float | None
    trials: int
    gamma: float
    err: float
    alignment: float
    close: int
    below: int
    shortfall: float


@dataclass(frozen=True, repr=False)
class Flips(Result):
    """A finished run. Flips by re-training that are not defined, `undefined` of them, are not among the points. Its
    table and its data frame have a row a point."""

    format: ClassVar[str] = "wordsway.flips/1"

    plan: FlipPlan
    points: tuple[FlipPoint, ...]
    groups: tuple[FlipGroup, ...]
    undefined: int = 0
    made: dict[str, Any] | None = None

    @property
    def note(self) -> str | None:
        """Tell a reader about flips that are missing."""
        return f"{self.undefined} flips are not defined: {_UNDEFINED}" if self.undefined else None

    def summary(self) -> str:
        """Say how many flips there are, and how many follow the label."""
        below = sum(point.err < point.bound / 2 for point in self.points)
        return f"{len(self.points)} flips, {below} with an error under half the bound, {self.undefined} not defined"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a flip."""
        return [asdict(point) for point in self.points]

    def plot(self, ax: Any = None) -> Any:
        """Draw Err against gamma, all maps on one pair of axes. Returns the axes."""
        return load_home(_PICTURE)(self, ax)


@public
@takes_progress("cell")
def generalize(
    plan: FlipPlan,
    out: str | os.PathLike[str] | None = None,
    progress: Tell | bool | None = None,
    device: str = "cpu",
    engine: str = "inline",
    workers: int | None = None,
) -> Flips:
    """Run a plan. With `out`, the flips of a cell are kept in that folder as soon as they are known, and cells that are
    there already are not run again, so a run that was stopped goes on where it was. `progress` gets (done, all, next),
    or True to show it; `engine` is one of `run`."""
    rows = run_rows(plan.study(device), out, progress, engine, workers)
    by_cell: dict[Key, list[FlipPoint]] = {}
    for row in rows:
        by_cell.setdefault((row["map"], row["d"], row["n"], row["train_size"], row["trial"]), []).append(_point(row))
    width = 384 if plan.data is None else None  # where the plan leaves d open
    found = [p for map, d, n, size, trial in plan.cells() for p in by_cell[map, d or width, n, size, trial]]
    defined = [point for point in found if not math.isnan(point.err)]
    if not defined:
        raise InputError(f"no flip of this plan is defined: {_UNDEFINED}")
    result = Flips(plan, tuple(defined), tuple(summarize(defined)), len(found) - len(defined))
    if out is not None:
        write_rows(Path(out) / "points.csv", found)
        write_rows(Path(out) / "summary.csv", result.groups)
    return result


def _point(row: Mapping[str, Any]) -> FlipPoint:
    """Make a point of a row. Where a flip is not defined its numbers are NaN: the table says that it was tried."""
    known: dict[str, Any] = {**row, "d": row["width"], "token": row["moved_token"]}
    known = {k: math.nan if v is None and k != "penalty" else v for k, v in known.items()}
    known["evaluations"] = row["evaluations"] or 0
    return FlipPoint(**{field.name: known[field.name] for field in fields(FlipPoint)})


def summarize(points: Sequence[FlipPoint]) -> Iterator[FlipGroup]:
    """One line for all trials of a setting, in the order of their first points."""
    groups: dict[tuple[Any, ...], list[FlipPoint]] = {}
    for p in points:
        groups.setdefault((p.map, p.d, p.n, p.train_size, p.training, p.objective, p.penalty), []).append(p)
    for key, group in groups.items():
        close = [p for p in group if p.gamma < SMALL_GAMMA]
        yield FlipGroup(
            *key,
            trials=len(group),
            gamma=statistics.median(p.gamma for p in group),
            err=statistics.median(p.err for p in group),
            alignment=statistics.median(p.alignment for p in group),
            close=len(close),
            below=sum(p.err < p.bound / 2 for p in close),
            shortfall=max(max(0.0, 2 - p.gamma - math.sqrt(p.err)) for p in group),
        )
