"""One text whose one token moves, and the flips that are asked about it. The notation is that of `generalization`."""

import math
import time
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.learning.flip_objectives import FlipObjective
from wordsway.learning.flip_result import Flip
from wordsway.learning.readout import Readout, check_label
from wordsway.maps.base import Prepared, View, moved
from wordsway.measures.checked import Check, Way
from wordsway.measures.words import radii_of
from wordsway.search.ascent import maximize
from wordsway.search.polish import polish
from wordsway.search.regions import Ball
from wordsway.support.errors import InputError, SpanError, TooLargeError
from wordsway.support.memory import fits
from wordsway.support.names import OBJECTIVES, TRAININGS, Aim, Training
from wordsway.support.plain_checks import check_size

_NEAR_ZERO = 1e-3  # from where a descent goes on to zero by itself
_POLISH, _LAST_DIGITS = 40, 10  # steps of that descent, in the search's precision and then in float64


class FlipCase:
    """A prepared text with a token that may move, beside a trained readout: what all questions about it share.
    `Generalization.case` makes one; `seconds` is what that took."""

    def __init__(
        self, prepared: Prepared, readout: Readout, token: int, dtype: torch.dtype, own_norms: bool = False
    ) -> None:
        began = time.perf_counter()
        self.prepared, self.readout, self.token, self.own_norms = prepared, readout, token, own_norms
        self.base = prepared.features().to(readout.features)  # phi(X)
        if not float(self.base.norm()) > 0:
            raise InputError("phi(X) is zero, so training on X is not defined")
        self.before = float(self.base @ readout.theta)
        self.view = prepared.view([token], dtype=dtype)
        self.view.settle()
        self._targets: dict[str, Tensor] = {}  # by training
        self.seconds = time.perf_counter() - began

    def target(self, training: Training | str) -> Float[Tensor, " k"]:
        """Return the direction in which training on this text moves theta."""
        if training not in self._targets:
            self._targets[training] = find_target(self.readout, self.base, training)
        return self._targets[training]

    def flip(
        self,
        y: Any,
        *,
        training: Training | str = "finetune",
        objective: Aim | str = "align",
        penalty: float = 0.1,
        seed: int = 0,
        radius: float | None = None,
    ) -> Flip:
        """Train on (X, y), then look for the move that lets the model follow the flip; see `Generalization.flip`."""
        training = check_choice(training, TRAININGS, "training")
        aim = check_choice(objective, OBJECTIVES, "objective")
        if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty < math.inf:
            raise InputError(f"penalty must be a number of at least 0, got {penalty!r}", argument="penalty")
        y, seed, text = check_label(y), check_size(seed, "seed", least=0), self.prepared.X
        reach = radii_of(radius, text, self.own_norms)[self.token]
        began = time.perf_counter()
        target, trained = self.target(training), time.perf_counter()
        question = FlipObjective(self.before, y, aim, float(penalty))
        targets = torch.stack([target / target.square().sum(), self.readout.theta])

        delta, evaluations = self._search(question, targets, Ball(reach, 1, text.shape[1]), seed)
        change, check = self._change(delta)
        inner = (targets @ change).to("cpu", torch.float64)
        if question.squares(inner) > question.squares(torch.zeros_like(inner)):  # not moving at all is better
            delta, inner = torch.zeros_like(delta), torch.zeros_like(inner)
        alignment, told, after = (float(value) for value in question.outcome(inner))
        return Flip(
            gamma=abs(told),
            err=(after + y) ** 2,
            alignment=alignment,
            bound=max(0.0, 2 - abs(told)) ** 2,
            before=self.before,
            moved=self.before + told,
            after=after,
            y=y,
            delta=delta[0],
            token=self.token,
            radius=reach,
            training=training,
            objective=aim,
            penalty=float(penalty) if aim == "penalized" else None,
            value=float(question.squares(inner)),
            evaluations=evaluations,
            checked=str(check),
            seed=seed,
            training_seconds=trained - began,
            seconds=time.perf_counter() - trained,
        )

    def _search(
        self, question: FlipObjective, targets: Float[Tensor, "2 k"], region: Ball, seed: int
    ) -> tuple[Float[Tensor, "1 d"], int]:
        """Search for the best move: an ascent, then a descent to the last digits. Returns it, and what it took."""
        ascent = self.view.ascent().shortened()
        left = self.view.evaluations_left
        if left is not None and left < ascent.budget:
            raise TooLargeError(
                "a search would reveal more weights than the lazy map may keep; sample it with a larger memory_limit=, "
                "or train on fewer texts"
            )
        coarse = question.gain(self.view, targets)
        best = maximize([self.view], coarse, region, seed, ascent, enough=-_NEAR_ZERO)[0]
        left = self.view.evaluations_left
        steps = _POLISH if left is None else min(_POLISH, left // 3)  # a step takes one or two evaluations
        delta, value, evaluations = polish(coarse, region, best.delta, steps)
        evaluations += best.evaluations
        if -value < _NEAR_ZERO and left is None:  # zero can be reached, and has more digits
            view = self._exact()
            fine = question.gain(view, targets)
            delta, _, more = polish(fine, region, delta.to(view.device, view.dtype), _LAST_DIGITS)
            evaluations += more
        return region.project(delta.to("cpu", torch.float64)), evaluations

    def _exact(self) -> View:
        """Make the view in float64, where the device has that."""
        if self.view.dtype == torch.float64 or self.view.device.type == "mps":
            return self.view
        return self.prepared.view([self.token], dtype=torch.float64)

    def _change(self, delta: Float[Tensor, "1 d"]) -> tuple[Float[Tensor, " k"], Check]:
        """Compute phi(X') - phi(X): through the plain map where there is one that fits."""
        phi, text = self.prepared.phi, self.prepared.X
        need = phi.plain_bytes(*text.shape)
        if need is not None and fits(need):
            after = phi(moved(text, [self.token], delta).to(self.base.device)).flatten().to(self.base)
            return after - self.base, Check(Way.PLAIN, "float64")
        view = self._exact()
        way = Way.REVEALED if need is None else Way.VIEW
        change = view.change(delta.to(view.device, view.dtype)).to(self.base)
        return change, Check(way, str(view.dtype).removeprefix("torch."))


def find_target(readout: Readout, base: Float[Tensor, " k"], training: str) -> Float[Tensor, " k"]:
    """Find the direction in which training on one more text, with features `base`, moves theta."""
    if training == "finetune":
        return base
    rest = readout.orthogonal(base)
    if rest is None:
        N, k = readout.features.shape
        why = f"there are N={N} of them with {k} entries" if N >= k else "is X one of the training texts?"
        raise SpanError(
            f"phi(X) lies in the span of the training features ({why}), so re-training has nothing left to change; "
            "training='finetune' is defined"
        )
    return rest


def check_choice(value: Any, choices: tuple[str, ...], name: str) -> str:
    """Return a value that is one of the choices of an argument, or raise an InputError that lists them."""
    if value not in choices:
        raise InputError(f"{name}={value!r} is not known; use one of: {', '.join(choices)}", argument=name)
    return value
