"""Learning experiments on a grid: Err against gamma for every map, n, training size and way of training."""

import math
import os
import statistics
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wordsway.errors import InputError, RankWarning, SpanError
from wordsway.generalization import TRAININGS, Flip, Generalization
from wordsway.maps.named import named_map
from wordsway.objectives import AIMS
from wordsway.runlog import RunLog, write_table
from wordsway.seeds import stream
from wordsway.tasks import GaussianTask, RealTask, Task
from wordsway.tokens import check_size, check_tokens

_UNDEFINED = (
    "the features of their text lie in the span of the training features, so that re-training has nothing to change "
    "(as many texts as features, N >= n d, or a training text with the same first n tokens)"
)
SMALL_GAMMA = 0.5  # points that hardly tell the two texts apart before training
Key = tuple[str, int | None, int, int, int]  # map, d, n, training size, trial


@dataclass(frozen=True)
class FlipPlan:
    """What to run: every map at every d, n, training size and trial; in each, a flip for every way of training and
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
        lists: dict[str, tuple[Any, ...]] = {
            "maps": self.maps,
            "n": self.n,
            "train_sizes": self.train_sizes,
            "trainings": self.trainings,
            "objectives": self.objectives,
            "penalties": self.penalties,
            "d": self.d,
        }
        for name, values in lists.items():
            if not isinstance(values, tuple):
                raise InputError(f"{name} must be a tuple, as ({values!r},), got {values!r}")
            if not values:
                raise InputError(f"{name} is empty; name at least one")
            if len(set(values)) < len(values):
                raise InputError(f"{name} names a value twice: {', '.join(map(str, values))}")
        for n in self.n:
            check_size(n, "n")
        for size in self.train_sizes:
            check_size(size, "train_sizes", least=2)
        for d in self.d:
            if d is not None:
                check_size(d, "d")
            elif len(self.d) > 1:
                raise InputError("d=None, which is all coordinates of the encoder, must be alone")
        check_size(self.trials, "trials")
        check_size(self.seed, "seed", least=0)
        for name, known in (("trainings", TRAININGS), ("objectives", AIMS)):
            for value in lists[name]:
                if value not in known:
                    raise InputError(f"{name} has {value!r}, which is not known; use: {', '.join(known)}")
        for penalty in self.penalties:
            if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty < math.inf:
                raise InputError(f"a penalty must be a number of at least 0, got {penalty!r}")
        for name in self.maps:  # an unknown map or a depth without meaning is an error now, not after an hour
            named_map(name, 1, 1, depth=self.depth if name == "drf" else None)
        if self.depth is not None and "drf" not in self.maps:
            raise InputError(f"depth={self.depth} is for drf, which is not among the maps")
        if self.token is not None:
            check_tokens([self.token], min(self.n))

    def cells(self) -> Iterator[Key]:
        for trial in range(self.trials):  # outermost, as all cells of a trial share its texts
            for map in self.maps:
                for d in self.d:
                    for n in self.n:
                        for size in self.train_sizes:
                            yield map, d, n, size, trial

    def questions(self) -> list[tuple[str, str, float | None]]:
        """(training, objective, penalty) of the flips of a cell."""
        return [
            (training, objective, penalty)
            for training in self.trainings
            for objective in self.objectives
            for penalty in (self.penalties if objective == "penalized" else (None,))
        ]


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


@dataclass(frozen=True)
class Flips:
    """A finished run. Flips by re-training that are not defined, `undefined` of them, are not among the points."""

    plan: FlipPlan
    points: tuple[FlipPoint, ...]
    groups: tuple[FlipGroup, ...]
    undefined: int = 0

    @property
    def note(self) -> str | None:
        """What a reader should know about flips that are missing."""
        return f"{self.undefined} flips are not defined: {_UNDEFINED}" if self.undefined else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "plan": asdict(self.plan),
            "points": [asdict(point) for point in self.points],
            "groups": [asdict(group) for group in self.groups],
            "undefined": self.undefined,
        }


def generalize(
    plan: FlipPlan,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    device: str = "cpu",
) -> Flips:
    """Run a plan. With `out`, the flips of a cell are written to out/points.csv as soon as they are known, and cells
    that are there already are not run again, so a run that was stopped goes on where it was. `progress` gets (done,
    all, next)."""
    log = RunLog(Path(out), plan, FlipPoint, "points.csv", "run") if out is not None else None
    wanted = list(plan.cells())
    known = _whole_cells(log, plan, set(wanted)) if log else {}
    tasks = _Tasks(plan)
    found: list[FlipPoint] = []
    for done, key in enumerate(wanted):
        map, _, n, size, trial = key
        if progress:
            progress(done, len(wanted), f"{map} n={n} N={size} trial {trial + 1}")
        points = known.get(key)
        if points is None:
            points = _run(plan, tasks.of(trial), key, device)
            if log:
                log.append(points)
        found += points
    if progress:
        progress(len(wanted), len(wanted), "")
    defined = [point for point in found if not math.isnan(point.err)]
    if not defined:
        raise InputError(f"no flip of this plan is defined: {_UNDEFINED}")
    result = Flips(plan, tuple(defined), tuple(summarize(defined)), len(found) - len(defined))
    if log:
        write_table(log.folder / "summary.csv", FlipGroup, result.groups)
    return result


def _whole_cells(log: RunLog[FlipPoint], plan: FlipPlan, wanted: Container[Key]) -> dict[Key, list[FlipPoint]]:
    """Cells that are there with all their flips. A cell that was cut short is run again, whole: on a map that
    remembers, later flips depend on earlier ones."""
    widths = {d: d for d in plan.d if d is not None}
    cells: dict[Key, list[FlipPoint]] = {}
    for point in log.read():
        key = (point.map, widths.get(point.d), point.n, point.train_size, point.trial)
        cells.setdefault(key, []).append(point)
    asked = plan.questions()
    whole = {
        key: points
        for key, points in cells.items()
        if [(p.training, p.objective, p.penalty) for p in points] == asked and key in wanted
    }
    if len(whole) < len(cells):
        log.replace([point for points in whole.values() for point in points])
    return whole


class _Tasks:
    """The texts of a trial; only those of the last one are kept."""

    def __init__(self, plan: FlipPlan) -> None:
        self.plan = plan
        self._last: tuple[int, Task] | None = None

    def of(self, trial: int) -> Task:
        plan = self.plan
        if self._last is None or self._last[0] != trial:
            self._last = None  # two at once would take twice the memory
            key = (plan.seed, "generalize", trial)
            task = GaussianTask(key) if plan.data is None else self._load(plan.data, stream(*key))
            self._last = (trial, task)
        return self._last[1]

    def _load(self, data: str, seed: int) -> Task:
        plan = self.plan
        sizes = max(plan.train_sizes), max(plan.n)
        return RealTask.load(data, *sizes, seed, plan.encoder, plan.layer, plan.shorter_than)


def _run(plan: FlipPlan, task: Task, key: Key, device: str) -> list[FlipPoint]:
    map, width, n, size, trial = key
    X, y = task.texts(size + 1, n, width)
    d = X.shape[2]
    weights = stream(plan.seed, "generalize", d, n, trial, "weights")
    phi = named_map(map, n, d, weights, depth=plan.depth if map == "drf" else None, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # the rank and the residual are in the table
        learner = Generalization(phi, X[1:], y[1:], device=device)
    token = task.token if plan.token is None else plan.token
    cell = {"map": map, "d": d, "n": n, "train_size": size, "trial": trial}
    points = []
    for training, objective, penalty in plan.questions():
        question: dict[str, Any] = {"y": int(y[0]), "token": token, "training": training, "objective": objective}
        try:
            flip = learner.flip(X[0], penalty=0.0 if penalty is None else penalty, seed=plan.seed, **question)
        except SpanError:
            flip = None
        points.append(_point({**cell, **question, "penalty": penalty}, learner, flip))
    return points


_OF_A_FLIP = ("gamma", "err", "bound", "alignment", "before", "moved", "after", "value", "evaluations")


def _point(known: dict[str, Any], learner: Generalization, flip: Flip | None) -> FlipPoint:
    """A row of the table. Where the flip is not defined its numbers are NaN: the table says that it was tried."""
    known = {**known, "rank": learner.rank, "residual": learner.residual, "evaluations": 0}
    known |= {f"{part}_seconds": seconds for part, seconds in learner.seconds.items()}
    if flip is not None:
        known |= {name: getattr(flip, name) for name in _OF_A_FLIP}
        known |= {"length": float(flip.delta.norm()) / flip.radius}
        known |= {"update_seconds": flip.training_seconds, "search_seconds": flip.seconds}
    return FlipPoint(**{field.name: known.get(field.name, math.nan) for field in fields(FlipPoint)})


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
