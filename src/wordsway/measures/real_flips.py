"""Real words in the place of another: the nearest that changes a prediction, and the one that lowers it most."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.measures.flip_radii import RealChange, RealFlip
from wordsway.measures.margins import Margins
from wordsway.models.moving.candidates import Candidates, find_candidates
from wordsway.models.moving.map import PretrainedMap, rows_of
from wordsway.support.cancelling import Cancel
from wordsway.support.clock import Clock
from wordsway.tokens import Tokens

_STRIDE = 512  # texts whose rows are made at once
_FIRST = 32  # words that are tried at once, the nearest ones; then more and more of them
_SAME = 1e-3  # of a row's norm: rows of a whole text and of one that ends there may differ so much by rounding


@dataclass(frozen=True)
class RealSearch:
    """The nearest word that flips, how many were tried, why none was, where that is so, and of all that were tried the
    one that lowers the predicted class most."""

    real: RealFlip | None
    tried: int
    untried: str | None = None
    best: RealChange | None = None


def nearest_real(
    margins: Margins,
    tokens: Tokens,
    word: int,
    most: int,
    cancel: Cancel | None = None,
    *,
    every: bool = False,
    seconds: float | None = None,
) -> RealSearch:
    """Try the words of the vocabulary in the place of one, the nearest first, until one changes the prediction; with
    `every`, try all `most` of them and keep the best as well. `seconds` ends it sooner.

    The distance is that of the word's row where moves enter the model. Only words of one token replace a word of one
    token: otherwise the text would have another length, and its rows no distance.
    """
    clock = Clock()
    phi, (place, *others) = margins.phi, tokens.pieces[word]
    if not isinstance(phi, PretrainedMap) or tokens.ids is None:
        return RealSearch(None, 0, "this map has no vocabulary")
    if others:
        return RealSearch(None, 0, "several tokens")
    if not any(letter.isalnum() for letter in tokens.words[word]):
        return RealSearch(None, 0, "punctuation")
    found = find_candidates(phi.model, tokens, word, same_length=True)
    if not len(found) or most < 1:
        return RealSearch(None, 0, "no candidate" if most else "not asked for")
    moves = _rows(phi, tokens, found.ids, place, margins.X[place]) - margins.X[place]
    order = moves.norm(dim=1).argsort().tolist()[:most]
    values, trial = margins.open([place]), _Trial(margins, phi, tokens, word, found, moves)
    start, size, real, at, lowest = 0, _FIRST, None, 0, []
    while start < len(order) and (every or real is None):
        if cancel:
            cancel()
        if start and seconds is not None and clock.seconds() > seconds:
            break
        some = order[start : start + size]
        with torch.no_grad():
            margin = values(moves[some][None, :, None])[0].tolist()
        for index in [index for index, value in zip(some, margin, strict=True) if value > 0] if real is None else []:
            real = trial.flip(index)
            if real is not None:
                at = order.index(index) + 1
                break
        lowest += list(zip(margin, some, strict=True))
        start, size = start + size, 2 * size
    tried = min(start, len(order))
    return RealSearch(real, tried if every or real is None else at, None, trial.best(lowest) if every else None)


@dataclass(frozen=True, eq=False)
class _Trial:
    """Candidates for the place of one word, run once more through the plain model before they are named."""

    margins: Margins
    phi: PretrainedMap
    tokens: Tokens
    word: int
    found: Candidates
    moves: Float[Tensor, "v d"]

    @property
    def place(self) -> int:
        return self.tokens.pieces[self.word][0]

    def flip(self, index: int) -> RealFlip | None:
        """The candidate as a flip, if it is one when it is typed in."""
        to = self.margins.flips_to(self.margins.after(self.place, self.moves[index]))
        if to is None or not self.spelled(index):
            return None
        distance = float(self.moves[index].norm())
        norm = float(self.margins.X[self.place].norm())
        return RealFlip(self.found.words[index], distance / norm, distance, self.margins.name(to))

    def best(self, valued: Sequence[tuple[float, int]]) -> RealChange | None:
        """The candidate that lowers the predicted class most against the others, of those that can be typed in."""
        for _, index in sorted(valued, reverse=True):
            if self.spelled(index):
                scores = self.margins.after(self.place, self.moves[index])
                to = self.margins.name(int(scores.argmax()))
                return RealChange(self.found.words[index], self.margins.probability(scores), to)
        return None

    def spelled(self, index: int) -> bool:
        return _spelled(self.phi, self.tokens, self.word, self.found.words[index], self.found.ids[index])


def _rows(
    phi: PretrainedMap, tokens: Tokens, ids: tuple[tuple[int, ...], ...], place: int, own: Float[Tensor, " d"]
) -> Float[Tensor, "v d"]:
    """The row of each candidate, where moves enter the model. Where what comes after a word does not change its row,
    as in most embedding layers, the text is cut there."""
    model, stop = phi.model, place + 1
    assert tokens.ids is not None

    def made(some: Sequence[Sequence[int]]) -> Tensor:
        if phi.at != "embeddings":
            return torch.stack(rows_of(model, some, phi.at))[:, place]
        batch = torch.tensor([part[:stop] for part in some], device=model.device)
        return model.encoder.hidden(0, torch.ones_like(batch), input_ids=batch)[:, place].to("cpu", torch.float32)

    if float((made([tokens.ids])[0].double() - own).norm()) > _SAME * float(own.norm()):
        stop = len(tokens.ids)
    # Copies: a row that is cut out of a batch would keep all rows of its batch in memory.
    return torch.cat([made(ids[start : start + _STRIDE]).double() for start in range(0, len(ids), _STRIDE)])


def _spelled(phi: PretrainedMap, tokens: Tokens, word: int, name: str, ids: tuple[int, ...]) -> bool:
    """Whether the text with that word in it, as a user would type it, gives these ids."""
    low, high = tokens.spans[word]
    text = tokens.text[:low] + name + tokens.text[high:]
    most = None if tokens.full_length is None else len(ids)
    return phi.model.encoder.tokenize([text], most)[0].ids == ids
