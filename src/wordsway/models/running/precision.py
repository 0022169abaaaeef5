"""Searching in half precision where the processor is faster at it; results are always evaluated again in full."""

import os
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from wordsway.support.errors import InputError

HALF = "WORDSWAY_HALF"


def half_is_faster(device: torch.device) -> bool:
    """Whether searches on a device multiply in bfloat16: on CPUs that have instructions for it, unless WORDSWAY_HALF
    says otherwise. Other devices are left alone."""
    setting = _setting()
    return device.type == "cpu" and (_has_instructions() if setting is None else setting)


def describe_half() -> str:
    """Describe how searches on the CPU multiply, as the end of a line about it; "" where there is nothing to say."""
    setting = _setting()
    if setting is None:
        return ", with bfloat16 instructions" if _has_instructions() else ""
    return f", bfloat16 turned {'on' if setting else 'off'} by {HALF}"


def _setting() -> bool | None:
    """Read WORDSWAY_HALF; None if it is not set."""
    text = os.environ.get(HALF)
    if text not in (None, "0", "1"):
        raise InputError(
            f"{HALF} must be 0 (no search in half precision) or 1 (on every CPU), or not be set; got {text!r}"
        )
    return None if text is None else text == "1"


def _has_instructions() -> bool:
    """Whether the processor has instructions of its own for products of bfloat16 matrices.

    torch answers for the processor. Settings that keep torch from using the instructions, such as ATEN_CPU_CAPABILITY,
    do not change the answer; WORDSWAY_HALF is there for them."""
    native = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return native is not None and bool(native())


class HalfLinear(TorchFunctionMode):
    """While it is on, linear layers in float32 multiply in bfloat16 (8 bits of precision, sums in float32), forward and
    backward; everything else, attention and normalisation too, is computed as before. The model is not touched: its
    weights are kept a second time, at half the size."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}
        self.last: tuple[Tensor, Tensor] | None = None

    def __exit__(self, *error: Any) -> None:
        self.last = None
        super().__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.linear and not kwargs and args[0].dtype == torch.float32:
            rows, weight, *bias = args
            if self.last is None or self.last[0] is not rows:  # queries, keys and values have one input
                self.last = (rows, rows.to(torch.bfloat16))
            shift = [part if part is None else self._half(part) for part in bias]
            return func(self.last[1], self._half(weight), *shift).to(torch.float32)
        return func(*args, **(kwargs or {}))

    def _half(self, weight: Tensor) -> Tensor:
        kept = self.kept.get(id(weight))
        if kept is None or kept[0] is not weight:
            kept = self.kept[id(weight)] = (weight, weight.detach().to(torch.bfloat16))
        return kept[1]
