"""The end of a model: how an output is made of rows that a norm gives, found by running the model and checked.

An output is computed for two short texts while all calls are recorded (`final_norm`). Then the calls are searched for
what the output says of itself (`Output.reads`): the rows of a norm, their mean, one of them, or a head's logits of such
a row. Equality is bit by bit, in both runs, so nothing is guessed from names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.ellipsoid_bound import Ellipsoid
from wordsway.models.moving.final_norm import Call, as_norm, recorded, roundoff
from wordsway.models.moving.output_head import OutputHead, as_head, given_head
from wordsway.models.moving.outputs.base import Output, Reading
from wordsway.models.running.model import At, Transformer

_TOKENS = 8  # of the texts that are tried: few, as only where tensors come from is asked
_READ: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": lambda state: state.flatten(1),
    "mean": lambda state: state.mean(1),
    "first": lambda state: state[:, 0],
    "last": lambda state: state[:, -1],
    "sizes": lambda state: state.norm(dim=-1),
}


@dataclass(frozen=True, eq=False)
class Ending:
    """Rows of `norms` (of several states, one norm for each), read as `reads` says, through a `head` where there is
    one. `alone`: the norm gives one row for the whole text. `keeps_past`: rows before a moved token stay as they
    are, bit by bit. `module` is the last of the norms."""

    norms: tuple[Ellipsoid, ...]
    reads: Reading
    module: Any
    head: OutputHead | None = None
    alone: bool = False
    keeps_past: bool = False

    def rows(self, model: Transformer, output: Output, rows: Float[Tensor, "n d"], at: At) -> Float[Tensor, "n d"]:
        """The rows that the norm gives for a text, by a run; float64 on the CPU."""
        with torch.no_grad(), recorded(self.module) as calls:
            output.features(model, rows[None], at)
        return calls[-1].output[0].to("cpu", torch.float64)


def find_ending(model: Transformer, output: Output, rows: Float[Tensor, "n d"], at: At) -> Ending | str:
    """Find how an output ends, or the reason why it has no bound."""
    if output.reads is None:
        return f"the output {output.name!r} does not say how it is made of rows that a norm gives"
    if output.layer == 0 and at == "embeddings":
        return "hidden state 0 is what moves, so nothing but the radius bounds it"
    first = rows[torch.arange(_TOKENS) % len(rows)] * (1 + torch.arange(_TOKENS) // len(rows))[:, None].to(rows)
    tried = [_run(model, output, probe, at) for probe in (first, first.flip(0).roll(1, -1))]
    endings = [_match(model, output, features, calls) for features, calls in tried]
    found = endings[0]
    for ending in endings[1:]:
        if isinstance(found, str) or isinstance(ending, str):
            return found if isinstance(found, str) else str(ending)
        if (found.module, found.reads, found.alone) != (ending.module, ending.reads, ending.alone):
            return f"different parts of the model give its {output.name} for different texts"
    assert not isinstance(found, str)
    return _with_past(model, output, first, at, found)


def _run(model: Transformer, output: Output, rows: Tensor, at: At) -> tuple[Tensor, list[Call]]:
    with torch.no_grad(), recorded(model.whole) as calls:
        return output.features(model, rows[None], at), calls


def _match(model: Transformer, output: Output, features: Tensor, calls: Sequence[Call]) -> Ending | str:
    """Find where the features of one run come from."""
    if output.reads == "logits":
        return _match_logits(model, features, calls)
    reads: Reading = "rows" if output.reads == "states" else output.reads or "rows"
    parts = features.chunk(model.layers, 1) if output.reads == "states" else [features]
    norms: list[Ellipsoid] = []
    module = None
    for number, part in enumerate(parts, 1):
        norm, module = _norm_of(part, reads, calls)
        if norm is None:
            where = f"hidden state {number if len(parts) > 1 else output.layer}"
            return f"{where} is not what a norm gives, so nothing bounds its rows"
        norms.append(norm)
    return Ending(tuple(norms), reads, module)


def _norm_of(part: Tensor, reads: str, calls: Sequence[Call]) -> tuple[Ellipsoid | None, Any]:
    """Find the norm whose rows, read so, are a part of the features."""
    for call in reversed(calls):
        if call.output.dim() == 3 and _same(_READ[reads](call.output), part):
            norm = as_norm(call)
            if norm is not None:
                return norm, call.module
    return None, None


def _match_logits(model: Transformer, features: Tensor, calls: Sequence[Call]) -> Ending | str:
    if model.head is not None:
        for call in reversed(calls):
            if call.output.dim() == 3 and _same(model.head.logits(call.output), features):
                norm = as_norm(call)
                if norm is not None:
                    return Ending((norm,), "mean", call.module, given_head(model.head, call.output.dtype))
        return "the state that the head reads is not what a norm gives"
    head = as_head(calls, features)
    if isinstance(head, str):
        return head
    for call in reversed(calls[: head.place]):
        reads = _reading(call, head.given)
        norm = None if reads is None else as_norm(call)
        if norm is not None and reads is not None:
            return Ending((norm,), reads, call.module, head, alone=call.output.dim() == 2)
    return "what the head reads is neither a row that a norm gives nor a mean of such rows"


def _reading(call: Call, vector: Float[Tensor, "1 d"]) -> Reading | None:
    """Find how a vector is made of a call's rows; None where it is not."""
    rows = call.output
    if rows.shape[-1] != vector.shape[-1] or rows.dtype != vector.dtype:
        return None
    if rows.dim() == 2:
        return "last" if _same(rows, vector) else None
    if rows.dim() != 3:
        return None
    for name in ("last", "first"):
        if _same(_READ[name](rows), vector):
            return name
    exact = rows.cpu().double()
    limit = 4 * roundoff(rows.dtype) * float(exact.norm(dim=-1).amax())  # a mean by whichever way it is computed
    return "mean" if float((vector.cpu().double() - exact.mean(1)).norm()) <= limit else None


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def _with_past(model: Transformer, output: Output, rows: Tensor, at: At, ending: Ending) -> Ending:
    """See whether rows before a moved one stay as they are, to the last bit; else they count as rows that change."""
    if not model.causal or ending.alone:
        return ending
    place = len(rows) // 2
    moved = rows.clone()
    moved[place] = -1.5 * rows[place].roll(1, -1)
    states = [ending.rows(model, output, each, at)[:place] for each in (rows, moved)]
    keeps = bool(torch.equal(*states))
    return Ending(ending.norms, ending.reads, ending.module, ending.head, ending.alone, keeps)
