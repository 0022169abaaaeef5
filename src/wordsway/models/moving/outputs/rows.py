"""One hidden state, with a row for each token."""

from torch import Tensor

from wordsway.models.moving.outputs.base import StateOutput


class Rows(StateOutput):
    """All rows of a hidden state, one after the other."""

    has_rows = True
    reads = "rows"

    def of_state(self, state: Tensor, is_text: Tensor | None) -> Tensor:
        return state.flatten(1)
