"""Which output of a model is looked at.

Index conventions: a batch has b texts of n tokens, with hidden states of d coordinates; features are flattened to one
axis. In training, shorter texts of a batch are padded; elsewhere all texts of a batch have one length.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsway.maps.base import TRAINED_SPREAD
from wordsway.models.running.model import At, Prefix, Transformer
from wordsway.support.errors import InputError
from wordsway.support.names import OUTPUTS
from wordsway.support.public_gate import read_whole

Reading = Literal["rows", "states", "mean", "first", "last", "sizes", "logits"]
_SAME = 1e-4  # relative, for rounding: by how much a run that reuses a prefix may differ from a whole one


@dataclass(frozen=True)
class Output(ABC):
    """An output by the `name` that a user gave it; `layer` is the hidden state that it is made of: the last one, unless
    the name ends in a number."""

    name: str
    layer: int
    has_rows: ClassVar[bool] = False  # a row for each token: two texts are comparable only if they are equally long
    is_logits: ClassVar[bool] = False  # of classes, or of the next token
    spread: ClassVar[float] = TRAINED_SPREAD  # by how much a search's answer for one word varies
    # How it is made of rows that a norm may give, for its upper bound (checked by runs); None: not said, so no bound.
    reads: ClassVar[Reading | None] = None
    trains: ClassVar[bool] = False  # `of_batch` is there, so that a loss can have a term of it

    def check(self, model: Transformer) -> None:  # noqa: B027
        """Raise an InputError where a model has no such output."""

    @abstractmethod
    def features(
        self, model: Transformer, rows: Float[Tensor, "b n d"], at: At = "embeddings", prefix: Prefix | None = None
    ) -> Float[Tensor, "b features"]:
        """Compute the output for some texts. With a `prefix`, `rows` are what comes after it."""

    def of_batch(
        self, live: Any, inputs: Mapping[str, Any], is_text: Bool[Tensor, "b n"]
    ) -> Float[Tensor, "b features"]:
        """Compute the output of a live model for a padded batch, as its tokenizer made it; padding does not count."""
        raise InputError(f"output={self.name!r} cannot be trained for; use {', '.join(trained())}", argument="output")


class StateOutput(Output):
    """An output that is a function of one hidden state."""

    trains = True

    @abstractmethod
    def of_state(
        self, state: Float[Tensor, "b n d"], is_text: Bool[Tensor, "b n"] | None
    ) -> Float[Tensor, "b features"]:
        """Compute the output of a hidden state. `is_text` is None where nothing is padding; rows of padding are 0."""

    def features(
        self, model: Transformer, rows: Float[Tensor, "b n d"], at: At = "embeddings", prefix: Prefix | None = None
    ) -> Float[Tensor, "b features"]:
        state = model.state(rows, self.layer, at, prefix)
        return self.of_state(state if prefix is None else after(prefix.states[self.layer], state), None)

    def of_batch(
        self, live: Any, inputs: Mapping[str, Any], is_text: Bool[Tensor, "b n"]
    ) -> Float[Tensor, "b features"]:
        states = live.base_model(**inputs).last_hidden_state
        return self.of_state(states * is_text.to(states)[..., None], is_text)


def after(before: Float[Tensor, "1 p d"], state: Float[Tensor, "b s d"]) -> Float[Tensor, "b n d"]:
    """Put the rows of a prefix before those that came after it."""
    return torch.cat([before.expand(len(state), *before.shape[1:]), state], 1)


def find_output(name: str, model: Transformer) -> Output:
    """Find an output by its name, or a user's own one, MODULE:NAME; an InputError lists the names."""
    OUTPUTS.key(name)
    kind = load_output(name)
    number = name.rpartition(":")[2]
    layer = read_whole(number, "output") if number.isdecimal() else model.layers
    if not 0 <= layer <= model.layers:
        raise InputError(
            f"layer {number} is not there: {model.name} has the hidden states 0 to {model.layers}", argument="output"
        )
    output = kind(name, layer)
    output.check(model)
    return output


def usual_output(model: Transformer) -> str:
    """The output that is observed unless another is named: logits where the model has them."""
    return "logits" if model.classifies or model.predicts_tokens else "last"


def load_output(name: str) -> type[Output]:
    """Load the class of an output."""
    kind = OUTPUTS.load(name)
    if not (isinstance(kind, type) and issubclass(kind, Output)):
        raise InputError(f"output={name!r} must be a class of outputs, got {kind!r}", argument="output")
    return kind


def trained() -> list[str]:
    """List the outputs that a loss can have a term of: those of the last hidden state, and a classifier's logits."""
    return [name for name in OUTPUTS if load_output(name).trains and not name.endswith(":K")]


def find_prefix(
    model: Transformer, output: Output, rows: Float[Tensor, "n d"], before: int, at: At, whole: Float[Tensor, " f"]
) -> Prefix | None:
    """Run the first tokens of a text, once; None where the model cannot go on from there, or gives something else than
    a `whole` run gave."""
    with torch.no_grad():
        prefix = model.prefix(rows[None, :before], at) if before else None
        if prefix is None:
            return None
        resumed = output.features(model, rows[None, before:], at, prefix)[0]
    return prefix if float((resumed.to(whole) - whole).norm()) <= _SAME * float(whole.norm()) else None
