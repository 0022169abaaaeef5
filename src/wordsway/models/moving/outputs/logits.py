"""Logits: of a classifier, or of the next token."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from wordsway.models.moving.outputs.base import Output
from wordsway.models.running.model import At, Prefix, Transformer
from wordsway.support.errors import InputError
from wordsway.support.names import OUTPUTS


class Logits(Output):
    """A classifier's logits, or those of the next token."""

    is_logits = True
    reads = "logits"
    spread = 0.17  # 16.3% was seen on a text that nothing was tuned on, see docs/benchmarks.md
    trains = True

    def check(self, model: Transformer) -> None:
        if not (model.classifies or model.predicts_tokens):
            raise InputError(
                f"{model.name} has no logits: it neither classifies texts nor predicts the next token; use "
                f"{', '.join(name for name in OUTPUTS if name != self.name)}, or the bundled classifier (sentiment)",
                argument="output",
            )

    def features(self, model: Transformer, rows: Tensor, at: At = "embeddings", prefix: Prefix | None = None) -> Tensor:
        return model.logits(rows, at, prefix)

    def of_batch(self, live: Any, inputs: Mapping[str, Any], is_text: Tensor) -> Tensor:
        logits = getattr(live(**inputs), "logits", None)
        if logits is None or logits.dim() != 2:
            name = type(live).__name__
            raise InputError(f"output='logits' is for classifiers, which {name} is not; use pooled", argument="output")
        return logits
