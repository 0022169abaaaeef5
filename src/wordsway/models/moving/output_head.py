"""The head of a model: the linear layer that gives its logits, found among recorded calls and checked by what it does.

A head may have one hidden layer: logits = weight @ activation(inner @ y + shift) + bias, the activation being one of
those below, which is found by comparing values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from wordsway.certificates.ellipsoid_bound import Image, times
from wordsway.models.moving.final_norm import Call, inner_roundoff, roundoff
from wordsway.models.running.model import Head

_VALLEYS = {"tanh": None, "relu": None, "gelu": -0.7517915, "gelu_tanh": -0.7524614, "silu": -1.2784645}
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


@dataclass(frozen=True, eq=False)
class Linear:
    """weight @ y + bias, as it is computed in a precision."""

    weight: Float[Tensor, "k d"]
    bias: Float[Tensor, " k"]
    dtype: torch.dtype

    @cached_property
    def image(self) -> Image:
        return Image.of(self.weight)

    def rounding(self, sizes: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
        """Bound by how much each number may be off where sum_j |weight_kj y_j| is at most sizes_k: rounding of the
        result, and of a sum of d products that is computed in float32 or better."""
        unit = roundoff(self.dtype) + (self.weight.shape[1] + 2) * inner_roundoff(self.dtype)
        return unit * (sizes + self.bias.abs())

    def rows(self, used: Bool[Tensor, " k"]) -> "Linear":
        """Keep some rows of it."""
        return Linear(self.weight[used.to(self.weight.device)], self.bias[used], self.dtype)

    def keeps(self, given: Float[Tensor, "1 d"], output: Float[Tensor, "1 k"]) -> bool:
        """Whether it gives that output, up to its allowance for rounding."""
        y, found = given[0].to("cpu", torch.float64), output[0].to("cpu", torch.float64)
        off = (times(self.weight, y) + self.bias - found).abs()
        return bool((off <= self.rounding(times(self.weight.abs(), y.abs())) + 1e-300).all())


@dataclass(frozen=True, eq=False)
class OutputHead:
    """The linear layer that gives the logits, and the hidden one before it (`inner`, then `activation`), if there is
    one. `given` is what the first of them got in the run, `place` where that call stands among all."""

    outer: Linear
    given: Float[Tensor, "1 d"]
    place: int
    inner: Linear | None = None
    activation: str | None = None

    def hidden_range(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """The range of the activation over intervals: each either never falls, or falls before one valley."""
        assert self.activation is not None and self.inner is not None
        apply, valley = _ACTIVATIONS[self.activation], _VALLEYS[self.activation]
        bottom = low if valley is None else torch.full_like(low, valley).clamp(low, high)
        top = torch.maximum(apply(low), apply(high))
        off = 8 * roundoff(self.inner.dtype)  # of the activation as it is computed, relative; and of the valley's place
        least = torch.minimum(apply(bottom), torch.minimum(apply(low), apply(high)))
        return least - off * least.abs() - 1e-7, top + off * top.abs() + 1e-7


def given_head(head: Head, dtype: torch.dtype) -> OutputHead:
    """The head that comes with wordsway: z = weight . mean + bias, logits -z/2 and z/2."""
    weight, bias = head.weight.to(dtype).to("cpu"), head.bias.to(dtype).to("cpu")
    both = torch.stack([-weight / 2, weight / 2])
    outer = Linear(both, torch.cat([-bias / 2, bias / 2]).double(), dtype)
    return OutputHead(outer, weight[None], 0)


def as_head(calls: Sequence[Call], features: Float[Tensor, "1 k"]) -> OutputHead | str:
    """Find the linear layer that gives the logits, with the hidden one before it where the former's input is an
    activation of the latter's output."""
    for place in range(len(calls) - 1, -1, -1):
        outer, row = _linear(calls[place]), _row_of(calls[place].output, features)
        if outer is None or row is None:
            continue
        given = _at(calls[place].given, row)
        if not outer.keeps(given, features):
            return "the head rounds more than its precision allows for"
        return _with_hidden(OutputHead(outer, given, place), calls)
    return "the logits are not what a linear layer gives"


def _with_hidden(head: OutputHead, calls: Sequence[Call]) -> OutputHead:
    for place in range(head.place - 1, -1, -1):
        call = calls[place]
        if call.output.shape[-1] != head.given.shape[-1] or call.output.dim() not in (2, 3):
            continue
        for name, apply in _ACTIVATIONS.items():
            row = _row_of(apply(call.output), head.given)
            inner = None if row is None else _linear(call)
            if row is None or inner is None:
                continue
            given = _at(call.given, row)
            if inner.keeps(given, _at(call.output, row)):
                return OutputHead(head.outer, given, place, inner, name)
    return head


def _linear(call: Call) -> Linear | None:
    """The layer of a call to a module with a matrix, as its shapes are."""
    weight, bias = getattr(call.module, "weight", None), getattr(call.module, "bias", None)
    if not isinstance(weight, Tensor) or weight.shape != (call.output.shape[-1], call.given.shape[-1]):
        return None
    if not weight.is_floating_point():
        return None
    shift = torch.zeros(len(weight), dtype=torch.float64) if bias is None else bias.detach().to("cpu", torch.float64)
    return Linear(weight.detach(), shift, call.output.dtype)


def _row_of(output: Tensor, features: Float[Tensor, "1 k"]) -> int | None:
    """The row of an output that the features are; 0 for an output with one row only."""
    rows = output[:, None] if output.dim() == 2 else output
    if rows.dim() != 3 or rows.shape[-1] != features.shape[-1] or len(rows) != 1:
        return None
    return next((row for row in (-1, 0) if torch.equal(rows[:, row], features)), None)


def _at(tensor: Tensor, row: int) -> Float[Tensor, "1 d"]:
    return tensor if tensor.dim() == 2 else tensor[:, row]
