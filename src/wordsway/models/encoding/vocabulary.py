"""A text with one word replaced by random words of the encoder's vocabulary."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from wordsway.models.encoding.encode import find_encoder
from wordsway.models.encoding.synthetic import SyntheticEncoder
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_size
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.support.seeds import generator, normal
from wordsway.tokens import Tokens, find_word, normalize_rows, share_direction

MARKS = ("##", "\u0120", "\u2581")  # how vocabularies mark a continued word, or a space before one


@public
@takes_progress("text")
def random_words(
    tokens: Tokens,
    word: str | int,
    count: int = 100,
    *,
    encoder: Any = "minilm",
    tokenizer: Any = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: Progress = None,
) -> list[Tokens]:
    """`count` texts like `tokens`, each with a random word in the place of `word` (itself, or its number from 1), and
    all else as it was.

    Each piece is replaced by a piece of its kind (a word's beginning by a beginning, a continuation by one) of two or
    more letters, drawn uniformly from the vocabulary. `encoder` must be the one that made `tokens`. `progress` is
    called with (texts made, texts in all), or True to show it.
    """
    check_size(count, "count")
    at = find_word(tokens, word)
    found = find_encoder(encoder, tokenizer, find_device(device))
    if isinstance(found, SyntheticEncoder):
        return _synthetic(found, tokens, at, count, seed)
    if not isinstance(found, PretrainedEncoder) or tokens.ids is None:
        raise InputError(f"{found.name} has no vocabulary to draw random words from")
    places = tokens.pieces[at]
    drawn = torch.empty(count, len(places), dtype=torch.long)
    vocabulary = pieces_by_kind(found)
    for column, place in enumerate(places):
        choices = torch.tensor(vocabulary[kind_of(tokens.tokens[place])])
        picks = torch.randint(len(choices), (count,), generator=generator(seed, "random_words", column))
        drawn[:, column] = choices[picks]
    ids = [list(tokens.ids) for _ in range(count)]
    for text, pieces in zip(ids, drawn.tolist(), strict=True):
        for place, piece in zip(places, pieces, strict=True):
            text[place] = piece
    made, tell = [], as_function(progress)
    for start in range(0, count, 32):
        rows = found.states(ids[start : start + 32], tokens.source["layer"])
        made += [_with_word(tokens, at, text, X, found) for text, X in zip(ids[start : start + 32], rows, strict=True)]
        if tell:
            tell(len(made), count)
    return made


def _with_word(tokens: Tokens, word: int, ids: Sequence[int], X: torch.Tensor, encoder: PretrainedEncoder) -> Tokens:
    names = tuple(encoder.tokenizer.convert_ids_to_tokens(list(ids)))
    new = "".join(letters_of(names[place]) for place in tokens.pieces[word])
    return replace(_replaced(tokens, word, new, X), tokens=names, ids=tuple(ids))


def _replaced(tokens: Tokens, word: int, new: str, X: torch.Tensor) -> Tokens:
    """The text with another word at `word`, and rows X; all pieces of the new word stand for the whole of it."""
    start, end = tokens.spans[word]
    shift = len(new) - (end - start)
    offsets = [(a + shift, b + shift) if a >= end and b > a else (a, b) for a, b in tokens.offsets]
    for place in tokens.pieces[word]:
        offsets[place] = (start, start + len(new))
    return replace(
        tokens,
        X=normalize_rows(X) if tokens.normalized else X,
        text=tokens.text[:start] + new + tokens.text[end:],
        offsets=tuple(offsets),
    )


def _synthetic(encoder: SyntheticEncoder, tokens: Tokens, word: int, count: int, seed: int) -> list[Tokens]:
    made = []
    for k in range(count):
        row = normal((1, encoder.d), seed, "random_words", k, dtype=torch.float64)
        X = tokens.X.clone()
        row = share_direction(row, encoder.correlation, encoder.seed)[:, : X.shape[1]]
        X[tokens.pieces[word][0]] = normalize_rows(row)[0] if tokens.normalized else row[0]
        made.append(_replaced(tokens, word, f"random{k}", X))
    return made


def pieces_by_kind(encoder: PretrainedEncoder) -> dict[str, list[int]]:
    """Ids of pieces of two or more letters, by kind."""
    found: dict[str, list[int]] = {}
    special = set(encoder.tokenizer.all_special_ids)
    for piece, number in sorted(encoder.tokenizer.get_vocab().items(), key=lambda item: item[1]):
        letters = letters_of(piece)
        if number not in special and len(letters) > 1 and letters.isalpha():
            found.setdefault(kind_of(piece), []).append(number)
    return found


def replacements_of(encoder: PretrainedEncoder, old: str, pieces: bool = False) -> list[int]:
    """Ids of whole words like the one that begins with the piece `old`; or all pieces of two letters or more."""
    by_kind = pieces_by_kind(encoder)
    if pieces:
        return sorted(number for group in by_kind.values() for number in group)
    kind = kind_of(old) if kind_of(old) != "##" else ""
    whole = by_kind.get(kind, [])
    marks = [mark for mark in by_kind if mark not in ("", "##")]
    if kind == "" and marks:  # at the very start of a text; a whole word is one that also stands after a space
        names = encoder.tokenizer.convert_ids_to_tokens
        spaced = {letters_of(name) for mark in marks for name in names(by_kind[mark])}
        whole = [number for number, name in zip(whole, names(whole), strict=True) if name in spaced]
    return whole


def kind_of(piece: str) -> str:
    """The mark in front of a piece."""
    return next((mark for mark in MARKS if piece.startswith(mark)), "")


def letters_of(piece: str) -> str:
    """A piece without its mark."""
    return piece.removeprefix(kind_of(piece))
