"""Which word of a text a token belongs to."""

import re
from collections.abc import Sequence

# A run of letters and digits, with apostrophes inside; one ideograph or kana; a run of anything else that is visible.
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{_IDEOGRAPH}]|(?:(?![{_IDEOGRAPH}])\w)+(?:['\u2019](?:(?![{_IDEOGRAPH}])\w)+)*|[^\w\s]+")


def split_words(text: str) -> list[tuple[int, int]]:
    """The spans of the words of a text, for encoders that have no tokenizer of their own."""
    return [match.span() for match in WORD.finditer(text)]


def group_words(
    text: str,
    own: Sequence[int | None],
    offsets: Sequence[tuple[int, int]],
    special: Sequence[bool],
) -> list[int | None]:
    """Word ids 0, 1, ... by the fast tokenizer's own ones (`own`), or None outside of every word.

    Some tokenizers (SentencePiece ones without a pre-tokenizer) see a whole text as one word: a word of theirs with
    white space inside is split into what `split_words` finds, and a token belongs to the word that it begins in.
    Words of white space alone are none.
    """
    spans: dict[int | None, tuple[int, int]] = {}
    for word, (start, end), added in zip(own, offsets, special, strict=True):
        if not added:
            low, high = spans.get(word, (start, end))
            spans[word] = (min(low, start), max(high, end))
    visible = {word: len(text[start:end].split()) for word, (start, end) in spans.items()}
    owner = _owners(text) if None in visible or any(count > 1 for count in visible.values()) else []
    numbers: dict[tuple[str, int], int] = {}
    found: list[int | None] = []
    for word, (start, end), added in zip(own, offsets, special, strict=True):
        key = None
        if not added and word is not None and visible[word] <= 1:
            key = ("own", word) if visible[word] else None
        elif not added:
            inside = next((number for number in owner[start:end] if number is not None), None)
            key = None if inside is None else ("split", inside)
        found.append(None if key is None else numbers.setdefault(key, len(numbers)))
    return found


def _owners(text: str) -> list[int | None]:
    """For each character, the number of its word; None for white space."""
    owner: list[int | None] = [None] * len(text)
    for number, (start, end) in enumerate(split_words(text)):
        owner[start:end] = [number] * (end - start)
    return owner
