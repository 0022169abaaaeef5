"""Can a model learn that one word flipped the meaning? Train, see one more pair, and ask about the text whose one word
changed and whose label is the opposite.

Notation: f(X, theta) = phi(X) . theta; theta* interpolates N texts (`readout`). Then (X, y) arrives, and training on it
gives theta_f (gradient descent on the pair alone, from theta*) or theta_r (the interpolator of all N + 1). Both are
    theta* + t (y - f(X, theta*)) / |t|^2,
with t = phi(X) or its part orthogonal to the N training features. So for the moved text X' = X^i(delta)
    f(X', theta_f/r) = f(X', theta*) + F (y - f(X, theta*)),    F = phi(X') . t / |t|^2,
and all that a search has to know of delta is the change of the features along two fixed vectors, t and theta*.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.learning.flip_objectives import FlipObjective
from wordsway.learning.flip_result import Flip
from wordsway.learning.readout import CUTOFF, Readout, check_label, check_labels, stack_texts
from wordsway.maps.base import FeatureMap, View, moved
from wordsway.maps.from_callable import as_map
from wordsway.measures.words import radii_of
from wordsway.search.ascent import maximize
from wordsway.search.polish import polish
from wordsway.search.regions import Ball
from wordsway.support.devices import find_device, find_dtype, precise
from wordsway.support.errors import InputError, RankWarning, SpanError, TooLargeError
from wordsway.support.memory import fits, require
from wordsway.support.names import OBJECTIVES, TRAININGS, Aim, Training
from wordsway.tokens import Tokens, as_text, check_size, check_tokens

_NEAR_ZERO = 1e-3  # from where a descent goes on to zero by itself
_POLISH, _LAST_DIGITS = 40, 10  # steps of that descent, in the search's precision and then in float64


@dataclass(frozen=True, eq=False)
class _Case:
    """A text with a token that moves, as all questions about it share it."""

    phi: FeatureMap
    text: Float[Tensor, "n d"]
    token: int
    base: Float[Tensor, " k"]  # phi(X)
    before: float
    view: View
    targets: dict[str, Tensor]  # by training: the direction in which it moves theta

    def exact(self) -> View:
        """The view in float64, where the device has that."""
        view = self.view
        if view.dtype == torch.float64 or view.device.type == "mps":
            return view
        return self.phi.view(self.text, [self.token], dtype=torch.float64, device=view.device)


class Generalization:
    """The minimum-norm interpolator theta* of N labelled texts on the features of a map, and what one more pair does.

    `train` are texts of one length (encoded, arrays, or one array (N, n, d)), `labels` are +1 and -1. Training features
    whose Gram matrix has eigenvalues of at most `cutoff` times the largest are dependent: theta* is then the smallest
    least-squares solution, and a RankWarning says by how much it misses the labels. `rank`, `residual` and `condition`
    are there in any case, and `seconds` says where time went.
    """

    def __init__(
        self,
        phi: FeatureMap | Callable[[Tensor], Tensor],
        train: Any,
        labels: Any,
        *,
        cutoff: float = CUTOFF,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | str = torch.float32,
    ) -> None:
        self.phi = as_map(phi)
        if isinstance(cutoff, bool) or not isinstance(cutoff, int | float) or not 0 < cutoff < 1:
            raise InputError(f"cutoff must be a number between 0 and 1, got {cutoff!r}", argument="cutoff")
        texts = stack_texts(train)
        Y = check_labels(labels, len(texts))
        self.n, self.d = texts.shape[1:]
        self.phi.check(texts[0])
        self.device, self.dtype = find_device(device), find_dtype(dtype)
        began = time.perf_counter()
        require(
            8.0 * (1 + self.phi.copies) * texts.numel(),
            f"the features of {len(texts)} texts",
            "use fewer or shorter texts",
        )
        place = torch.device("cpu") if self.phi.remembers else precise(self.device)
        features = self.phi.features(texts.to(place))
        if not bool(torch.isfinite(features).all()):
            raise InputError("phi gives features that are NaN or infinite for some of the training texts")
        featured = time.perf_counter()
        self.readout = Readout.fit(features, Y.to(features), cutoff)
        self.seconds = {
            "features": featured - began,
            "gram": self.readout.gram_seconds,
            "solve": self.readout.solve_seconds,
        }
        self._last: _Case | None = None
        if self.rank < len(texts):
            warnings.warn(
                f"the features of the {len(texts)} training texts have rank {self.rank} (cut-off {cutoff:g}); the "
                f"smallest least-squares solution misses the labels by up to {self.residual:.2g}",
                RankWarning,
                stacklevel=2,
            )

    @property
    def theta(self) -> Float[Tensor, " k"]:
        return self.readout.theta

    @property
    def rank(self) -> int:
        return self.readout.rank

    @property
    def residual(self) -> float:
        return self.readout.residual

    @property
    def condition(self) -> float:
        return self.readout.condition

    def __repr__(self) -> str:
        N, k = self.readout.features.shape
        return f"Generalization({self.phi.config()['map']}, N={N}, n={self.n}, d={self.d}, {k} features)"

    def predict(self, X: Any, theta: Float[Tensor, " k"] | None = None) -> float:
        """f(X, theta), by default with theta*."""
        return float(self._features(self._text(X)) @ (self.theta if theta is None else theta))

    def trained(self, X: Any, y: Any, training: Training | str) -> Float[Tensor, " k"]:
        """theta_f or theta_r: the parameters after the pair (X, y) was seen."""
        base = self._features(self._text(X))
        target = self._target(base, _choice(training, TRAININGS, "training"))
        return self.theta + target * (check_label(y) - base @ self.theta) / target.square().sum()

    def flip(
        self,
        X: Any,
        y: Any,
        token: int = 0,
        *,
        training: Training | str = "finetune",
        objective: Aim | str = "align",
        penalty: float = 0.1,
        seed: int = 0,
        radius: float | None = None,
    ) -> Flip:
        """Train on (X, y), then look for the move of one token, within its ball, that lets the model follow the flip.

        `objective` is what the move minimises: "align" (F + 1)^2, "error" Err, "penalized" Err + penalty
        (f(X', theta*) - f(X, theta*))^2. `radius` is sqrt(d) unless given, or the token's own norm for `Tokens` that
        were not normalised. What was found is evaluated again in float64.
        """
        training = _choice(training, TRAININGS, "training")
        aim = _choice(objective, OBJECTIVES, "objective")
        if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty < math.inf:
            raise InputError(f"penalty must be a number of at least 0, got {penalty!r}", argument="penalty")
        y, seed = check_label(y), check_size(seed, "seed", least=0)
        text = self._text(X)
        (token,) = check_tokens([token], self.n)
        reach = radii_of(radius, text, own_norms=isinstance(X, Tokens) and not X.normalized)[token]
        began = time.perf_counter()
        case = self._case(text, token)
        viewed = time.perf_counter()
        if training not in case.targets:
            case.targets[training] = self._target(case.base, training)
        target, trained = case.targets[training], time.perf_counter()
        question = FlipObjective(case.before, y, aim, float(penalty))
        targets = torch.stack([target / target.square().sum(), self.theta])

        delta, evaluations = self._search(case, question, targets, Ball(reach, 1, self.d), seed)
        change, checked = self._change(case, delta)
        inner = (targets @ change).to("cpu", torch.float64)
        if question.squares(inner) > question.squares(torch.zeros_like(inner)):  # not moving at all is better
            delta, inner = torch.zeros_like(delta), torch.zeros_like(inner)
        alignment, told, after = (float(value) for value in question.outcome(inner))
        return Flip(
            gamma=abs(told),
            err=(after + y) ** 2,
            alignment=alignment,
            bound=max(0.0, 2 - abs(told)) ** 2,
            before=case.before,
            moved=case.before + told,
            after=after,
            y=y,
            delta=delta[0],
            token=token,
            radius=reach,
            training=training,
            objective=aim,
            penalty=float(penalty) if aim == "penalized" else None,
            value=float(question.squares(inner)),
            evaluations=evaluations,
            checked=checked,
            seed=seed,
            training_seconds=trained - viewed,
            seconds=time.perf_counter() - trained + viewed - began,
        )

    def _search(
        self, case: _Case, question: FlipObjective, targets: Float[Tensor, "2 k"], region: Ball, seed: int
    ) -> tuple[Float[Tensor, "1 d"], int]:
        """Search for the best move: an ascent, then a descent to the last digits. Returns it, and what it took."""
        ascent = case.view.ascent().shortened()
        left = case.view.evaluations_left
        if left is not None and left < ascent.budget:
            raise TooLargeError(
                "a search would reveal more weights than the lazy map may keep; sample it with a larger memory_limit=, "
                "or train on fewer texts"
            )
        coarse = question.gain(case.view, targets)
        best = maximize([case.view], coarse, region, seed, ascent, enough=-_NEAR_ZERO)[0]
        left = case.view.evaluations_left
        steps = _POLISH if left is None else min(_POLISH, left // 3)  # a step takes one or two evaluations
        delta, value, evaluations = polish(coarse, region, best.delta, steps)
        evaluations += best.evaluations
        if -value < _NEAR_ZERO and left is None:  # zero can be reached, and has more digits
            view = case.exact()
            fine = question.gain(view, targets)
            delta, _, more = polish(fine, region, delta.to(view.device, view.dtype), _LAST_DIGITS)
            evaluations += more
        return region.project(delta.to("cpu", torch.float64)), evaluations

    def _text(self, X: Any) -> Float[Tensor, "n d"]:
        text = as_text(X)
        if text.shape != (self.n, self.d):
            raise InputError(
                f"X has shape {tuple(text.shape)}, but the training texts have shape {(self.n, self.d)}; "
                "crop or choose it to be as long as they are"
            )
        return text

    def _features(self, text: Float[Tensor, "n d"]) -> Float[Tensor, " k"]:
        place = self.readout.features.device
        return self.phi(text.to(place)).flatten().to(self.readout.features)

    def _case(self, text: Float[Tensor, "n d"], token: int) -> _Case:
        """What all questions about one token of one text share; the last one is kept."""
        last = self._last
        if last is None or last.token != token or not torch.equal(last.text, text):
            base = self._features(text)
            if not float(base.norm()) > 0:
                raise InputError("phi(X) is zero, so training on X is not defined")
            view = self.phi.view(text, [token], dtype=self.dtype, device=self.device)
            view.settle()
            last = self._last = _Case(self.phi, text, token, base, float(base @ self.theta), view, {})
        return last

    def _target(self, base: Float[Tensor, " k"], training: str) -> Float[Tensor, " k"]:
        """The direction in which training on one more text moves theta."""
        if training == "finetune":
            return base
        rest = self.readout.orthogonal(base)
        if rest is None:
            N, k = self.readout.features.shape
            why = f"there are N={N} of them with {k} entries" if N >= k else "is X one of the training texts?"
            raise SpanError(
                f"phi(X) lies in the span of the training features ({why}), so re-training has nothing left to change; "
                "training='finetune' is defined"
            )
        return rest

    def _change(self, case: _Case, delta: Float[Tensor, "1 d"]) -> tuple[Float[Tensor, " k"], str]:
        """phi(X') - phi(X): through the plain map where there is one that fits."""
        need = self.phi.plain_bytes(self.n, self.d)
        if need is not None and fits(need):
            return self._features(moved(case.text, [case.token], delta)) - case.base, "plain map, float64"
        view = case.exact()
        how = "revealed weights" if need is None else "view"
        change = view.change(delta.to(view.device, view.dtype)).to(case.base)
        return change, f"{how}, {str(view.dtype).removeprefix('torch.')}"


def _choice(value: Any, known: tuple[str, ...], name: str) -> str:
    if value not in known:
        raise InputError(f"{name}={value!r} is not known; use one of: {', '.join(known)}", argument=name)
    return value
