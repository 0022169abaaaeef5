"""The nearest real word, in the place of another, that changes a model's prediction."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.measures.flip_radii import RealFlip
from wordsway.measures.margins import Margins
from wordsway.models.moving.candidates import find_candidates
from wordsway.models.moving.map import PretrainedMap, rows_of
from wordsway.tokens import Tokens

_STRIDE = 128  # texts whose rows are made at once
_FIRST = 32  # words that are tried at once, the nearest ones; then more and more of them


@dataclass(frozen=True)
class RealSearch:
    """The nearest word that flips, how many were tried, and why none was, where that is so."""

    real: RealFlip | None
    tried: int
    untried: str | None = None


def nearest_real(
    margins: Margins, tokens: Tokens, word: int, most: int, cancel: Callable[[], None] | None = None
) -> RealSearch:
    """Try the words of the vocabulary in the place of one, the nearest first, until one changes the prediction.

    The distance is that of the word's row where moves enter the model. Only words of one token replace a word of one
    token: otherwise the text would have another length, and its rows no distance.
    """
    phi, (place, *others) = margins.phi, tokens.pieces[word]
    if not isinstance(phi, PretrainedMap) or tokens.ids is None:
        return RealSearch(None, 0, "this map has no vocabulary")
    if others:
        return RealSearch(None, 0, f"the word has {1 + len(others)} tokens")
    if not any(letter.isalnum() for letter in tokens.words[word]):
        return RealSearch(None, 0, "punctuation is not replaced")
    found = find_candidates(phi.model, tokens, word, same_length=True)
    if not len(found) or most < 1:
        return RealSearch(None, 0, "no candidate" if most else "not asked for")
    rows = _rows(phi, found.ids, place)
    moves = rows - margins.X[place]
    order = moves.norm(dim=1).argsort().tolist()[:most]
    values = margins.open([place])
    start, size = 0, _FIRST
    while start < len(order):
        if cancel:
            cancel()
        some = order[start : start + size]
        with torch.no_grad():
            margin = values(moves[some][None, :, None])[0]
        for index in [index for index, value in zip(some, margin.tolist(), strict=True) if value > 0]:
            to = margins.flips_to(margins.after(place, moves[index]))
            if to is None or not _spelled(phi, tokens, word, found.words[index], found.ids[index]):
                continue
            distance = float(moves[index].norm())
            size_of_word = float(margins.X[place].norm())
            real = RealFlip(found.words[index], distance / size_of_word, distance, margins.name(to))
            return RealSearch(real, order.index(index) + 1)
        start, size = start + size, 2 * size
    return RealSearch(None, len(order))


def _rows(phi: PretrainedMap, ids: tuple[tuple[int, ...], ...], place: int) -> Float[Tensor, "v d"]:
    """The row of each candidate, where moves enter the model."""
    made = []
    for start in range(0, len(ids), _STRIDE):
        made += [rows[place] for rows in rows_of(phi.model, ids[start : start + _STRIDE], phi.at)]
    return torch.stack(made).double()


def _spelled(phi: PretrainedMap, tokens: Tokens, word: int, name: str, ids: tuple[int, ...]) -> bool:
    """Whether the text with that word in it, as a user would type it, gives these ids."""
    low, high = tokens.spans[word]
    text = tokens.text[:low] + name + tokens.text[high:]
    most = None if tokens.full_length is None else len(ids)
    return phi.model.encoder.tokenize([text], most)[0].ids == ids
