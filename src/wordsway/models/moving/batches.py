"""Batch sizes of a model: enough texts to keep it busy, fewer where memory is short, half after it ran out."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.running.model import Transformer
from wordsway.support.errors import TooLargeError
from wordsway.support.memory import available_bytes

_TOKENS = 2304  # of a batch: more do not make a processor any faster
_GPU_TOKENS = 16384  # a GPU takes larger batches; where its memory runs out, they are halved
_SHARE = 0.4  # of the free memory: what a text needs is a rough estimate, and a process that takes too much is killed
Result = TypeVar("Result")
Valued = Callable[[slice, Tensor], Tensor]


class Batches:
    """The size of a batch for texts of n tokens; it is learned once, and kept for all later runs of the same kind."""

    def __init__(self, model: Transformer, n: int, gradient: bool = True) -> None:
        most = (_TOKENS if model.device.type == "cpu" else _GPU_TOKENS) // n
        if model.device.type == "cpu":  # other devices say when they have run out; this one may be killed instead
            most = min(most, int(_SHARE * available_bytes() / bytes_of_a_text(model, n, gradient)))
        self.size = max(1, min(most, model.most_texts or most))
        self.n = n

    def run(self, function: Callable[[slice], Result], count: int) -> list[Result]:
        """`function` of slices that cover `count` texts, in order. They are about equal, as a small one is slow."""
        found: list[Result] = []
        start = 0
        while start < count:
            rounds = math.ceil((count - start) / self.size)
            end = start + math.ceil((count - start) / rounds)
            try:
                found.append(function(slice(start, end)))
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                if self.size == 1:
                    raise TooLargeError(f"one text of {self.n} tokens alone needs more memory than there is") from error
                self.size //= 2
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                continue
            start = end
        return found

    def values(self, delta: Float[Tensor, "b m d"], function: Valued) -> Float[Tensor, " b"]:
        """A number for each delta, differentiable. `function` takes a slice of the deltas, and these."""
        return cast(Tensor, _Batched.apply(delta, function, self))


class _Batched(torch.autograd.Function):
    """A function of many deltas, each on its own, with its gradient: both are computed batch by batch on the way
    forward, so that only one batch is ever kept."""

    @staticmethod
    def forward(ctx: Any, delta: Tensor, function: Valued, batches: Batches) -> Tensor:
        wanted = ctx.needs_input_grad[0]

        def run(part: slice) -> tuple[Tensor, Tensor | None]:
            moves = delta[part].detach().requires_grad_(wanted)
            with torch.set_grad_enabled(wanted):
                values = function(part, moves)
                gradient = torch.autograd.grad(values.sum(), moves)[0] if wanted else None
            return values.detach(), gradient

        values, gradients = zip(*batches.run(run, len(delta)), strict=True)
        ctx.gradient = joined([part for part in gradients if part is not None]) if wanted else None
        return joined(values)

    @staticmethod
    def backward(ctx: Any, *outer: Any) -> Any:
        return outer[0][:, None, None] * ctx.gradient, None, None


def bytes_of_a_text(model: Transformer, n: int, gradient: bool) -> float:
    """A rough size of what one text needs while it runs: what a block keeps for its gradient, times the blocks."""
    config = model.base.config
    d = int(getattr(config, "hidden_size", None) or 768)
    heads = int(getattr(config, "num_attention_heads", None) or 12)
    inner = int(getattr(config, "intermediate_size", None) or 4 * d)
    block = 4.0 * n * (12 * d + 3 * inner) + 8.0 * heads * n * n
    vocabulary = 8.0 * int(getattr(config, "vocab_size", None) or 0)
    return block * (model.layers if gradient else 2) + vocabulary


def out_of_memory(error: BaseException) -> bool:
    """Whether a run failed for want of memory; each device says so in its own words."""
    words = str(error).lower()
    known = ("out of memory", "not enough memory", "can't allocate memory", "alloc_cpu")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(word in words for word in known)


def joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
