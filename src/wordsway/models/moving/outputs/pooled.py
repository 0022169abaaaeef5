"""One row for a text: the mean over its tokens, or the first or last one's."""

import torch
from torch import Tensor

from wordsway.models.moving.outputs.base import StateOutput


class Mean(StateOutput):
    """The mean of all rows of the last state."""

    reads = "mean"

    def of_state(self, state: Tensor, is_text: Tensor | None) -> Tensor:
        return state.mean(1) if is_text is None else state.sum(1) / is_text.sum(1, keepdim=True).to(state)


class First(StateOutput):
    """The first token's row."""

    reads = "first"

    def of_state(self, state: Tensor, is_text: Tensor | None) -> Tensor:
        if is_text is None:
            return state[:, 0]
        return _chosen(state, is_text.to(torch.int64).argmax(1))


class Final(StateOutput):
    """The last token's row."""

    reads = "last"

    def of_state(self, state: Tensor, is_text: Tensor | None) -> Tensor:
        if is_text is None:
            return state[:, -1]
        order = torch.arange(1, is_text.shape[1] + 1, device=is_text.device) * is_text
        return _chosen(state, order.argmax(1))


def _chosen(state: Tensor, places: Tensor) -> Tensor:
    return state[torch.arange(len(state), device=state.device), places]
