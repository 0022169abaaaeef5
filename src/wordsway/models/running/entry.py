"""The entry of moves into a model: the module that gives hidden state 0, found by a run. A hook replaces its output.

`inputs_embeds` would not do: most encoders add positions to them and normalise the sum.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.support.errors import InputError


@dataclass(frozen=True)
class Site:
    """A module whose output is hidden state 0; or, where no module gives it as it is, the block that it goes into."""

    module: Any
    name: str
    is_input: bool = False

    @contextmanager
    def giving(self, rows: Float[Tensor, "b n d"]) -> Iterator[None]:
        """While this lasts, hidden state 0 is `rows`, whatever the ids are."""
        done = False

        def replace_output(module: Any, arguments: Any, output: Any) -> Any:
            nonlocal done
            if done:  # some models use one dropout module at both ends
                return None
            done = True
            return rows if isinstance(output, Tensor) else (rows, *output[1:])

        def replace_input(module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            if arguments:
                return (rows, *arguments[1:]), keywords
            return arguments, {**keywords, "hidden_states": rows}

        if self.is_input:
            handle = self.module.register_forward_pre_hook(replace_input, with_kwargs=True)
        else:
            handle = self.module.register_forward_hook(replace_output)
        try:
            yield
        finally:
            handle.remove()


def find_site(encoder: PretrainedEncoder, ids: Any, mask: Any) -> Site:
    """The last module, in the order in which they finish, that outputs the hidden state 0 of a text."""
    ran: list[tuple[str, Any, Tensor]] = []

    def record(name: str, module: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) and output else output
        if isinstance(first, Tensor) and first.dim() == 3:
            ran.append((name, module, first.detach().clone()))

    inside = set() if encoder.blocks is None else {id(part) for part in encoder.blocks.modules()}
    hooks = [
        module.register_forward_hook(lambda module, arguments, output, name=name: record(name, module, output))
        for name, module in encoder.model.named_modules()
        if name and id(module) not in inside
    ]
    try:
        state = encoder.all_hidden(mask, input_ids=ids)[0]
    finally:
        for hook in hooks:
            hook.remove()
    found = [(name, module) for name, module, output in ran if torch.equal(output, state)]
    if found:
        return Site(found[-1][1], found[-1][0])
    if encoder.blocks is None:
        raise InputError(f"no module of {encoder.name} gives its hidden state 0, so no word of it can be moved")
    return Site(encoder.blocks[0], "the input of block 0", is_input=True)
