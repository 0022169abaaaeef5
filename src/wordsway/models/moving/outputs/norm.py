"""The sizes of a text's rows."""

from torch import Tensor

from wordsway.models.moving.outputs.base import StateOutput


class Norm(StateOutput):
    """The norm of each row of the last hidden state: how large tokens are, not where they point."""

    has_rows = True
    reads = "sizes"

    def of_state(self, state: Tensor, is_text: Tensor | None) -> Tensor:
        return state.norm(dim=-1)
