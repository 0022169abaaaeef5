"""Predictions of a map, and how far a moved token is from changing one.

The margin of a move is the largest score of another class minus that of the predicted class: it is negative for the
text as it is, and positive where the prediction has changed. Scores are a model's logits, or what a readout of the
user's own makes of the features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap, Prepared, View, moved
from wordsway.models.moving.map import PretrainedMap
from wordsway.support.errors import InputError
from wordsway.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Readout:
    """Scores of classes from features: matrix @ features + bias. No matrix: the features are the scores."""

    matrix: Float[Tensor, "classes features"] | None
    bias: Float[Tensor, " classes"]

    def scores(self, features: Float[Tensor, " features"]) -> Float[Tensor, " classes"]:
        features = features.to("cpu", torch.float64)
        return (features if self.matrix is None else self.matrix @ features) + self.bias

    def differences(self, predicted: int, others: Sequence[int]) -> Float[Tensor, "others features"]:
        """The directions of features along which other classes gain on the predicted one."""
        if self.matrix is not None:
            return self.matrix[list(others)] - self.matrix[predicted]
        rows = torch.zeros(len(others), len(self.bias), dtype=torch.float64)
        rows[torch.arange(len(others)), list(others)] = 1.0
        rows[:, predicted] = -1.0
        return rows


class Margins:
    """The margins of one text's moves, one token at a time."""

    def __init__(
        self,
        phi: FeatureMap,
        X: Float[Tensor, "n d"],
        readout: Readout,
        names: Callable[[int], str],
        device: torch.device,
    ) -> None:
        self.phi, self.X, self.readout, self.name = phi, X, readout, names
        self.prepared: Prepared = phi.prepare(X, device=device)
        self.scores = readout.scores(phi(X).flatten())
        if not bool(torch.isfinite(self.scores).all()):
            raise InputError("the scores of the text are NaN or infinite, so it has no prediction")
        self.predicted = int(self.scores.argmax())
        if self.gap <= 0:
            raise InputError("two classes share the highest score, so there is no prediction to change")

    @property
    def gap(self) -> float:
        """By how much the predicted class leads."""
        return -float(self._margin(self.scores))

    @property
    def rivals(self) -> list[int]:
        """The other classes, the highest score first."""
        return [k for k in self.scores.argsort(descending=True).tolist() if k != self.predicted]

    def view(self, token: int) -> View:
        """Make the view of a token that computes in full precision."""
        return self.prepared.view((token,), dtype=torch.float64)

    def open(self, tokens: Sequence[int]) -> Callable[[Tensor], Tensor]:
        """The function (g, b, 1, d) -> (g, b) of the margins of some tokens' moves, each moved alone."""
        views = [self.view(token) for token in tokens]
        targets = self.readout.matrix
        scores = self.scores.to(views[0].device)

        def margin(change: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch"]:
            return self._margin(change + scores.to(change.dtype))

        run = self.phi.scored(views, targets, margin)
        return lambda delta: run(delta.to(views[0].device))

    def after(self, token: int, delta: Float[Tensor, " d"]) -> Float[Tensor, " classes"]:
        """Compute the scores of a moved text by a plain run of the whole map."""
        return self.readout.scores(self.phi(moved(self.X, (token,), delta[None].to(self.X))).flatten())

    def flips_to(self, scores: Float[Tensor, " classes"]) -> int | None:
        """The class that has overtaken the predicted one; None where none has."""
        return int(scores.argmax()) if float(self._margin(scores)) > 0 else None

    def probability(self, scores: Float[Tensor, " classes"]) -> float | None:
        """The probability of the class that is predicted for the text as it is; None for scores of a readout."""
        return float(scores.softmax(0)[self.predicted]) if self.readout.matrix is None else None

    def second(self) -> tuple[str, float] | None:
        """The class that is nearest to being predicted for the text as it is, and its probability; None for scores of a
        readout, and for a single class."""
        if self.readout.matrix is not None or len(self.scores) < 2:
            return None
        likely = self.scores.softmax(0)
        likely[self.predicted] = -1
        return self.name(int(likely.argmax())), float(likely.amax())

    def _margin(self, scores: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch"]:
        own = scores[..., self.predicted]
        others = torch.cat([scores[..., : self.predicted], scores[..., self.predicted + 1 :]], -1)
        return others.amax(-1) - own


def readout_of(phi: FeatureMap, features: int, matrix: object, bias: object) -> Readout:
    """Check a readout of the user's own: classes x features, or a vector, whose sign is the prediction."""
    if matrix is None:
        if not isinstance(phi, PretrainedMap) or not phi.output.is_logits:
            raise InputError(
                "a map has no prediction of its own; give readout=, a matrix (classes x features) or a vector, whose "
                "sign is the prediction",
                argument="readout",
            )
        if bias is not None:
            raise InputError("bias= belongs to a readout= of your own", argument="bias")
        if features < 2:
            raise InputError(f"{phi.model.name} has a single output, so it has no prediction that could change")
        return Readout(None, torch.zeros(features, dtype=torch.float64))
    theta = _numbers(matrix, "readout")
    if theta.dim() not in (1, 2) or theta.shape[-1] != features:
        raise InputError(
            f"readout must have shape (classes, {features}) or ({features},), as the map has {features} features; got "
            f"{tuple(theta.shape)}",
            argument="readout",
        )
    sign = theta.dim() == 1
    theta = torch.stack([torch.zeros_like(theta), theta]) if sign else theta
    if len(theta) < 2:
        raise InputError("readout has one class; give two rows at least, or a vector for a sign", argument="readout")
    shift = torch.zeros(1 if sign else len(theta), dtype=torch.float64) if bias is None else _numbers(bias, "bias")
    shift = shift.reshape(-1)
    if len(shift) != (1 if sign else len(theta)):
        raise InputError(f"bias must have a number for each class, got {len(shift)}", argument="bias")
    return Readout(theta, torch.cat([torch.zeros(1, dtype=torch.float64), shift]) if sign else shift)


def _numbers(given: object, name: str) -> Tensor:
    try:
        found = torch.as_tensor(given).detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} must be an array of numbers, got {type(given).__name__}", argument=name) from None
    if not bool(torch.isfinite(found).all()):
        raise InputError(f"{name} has entries that are NaN or infinite", argument=name)
    return found


def class_names(phi: FeatureMap, readout: Readout, classes: Sequence[str] | None) -> Callable[[int], str]:
    """Names of classes: the user's, the model's labels, or the text of a next token."""
    count = len(readout.bias)
    if classes is not None:
        if isinstance(classes, str) or len(classes) != count:
            raise InputError(f"classes must be a list of {count} names", argument="classes")
        return lambda k: str(classes[k])
    if readout.matrix is None and isinstance(phi, PretrainedMap):
        labels, tokenizer = phi.model.labels, phi.model.encoder.tokenizer
        return lambda k: tokenizer.decode([k]) if labels is None else labels[k]
    return lambda k: str(k)


def words_of_text(text: Tokens | None, n: int) -> list[tuple[str, tuple[int, int], tuple[int, ...]]]:
    """Words with their characters and tokens; rows without words are words of one token each."""
    if text is None:
        return [(f"row {k + 1}", (0, 0), (k,)) for k in range(n)]
    return list(zip(text.words, text.spans, text.pieces, strict=True))
