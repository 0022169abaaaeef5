"""Results in files of earlier versions, read as this version writes them.

Formats in `EARLIER` counted words from 0 in the places that are listed with them; this version counts from 1
everywhere. No number is shifted in a file that does not say one of these formats.
"""

from typing import Any

# Earlier formats: the one that took their place, and where in them the numbers of words are.
EARLIER: dict[str, tuple[str, tuple[str, ...]]] = {
    "wordsway.sensitivity/2": ("wordsway.sensitivity/3", ("words.word", "explained.word", "text.word_ids")),
    "wordsway.draws/1": ("wordsway.draws/2", ("maps.words.word", "text.word_ids")),
    "wordsway.flip-radius/1": ("wordsway.flip-radius/2", ("words.word", "text.word_ids")),
    "wordsway.radius-profile/1": ("wordsway.radius-profile/2", ("words.word", "text.word_ids")),
    "wordsway.logit_ranges/1": ("wordsway.logit_ranges/2", ("words.word",)),
    "wordsway.substitution/1": ("wordsway.substitution/2", ("word",)),
    "wordsway.substitutions/1": ("wordsway.substitutions/2", ("top.word", "flipping.word", "tried.word")),
    "wordsway.layers/1": ("wordsway.layers/2", ("word",)),
    "wordsway.attention/1": ("wordsway.attention/2", ("word",)),
}
_RENAMED = {"word_ids": "word_numbers"}


def in_this_format(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a result in the format of this version; they are left as they are if they have it, or one
    that is not known."""
    known = values.get("format")
    if not isinstance(known, str) or known not in EARLIER:
        return values
    now, places = EARLIER[known]
    for place in places:
        values = _counted_from_one(values, place.split("."))
    return {**values, "format": now}


def _counted_from_one(values: Any, path: list[str]) -> Any:
    """Add 1 to the numbers at a place; what is not there is left to those who read the values to complain about."""
    name, *rest = path
    if isinstance(values, list):
        return [_counted_from_one(each, path) for each in values]
    if not isinstance(values, dict) or name not in values:
        return values
    new = _counted_from_one(values[name], rest) if rest else _plus_one(values[name])
    return {_RENAMED.get(key, key) if key == name else key: new if key == name else values[key] for key in values}


def _plus_one(value: Any) -> Any:
    if isinstance(value, list):
        return [_plus_one(each) for each in value]
    return value + 1 if type(value) is int else value  # None is no word
