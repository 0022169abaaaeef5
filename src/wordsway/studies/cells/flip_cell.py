"""The cell of Figures 4 and 5: train on labelled texts, see one more, move one of its words and flip its label."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wordsway.maps.map_names import base_name, check_name
from wordsway.studies.cells.base import PROCESS, WITH_MODEL, Outcome, Shelf
from wordsway.studies.cells.grid_hooks import SYNTHETIC, OfEncoder, OfMap, OfTexts, OneTextForAllLengths
from wordsway.studies.cells.text_cell import check_text_source
from wordsway.studies.panels.flip_panel import PICTURE
from wordsway.support.errors import InputError, RankWarning, SpanError
from wordsway.support.names import OBJECTIVES, TRAININGS
from wordsway.support.plain_checks import check_size

if TYPE_CHECKING:
    from wordsway.datasets.training_sets import Task
    from wordsway.learning.flip_result import Flip
    from wordsway.learning.generalization import Generalization

_OF_A_FLIP = ("gamma", "err", "bound", "alignment", "before", "moved", "after", "value", "evaluations")


@dataclass(frozen=True)
class FlipCell(OfMap, OfTexts, OfEncoder, OneTextForAllLengths):
    """One training of `map` on `train_size` texts, with a flip for every training, objective and (where the objective
    has one) penalty. Texts as in `TextCell`, with labels; a trial has texts and weights of its own, and larger
    training sets begin with smaller ones. All flips of a cell share one learner: on a map that remembers, later ones
    depend on earlier ones. With `sensitivity`, every row also has the word sensitivity of the text that is flipped, of
    the same token under the same weights."""

    numbers = (
        *("width", "moved_token", "y", "penalty", *_OF_A_FLIP, "length", "rank", "residual"),
        "lower",
        *("features_seconds", "gram_seconds", "solve_seconds", "update_seconds", "search_seconds"),
    )
    names = ("training", "objective")
    within = ("training", "objective", "penalty")
    first = "err"
    picture = PICTURE

    map: str
    n: int
    train_size: int
    d: int | None = None
    depth: int | None = None
    trainings: tuple[str, ...] = TRAININGS
    objectives: tuple[str, ...] = ("align", "error")
    penalties: tuple[float, ...] = (0.1,)
    token: int | str = "word"
    encoder: str = SYNTHETIC
    data: str | None = "imdb"
    layer: int = 0
    padding: str = "none"
    at_least: int | None = None
    shorter_than: int | None = None
    sensitivity: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_size(self.n, "n")
        check_size(self.train_size, "train_size", least=2)
        for name in ("d", "at_least", "shorter_than"):
            if getattr(self, name) is not None:
                check_size(getattr(self, name), name)
        for name in ("layer", "trial", "seed"):
            check_size(getattr(self, name), name, least=0)
        for name, known in (("trainings", TRAININGS), ("objectives", OBJECTIVES)):
            values = getattr(self, name)
            if not values:
                raise InputError(f"{name} is empty; name at least one of: {', '.join(known)}", argument=name)
            for value in values:
                if value not in known:
                    raise InputError(
                        f"{name} has {value!r}, which is not known; use: {', '.join(known)}", argument=name
                    )
        for penalty in self.penalties:
            if not 0 <= penalty < math.inf:
                raise InputError(f"a penalty must be a number of at least 0, got {penalty!r}", argument="penalties")
        if "penalized" in self.objectives and not self.penalties:
            raise InputError("penalties is empty, but the objective penalized needs at least one", argument="penalties")
        check_name(self.map, self.d or (384 if self.encoder == SYNTHETIC else None), depth=self.depth)
        check_text_source(self.padding, self.layer, self.token, self.n)

    def settle(self) -> "FlipCell":
        penalties = self.penalties if "penalized" in self.objectives else ()
        if self.encoder == SYNTHETIC:
            token = 0 if self.token == "word" else self.token
            texts: dict[str, Any] = {"d": self.d or 384, "data": None, "layer": 0, "padding": "none", "token": token}
            return replace(self, **texts, at_least=None, shorter_than=None, penalties=penalties)
        published = self.padding == "published"
        least, below = (None, None) if published else (self.at_least or self.n, self.shorter_than)
        return replace(self, at_least=least, shorter_than=below, penalties=penalties)

    def check_texts(self) -> None:
        if self.encoder != SYNTHETIC and self.data is not None:
            from wordsway.datasets.training_sets import choose_texts
            from wordsway.support.seeds import stream

            seed = stream(self.seed, "generalize", self.trial)
            longest = self.at_least or self.n
            choose_texts(self.data, self.train_size, longest, seed, self.encoder, self.shorter_than, self.padding)

    def questions(self) -> list[tuple[str, str, float | None]]:
        """(training, objective, penalty) of the flips."""
        return [
            (training, objective, penalty)
            for training in self.trainings
            for objective in self.objectives
            for penalty in (self.penalties if objective == "penalized" else (None,))
        ]

    def measure(self) -> Outcome:
        return self.measure_with(Shelf())

    def measure_with(self, shelf: Shelf) -> Outcome:
        from wordsway.learning.generalization import Generalization
        from wordsway.maps.named import named_map
        from wordsway.measures.sensitivity import word_sensitivity
        from wordsway.support.seeds import stream

        task = shelf.keep(TrialTexts).task(self)
        X, y = task.texts(self.train_size + 1, self.n, self.d)
        d = X.shape[2]
        weights = stream(self.seed, "generalize", d, self.n, self.trial, "weights")
        phi = named_map(self.map, self.n, d, weights, depth=self.depth, device=self.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankWarning)  # the rank and the residual are in the table
            learner = Generalization(phi, X[1:], y[1:], device=self.device)
        token = task.token if self.token == "word" else self.token
        assert isinstance(token, int)
        rows, case = [], learner.case(X[0], token)
        for training, objective, penalty in self.questions():
            question: dict[str, Any] = {"y": int(y[0]), "training": training, "objective": objective}
            try:
                flip = case.flip(penalty=0.0 if penalty is None else penalty, seed=self.seed, **question)
            except SpanError:
                flip = None  # the row says that it was tried
            rows.append(
                {
                    "width": d,
                    "lower": None,
                    "moved_token": token,
                    **question,
                    "penalty": penalty,
                    **_numbers(learner, flip),
                }
            )
        if self.sensitivity:
            options: dict[str, Any] = {"certificate": False, "random_draws": 0, "device": self.device}
            found = word_sensitivity(phi, X[0], token, seed=self.seed, **options).lower
            rows = [{**row, "lower": found} for row in rows]
        return Outcome(rows)

    def memory(self) -> float:
        from wordsway.maps.named import copies

        base = PROCESS if self.encoder == SYNTHETIC else WITH_MODEL
        texts = 8.0 * (self.train_size + 1) * self.n * (self.d or 768) * copies(self.map)
        return base + (13.0 if base_name(self.map) in ("rf", "drf") else 5.0) * texts + 24.0 * self.train_size**2

    def seconds(self) -> float:
        size, n, d = self.train_size, self.n, self.d or 768
        flips = len(self.questions()) * (0.3 if base_name(self.map) not in ("rf", "drf") else 1.8e-7 * n * d * d)
        gram = 8e-11 * size**2 * n * d
        features = 5e-10 * size**2 * n * d if base_name(self.map) in ("rf", "drf") else 8e-11 * size * n * d * (n + d)
        reading = 0.0 if self.encoder == SYNTHETIC else 0.004 * size
        return 0.3 + features + gram + flips + reading

    @property
    def label(self) -> str:
        return f"{self.map} n={self.n} N={self.train_size} trial {self.trial + 1}"


def _numbers(learner: "Generalization", flip: "Flip | None") -> dict[str, Any]:
    """Of a flip that is not defined, all are None."""
    found: dict[str, Any] = dict.fromkeys((*_OF_A_FLIP, "length", "update_seconds", "search_seconds"))
    if flip is not None:
        found |= {name: getattr(flip, name) for name in _OF_A_FLIP}
        found |= {"length": float(flip.delta.norm()) / flip.radius}
        found |= {"update_seconds": flip.training_seconds, "search_seconds": flip.seconds}
    times = {f"{part}_seconds": seconds for part, seconds in learner.seconds.items()}
    return {**found, "rank": learner.rank, "residual": learner.residual, **times}


class TrialTexts:
    """The texts of one trial, which all of its cells share. Those of the trial before are given up: two at once would
    take twice the memory."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._task: "Task | None" = None
        # The most texts and tokens that cells asked for so far: the next trial is read with as many at once.
        self._most = self._longest = 0

    def task(self, cell: FlipCell) -> "Task":
        """Return the texts of a cell's trial; they are read if they are others than the last ones, or too few."""
        from wordsway.datasets.training_sets import GaussianTask, RealTask
        from wordsway.support.seeds import stream

        key = (cell.seed, "generalize", cell.trial)
        if cell.encoder == SYNTHETIC:
            return GaussianTask(key)
        assert cell.data is not None
        source = (cell.data, cell.at_least, cell.encoder, cell.layer, cell.shorter_than, cell.padding, *key)
        longest = cell.at_least or cell.n  # padded texts are all alike: as many of their tokens as cells ask for
        enough = cell.train_size <= self._most and longest <= self._longest
        if self._key != source or self._task is None or not enough:
            self._task = None
            similar = self._key[:-1] == source[:-1]
            self._most = max(cell.train_size, self._most if similar else 0)
            self._longest = max(longest, self._longest if similar else 0)
            options = (cell.encoder, cell.layer, cell.shorter_than, cell.padding)
            self._task = RealTask.load(cell.data, self._most, self._longest, stream(*key), *options)
            self._key = source
        return self._task
