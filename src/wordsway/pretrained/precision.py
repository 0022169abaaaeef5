"""Searching in half precision where the processor is faster at it; results are always evaluated again in full."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


def half_is_faster(device: torch.device) -> bool:
    """Whether a processor multiplies bfloat16 matrices by instructions of its own. Other devices are left alone."""
    native = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return device.type == "cpu" and native is not None and bool(native())


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
