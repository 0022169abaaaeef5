"""A model in the middle of its training, borrowed: quiet while we look at it, and handed back as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from wordsway.models.running.hidden_states import find_blocks
from wordsway.support.errors import InputError


def unwrapped(model: Any) -> Any:
    """The model of the transformers library inside the wrappers of compilation and parallel training."""
    for name in ("_orig_mod", "module"):
        while not hasattr(model, "base_model") and isinstance(getattr(model, name, None), torch.nn.Module):
            model = getattr(model, name)
    if not (isinstance(model, torch.nn.Module) and hasattr(model, "base_model") and hasattr(model, "config")):
        raise InputError(
            f"model must be a live model of the transformers library, got {type(model).__name__}", argument="model"
        )
    return model


@contextmanager
def without_dropout(model: Any) -> Iterator[None]:
    """Every module in eval mode; then each is again in the mode that it had, also where they differed."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def borrowed(model: Any) -> Iterator[None]:
    """In eval mode, with gradients to be had whatever surrounds this; random numbers drawn inside are given back."""
    random = torch.get_rng_state()
    try:
        with torch.inference_mode(False), torch.enable_grad(), without_dropout(model):
            yield
    finally:
        torch.set_rng_state(random)


@contextmanager
def changed_input(model: Any, change: Any) -> Iterator[None]:
    """While this lasts, the first block of a model gets `change(rows)` instead of its hidden state 0, (b, n, d)."""
    blocks = find_blocks(model.get_encoder() if model.config.is_encoder_decoder else model.base_model)
    if blocks is None:
        raise InputError(f"{type(model).__name__} has no list of blocks, so what enters the first one is not known")

    def replace(module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        rows: Tensor = arguments[0] if arguments else keywords["hidden_states"]
        if arguments:
            return (change(rows), *arguments[1:]), keywords
        return arguments, {**keywords, "hidden_states": change(rows)}

    hook = blocks[0].register_forward_pre_hook(replace, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()
