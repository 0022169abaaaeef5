"""From words to tokens and back: what to move for a question about a text, and what the answers say about its words."""

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from wordsway.measures.ranks import shared_ranks
from wordsway.measures.results import TokenSensitivity, WordSensitivity
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_tokens
from wordsway.tokens import Tokens

LEAST_RADIUS = 1e-300  # smaller ones, and changes in proportion to them, are no longer ordinary float64 numbers


def moves_of(
    token: Any, n: int, encoded: Tokens | None, joint: bool = False, special: bool = False
) -> tuple[tuple[int, ...], ...]:
    """The sets of tokens to move, each together. A word of several pieces is moved piece by piece and, where `joint`,
    as a whole as well: its ball holds the pieces' own ones."""
    if encoded is None and (joint or special):
        raise InputError("joint= and special= are about words, so X must be an encoded text (ws.encode)")
    if isinstance(token, str):
        if token != "all":
            raise InputError(f"token={token!r} is not known; use an index, a list of them, or 'all'")
        chosen = tuple(k for k in range(n) if encoded is None or special or encoded.word_ids[k] is not None)
    else:
        chosen = check_tokens(token if isinstance(token, Sequence) else [token], n)
    moves = [(k,) for k in chosen]
    if joint and encoded is not None:
        moves += [word for word in encoded.pieces if len(word) > 1 and set(word) <= set(chosen)]
    if not moves:
        raise InputError("the text has no words to move; special tokens move with --special (special=True)")
    return tuple(moves)


def radii_of(radius: Any, text: Tensor, own_norms: bool) -> tuple[float, ...]:
    """Check radii that are given as one number or one for each token; unless given, they are the tokens' norms."""
    n = len(text)
    if radius is None:
        return radii_in_norms(1.0, text, own_norms)
    given = list(radius) if isinstance(radius, Sequence) and not isinstance(radius, str) else [radius] * n
    if len(given) != n:
        raise InputError(f"radius must be one number, or one for each of the {n} tokens; got {len(given)}")
    for value in given:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InputError(f"radius must be a positive number, got {value!r}")
        if value < LEAST_RADIUS:
            raise InputError(f"radius must be at least {LEAST_RADIUS}, got {value!r}", argument="radius")
    return tuple(float(value) for value in given)


def radii_in_norms(share: float, text: Tensor, own_norms: bool) -> tuple[float, ...]:
    """Compute a radius for each token of the text: a share of its own norm, or of sqrt(d)."""
    n, d = text.shape
    if own_norms:
        return tuple(share * size for size in text.double().norm(dim=1).tolist())
    return (share * math.sqrt(d),) * n


def rank_words(encoded: Tokens, table: Sequence[TokenSensitivity], spread: float = 0.0) -> tuple[WordSensitivity, ...]:
    """The bounds for each word that was measured whole or in part, in the order of the text.

    Several moves of one word: `lower` is the best of them. What bounds the word is the bound on its joint move, if that
    was made, else the largest over its pieces. Words that are not separated share ranks (`shared_ranks`).
    """
    found: list[tuple[int, TokenSensitivity, TokenSensitivity]] = []
    for word, pieces in enumerate(encoded.pieces):
        entries = [entry for entry in table if set(entry.tokens) <= set(pieces)]
        if not entries:
            continue
        widest = max(len(entry.tokens) for entry in entries)
        ceilings = [entry for entry in entries if len(entry.tokens) == widest]
        ceiling = max(ceilings, key=lambda entry: math.inf if entry.upper is None else entry.upper)
        found.append((word, max(entries, key=lambda entry: entry.lower), ceiling))
    ranks = shared_ranks([best.lower for _, best, _ in found], spread, [top.upper for _, _, top in found])
    return tuple(
        WordSensitivity(
            word=word + 1,
            text=encoded.words[word],
            span=encoded.spans[word],
            rank=rank,
            tokens=best.tokens,
            lower=best.lower,
            upper=ceiling.upper,
            upper_failure=min(1.0, sum(entry.upper_failure for entry in table if set(entry.tokens) <= set(pieces))),
            upper_reason=ceiling.upper_reason,
            tied=tied,
        )
        for (word, best, ceiling), (rank, tied) in zip(found, ranks, strict=True)
        for pieces in [encoded.pieces[word]]
    )


def describe(encoded: Tokens) -> dict[str, Any]:
    """Describe the measured text as JSON values; `word_numbers` has the number of each token's word, from 1."""
    return {
        "text": encoded.text,
        "tokens": list(encoded.tokens),
        "word_numbers": [None if word is None else word + 1 for word in encoded.word_ids],
        "special": encoded.special.tolist(),
        "offsets": [list(span) for span in encoded.offsets],
        **encoded.source,
    }
