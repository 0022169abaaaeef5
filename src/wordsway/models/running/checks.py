"""Checks that a model must pass before its numbers mean anything, on two short texts when it is loaded."""

from collections.abc import Sequence

import torch
from torch import Tensor

from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.support.errors import InputError, one_line

_TEXTS = ("One word can move a model, and we would like to know how far.", "Yes, it can.")
_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-6}  # of a row's norm, for rounding; half precision gets 0.05


def check_encoder(encoder: PretrainedEncoder) -> PretrainedEncoder:
    """Stopping early gives the hidden states of a whole run; `inputs_embeds` give what ids give; and a padded text
    gives what it gives alone. Finds the position ids under which the last one holds. Raises an InputError otherwise."""
    try:
        ids = [part.ids for part in encoder.tokenize(_TEXTS)]
        encoder.states(ids, 0)  # whether the tokenizer's ids are the model's
        alone = [_run(encoder, [part], "right")[0] for part in ids]
    except InputError:
        raise
    except Exception as error:  # a configuration that does not fit the weights raises many kinds of errors
        raise InputError(f"{encoder.name} cannot run a short text: {one_line(error)}") from error
    _choose_stop(encoder, ids[0], alone[0])
    _check_embeds(encoder, ids[0], alone[0])
    _choose_positions(encoder, ids, alone)
    return encoder


def _choose_stop(encoder: PretrainedEncoder, ids: Sequence[int], whole: Tensor) -> None:
    """Choose whole runs where the blocks' inputs are not the hidden states: they are slower but right."""
    batch, mask = encoder.pad_batch([ids], "right")
    if len(whole) != encoder.layers + 1:
        raise InputError(f"{encoder.name} has {len(whole)} hidden states, but says that it has {encoder.layers} layers")
    try:
        early = torch.stack([encoder.hidden(k, mask, input_ids=batch)[0] for k in range(encoder.layers + 1)])
    except (InputError, KeyError):
        early = None
    if early is None or not _same(early, whole):
        encoder.blocks = None


def _check_embeds(encoder: PretrainedEncoder, ids: Sequence[int], whole: Tensor) -> None:
    batch, mask = encoder.pad_batch([ids], "right")
    try:
        embeds = encoder.model.get_input_embeddings()(batch).detach()
        by_embeds = torch.stack(encoder.all_hidden(mask, inputs_embeds=embeds))[:, 0]
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InputError(f"{encoder.name} takes no inputs_embeds, which wordsway moves: {error}") from None
    if not _same(by_embeds, whole):
        raise InputError(
            f"{encoder.name} gives other hidden states for inputs_embeds than for the ids they stand for "
            f"(relative difference {difference(by_embeds, whole):.1e}), so a moved embedding is not a moved word; "
            "does it scale or add to embeddings only when it is given ids?"
        )


def _choose_positions(encoder: PretrainedEncoder, ids: Sequence[Sequence[int]], alone: Sequence[Tensor]) -> None:
    """The first kind of position ids under which padding on either side changes nothing; or else on the side that the
    tokenizer pads."""
    side = encoder.tokenizer.padding_side
    good: dict[int | None, set[str]] = {}
    for offset in [None, 0, encoder.pad + 1] if "position_ids" in encoder.accepts else [None]:
        encoder.first_position = offset
        # A single text must not change either: a wrong first position shifts all texts alike.
        if offset is None or _same(_run(encoder, ids[:1], side)[0], alone[0]):
            good[offset] = {s for s in ("left", "right") if all(map(_same, _run(encoder, ids, s), alone))}
        if len(good.get(offset, ())) == 2:
            break
    for encoder.first_position, sides in sorted(good.items(), key=lambda item: -len(item[1])):
        if side in sides:
            return
    other = {"left": "right", "right": "left"}[side]
    advice = f"set tokenizer.padding_side = {other!r}" if any(good.values()) else "encode texts one by one"
    raise InputError(
        f"{encoder.name} gives a text other hidden states when it is padded on the {side} than when it stands alone, "
        f"even with explicit position ids; {advice}"
    )


def _run(encoder: PretrainedEncoder, ids: Sequence[Sequence[int]], side: str) -> list[Tensor]:
    """For each text, (layers + 1, n, d) hidden states without the padding."""
    batch, mask = encoder.pad_batch(ids, side)
    states = torch.stack(encoder.all_hidden(mask, input_ids=batch))
    return [states[:, row, keep] for row, keep in enumerate(mask.bool())]


def _same(left: Tensor, right: Tensor) -> bool:
    return difference(left, right) <= _TOLERANCE.get(right.dtype, 0.05)


def difference(left: Tensor, right: Tensor) -> float:
    """The largest distance of two rows, against the norm of the right one; infinite where one is not a number."""
    if left.shape != right.shape:
        return float("inf")
    gap = (left - right).float().norm(dim=-1) / right.float().norm(dim=-1).clamp(min=1e-30)
    return float(gap.nan_to_num(nan=float("inf")).max())
