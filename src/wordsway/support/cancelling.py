"""Cancelling from within: a thread cannot be killed, so whatever runs for long asks, again and again, whether to go on.

A cancel function is called without arguments and raises to end the work, best what is no `Exception`, so that nobody
on the way takes it for a fault.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

Cancel = Callable[[], object]


def ask_around(x: torch.Tensor, cancel: Cancel | None) -> None:
    """Call `cancel` now, and again when a gradient comes back to x."""
    if cancel is None:
        return
    cancel()
    if x.requires_grad:

        def ask(gradient: torch.Tensor) -> None:
            cancel()

        x.register_hook(ask)


@contextmanager
def asked_by_modules(root: torch.nn.Module, cancel: Cancel | None) -> Iterator[None]:
    """Call `cancel` before each module of a model that runs in this thread: one run of a large model may take long."""
    if cancel is None:
        yield
        return
    thread = threading.get_ident()  # a model is loaded once, and another thread may run it for somebody else

    def ask(*anything: Any) -> None:
        if threading.get_ident() == thread:
            cancel()

    hooks = [module.register_forward_pre_hook(ask) for module in root.modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
