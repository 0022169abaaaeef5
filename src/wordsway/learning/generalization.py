"""Can a model learn that one word flipped the meaning? Train, see one more pair, and ask about the text whose one word
changed and whose label is the opposite.

Notation: f(X, theta) = phi(X) . theta; theta* interpolates N texts (`readout`). Then (X, y) arrives, and training on it
gives theta_f (gradient descent on the pair alone, from theta*) or theta_r (the interpolator of all N + 1). Both are
    theta* + t (y - f(X, theta*)) / |t|^2,
with t = phi(X) or its part orthogonal to the N training features. So for the moved text X' = X^i(delta)
    f(X', theta_f/r) = f(X', theta*) + F (y - f(X, theta*)),    F = phi(X') . t / |t|^2,
and all that a search has to know of delta is the change of the features along two fixed vectors, t and theta*.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.learning.flip_case import FlipCase, check_choice, find_target
from wordsway.learning.flip_result import Flip
from wordsway.learning.readout import CUTOFF, Readout, check_label, check_labels, stack_texts
from wordsway.maps.base import FeatureMap
from wordsway.maps.from_callable import as_map
from wordsway.support.devices import find_device, find_dtype, precise
from wordsway.support.errors import InputError, RankWarning
from wordsway.support.memory import require
from wordsway.support.names import TRAININGS, Aim, Training
from wordsway.support.plain_checks import check_tokens
from wordsway.support.public_gate import public
from wordsway.tokens import Tokens, as_text


@public
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
        target = find_target(self.readout, base, check_choice(training, TRAININGS, "training"))
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
        were not normalised. What was found is evaluated again in float64. For several questions about one token of a
        text, make its `case` first.
        """
        case = self.case(X, token)
        found = case.flip(y, training=training, objective=objective, penalty=penalty, seed=seed, radius=radius)
        return replace(found, seconds=found.seconds + case.seconds)

    def case(self, X: Any, token: int = 0) -> FlipCase:
        """Pay once for a text whose one token moves; its `flip` then answers several questions about it."""
        text = self._text(X)
        (token,) = check_tokens([token], self.n)
        own_norms = isinstance(X, Tokens) and not X.normalized
        prepared = self.phi.prepare(text, device=self.device)
        return FlipCase(prepared, self.readout, token, self.dtype, own_norms)

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
