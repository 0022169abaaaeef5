"""Real texts for cells: the text of a trial, the same in every process and whatever else is measured."""

from functools import lru_cache

from wordsway.datasets.labelled_texts import ShortageError, load_texts
from wordsway.datasets.text_sources import PUBLISHED_BELOW
from wordsway.datasets.training_sets import first_tokens, padded_tokens
from wordsway.support.errors import InputError
from wordsway.tokens import Tokens

_AT_ONCE = 16  # texts to read for the first trial


def passage(data: str, encoder: str, layer: int, padding: str, at_least: int, seed: int, trial: int) -> Tokens:
    """Text `trial` of a data set's shuffled texts of at least so many tokens; with padding as published, of those with
    fewer than 240, padded. Rows have norm sqrt(d)."""
    count = _AT_ONCE
    while count <= trial:
        count *= 2
    asked = (data, encoder, layer, padding, 0 if padding == "published" else at_least, seed)
    try:
        texts = _pool(*asked, count)
    except ShortageError as error:
        if error.found <= trial:
            short = f"fewer than {PUBLISHED_BELOW}" if padding == "published" else f"at least n={at_least}"
            raise InputError(
                f"{data!r} has {error.found} texts of {short} tokens, but trial {trial + 1} needs one more; "
                "use fewer trials, a smaller n or more texts"
            ) from None
        texts = _pool(*asked, error.found)
    return texts[trial]


@lru_cache(maxsize=4)
def _pool(data: str, encoder: str, layer: int, padding: str, at_least: int, seed: int, count: int) -> list[Tokens]:
    """The first texts in the order of `seed`: a larger count begins with those of a smaller one."""
    published = padding == "published"
    below, least = (PUBLISHED_BELOW, None) if published else (None, at_least)
    found = load_texts(data, count=count, seed=seed, shorter_than=below, at_least=least, balance=False, encoder=encoder)
    texts = list(found.texts)
    return padded_tokens(texts, encoder) if published else first_tokens(texts, at_least, encoder, layer)
