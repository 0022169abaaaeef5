"""Which output of a model is looked at, by the names that users give."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.running.model import At, Prefix, Transformer
from wordsway.support.errors import InputError

_SAME = 1e-4  # relative: by how much a run that reuses a prefix may differ from a whole one
CHOICES = "last, pooled, pooled:first, pooled:last, logits, layer:K or all-layers"


@dataclass(frozen=True)
class Output:
    """`name` as it was asked for; `layer` is the hidden state that it is made of (the last one, unless given)."""

    name: str
    kind: Literal["state", "states", "mean", "first", "final", "logits"]
    layer: int

    @property
    def has_rows(self) -> bool:
        """Whether it has a row for each token, so that two texts are comparable only if they are equally long."""
        return self.kind in ("state", "states")

    def features(
        self, model: Transformer, rows: Float[Tensor, "b n d"], at: At = "embeddings", prefix: Prefix | None = None
    ) -> Float[Tensor, "b features"]:
        """The output for some texts, flattened. With a `prefix`, `rows` are what comes after it."""
        if self.kind == "logits":
            return model.logits(rows, at, prefix)
        if self.kind == "states":
            states = model.states(rows, at, prefix)[1:]
            before = None if prefix is None else prefix.states[1:]
        else:
            states = (model.state(rows, self.layer, at, prefix),)
            before = None if prefix is None else (prefix.states[self.layer],)
        if before is not None:
            states = [
                torch.cat([old.expand(len(new), *old.shape[1:]), new], 1)
                for old, new in zip(before, states, strict=True)
            ]
        if self.kind in ("state", "states"):
            return torch.cat([state.flatten(1) for state in states], 1)
        (state,) = states
        return state.mean(1) if self.kind == "mean" else state[:, 0] if self.kind == "first" else state[:, -1]


def find_output(name: str, model: Transformer) -> Output:
    """An output by its name, or an InputError that lists the names."""
    simple = {"pooled": "mean", "pooled:mean": "mean", "pooled:first": "first", "pooled:last": "final", "last": "state"}
    if name in simple:
        return Output(name, simple[name], model.layers)  # pyright: ignore[reportArgumentType]
    if name == "all-layers":
        return Output(name, "states", model.layers)
    if name == "logits":
        if not (model.classifies or model.predicts_tokens):
            raise InputError(
                f"{model.name} has no logits: it neither classifies texts nor predicts the next token; use last, "
                "pooled, layer:K or all-layers, or the classifier that comes along (sentiment)"
            )
        return Output(name, "logits", model.layers)
    kind, _, number = name.partition(":")
    if kind == "layer" and number.isdecimal():
        if not 0 <= int(number) <= model.layers:
            raise InputError(f"layer {number} is not there: {model.name} has the hidden states 0 to {model.layers}")
        return Output(name, "state", int(number))
    raise InputError(f"output={name!r} is not known; use {CHOICES}")


def find_prefix(
    model: Transformer, output: Output, rows: Float[Tensor, "n d"], before: int, at: At, whole: Float[Tensor, " f"]
) -> Prefix | None:
    """The first tokens of a text, run once; None where the model cannot go on from there, or gives something else than
    a `whole` run gave."""
    with torch.no_grad():
        found = model.prefix(rows[None, :before], at) if before else None
        if found is None:
            return None
        resumed = output.features(model, rows[None, before:], at, found)[0]
    return found if float((resumed.to(whole) - whole).norm()) <= _SAME * float(whole.norm()) else None
