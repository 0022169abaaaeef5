"""All hidden states of a model."""

import torch
from torch import Tensor

from wordsway.models.moving.outputs.base import Output, after
from wordsway.models.running.model import At, Prefix, Transformer


class AllLayers(Output):
    """Hidden states 1 to the last, one after the other, each with a row for each token."""

    has_rows = True
    reads = "states"

    def features(self, model: Transformer, rows: Tensor, at: At = "embeddings", prefix: Prefix | None = None) -> Tensor:
        states = model.states(rows, at, prefix)[1:]
        if prefix is not None:
            states = [after(old, new) for old, new in zip(prefix.states[1:], states, strict=True)]
        return torch.cat([state.flatten(1) for state in states], 1)
