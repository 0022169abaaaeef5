"""Limits of a TOML file, checked before it is parsed: the parser takes minutes and gigabytes for some short files."""

import re

from wordsway.support.errors import InputError

LARGEST = 1_000_000  # characters
DEEPEST = 50  # brackets within brackets
LONGEST_KEY = 20  # parts of a dotted key
_STRING = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'')
_ENDS_A_KEY = frozenset("\n=,[]{}#")


def check_shape(text: str, name: str) -> None:
    """Raise an InputError for a file that no study needs: too large, too deep, or with keys of too many parts."""
    if len(text) > LARGEST:
        raise InputError(f"{name} has {len(text):,} characters; a study has at most {LARGEST:,}")
    if _depth(text) > DEEPEST:
        raise InputError(f"{name} has brackets within brackets, more than {DEEPEST} deep; no study needs that")
    if _parts(text) > LONGEST_KEY:
        raise InputError(f"{name} has a key of more than {LONGEST_KEY} parts, as a.b.c; no study needs that")


def _depth(text: str) -> int:
    """Count how deep brackets are nested, outside of strings on one line."""
    depth = deepest = 0
    for character in _STRING.sub("", text):
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth = max(0, depth - 1)
    return deepest


def _parts(text: str) -> int:
    """Count the parts of the longest dotted key; a part is whatever stands between two dots and may be in a key."""
    run = longest = 1
    for part in text.split("."):
        run = 1 if not part or not _ENDS_A_KEY.isdisjoint(part) else run + 1
        longest = max(longest, run)
    return longest
