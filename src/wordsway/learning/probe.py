"""Word sensitivity of a few texts, for a model that is being trained: at its weights of this moment."""

import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsway import __version__
from wordsway.learning.borrowed import borrowed, unwrapped
from wordsway.measures.sensitivity import word_sensitivity
from wordsway.models.moving.map import PretrainedMap
from wordsway.support.dataframes import frame
from wordsway.support.errors import InputError
from wordsway.support.files import write_text
from wordsway.support.plain_checks import check_budget, check_size
from wordsway.support.public_gate import public
from wordsway.tokens import find_word


@dataclass(frozen=True)
class ProbedText:
    """The result for one text: `lower` is a lower bound of its word sensitivity, attained by moving the word
    `word_text`, whose number from 1 is `word`; `random` is the mean change under random moves of the same size. `tied`
    words, this one among them, have numbers that differ by less than the search's own spread."""

    text: str
    lower: float
    word: int
    word_text: str
    random: float
    tied: int = 1


@dataclass(frozen=True)
class ProbeReport:
    """Word sensitivity of some probe texts; `word_sensitivity` and `random` are means over them."""

    texts: tuple[ProbedText, ...]
    output: str
    radius: float
    budget: str
    seed: int
    seconds: float
    version: str = __version__

    @property
    def word_sensitivity(self) -> float:
        return math.fsum(found.lower for found in self.texts) / len(self.texts)

    @property
    def random(self) -> float:
        return math.fsum(found.random for found in self.texts) / len(self.texts)

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """Plain numbers for a log: the means, and `word_sensitivity_K` of text K, from 1."""
        each = {f"{prefix}word_sensitivity_{k}": found.lower for k, found in enumerate(self.texts, start=1)}
        means = {f"{prefix}word_sensitivity": self.word_sensitivity, f"{prefix}random_change": self.random}
        return {**means, **each}

    def rows(self) -> list[dict[str, Any]]:
        """One row a text."""
        return [asdict(found) for found in self.texts]

    def to_dataframe(self) -> Any:
        """One row a text (pandas)."""
        return frame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        means = {"word_sensitivity": self.word_sensitivity, "random": self.random}
        return {"format": "wordsway.probe/1", **means, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON. The file appears whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")


@public
def probe_sensitivity(
    model: Any,
    tokenizer: Any,
    texts: str | Sequence[str],
    *,
    output: str = "pooled",
    words: str | Sequence[str | int] = "all",
    radius: float = 1.0,
    budget: str = "quick",
    random_draws: int = 32,
    seed: int = 0,
    max_tokens: int | None = None,
) -> ProbeReport:
    """Measure how far one word can move a model, with its current weights, on each of some texts.

    For any training loop: the model may be in training mode, and its mode, gradients, `requires_grad` and the random
    state are afterwards what they were. The search is the same at every call, so that numbers of one training compare.

    `words` are "all", or one for each text, itself or its number from 1: much cheaper, as each word is searched.
    `radius` counts in the norm of the moved token's own row of hidden state 0. Outputs as for `PretrainedMap`.
    """
    listed = check_probes(texts, words)
    check_budget(budget)
    check_size(random_draws, "random_draws")
    check_radius(radius)
    live = unwrapped(model)
    began = time.perf_counter()
    with borrowed(live):
        # Opened anew: a map keeps what it computed, and weights have changed since the last time.
        phi = PretrainedMap(live, output, tokenizer=tokenizer)
        found = []
        for index, text in enumerate(listed):
            tokens = phi.encode(text, max_tokens)
            token: Any = "all" if isinstance(words, str) else list(tokens.pieces[find_word(tokens, words[index])])
            result = word_sensitivity(
                phi,
                tokens,
                token,
                radius=[radius * float(norm) for norm in tokens.X.norm(dim=1)],
                budget=budget,
                certificate=False,
                random_draws=random_draws,
                seed=seed,
            )
            assert result.words is not None and result.random is not None
            best = result.ranked_words[0]
            found.append(ProbedText(text, result.lower, best.word, best.text, result.random.mean, best.tied))
    return ProbeReport(tuple(found), output, float(radius), budget, seed, time.perf_counter() - began)


def check_radius(radius: Any) -> None:
    if isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 < radius < math.inf:
        raise InputError(f"radius must be a positive number, in norms of the word, got {radius!r}", argument="radius")


def check_probes(texts: Any, words: Any) -> list[str]:
    """The texts as a list, with a word for each of them or "all"."""
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"texts must be a text or a list of them, got {texts!r}", argument="texts")
    listed = [texts] if isinstance(texts, str) else list(texts)
    if not listed:
        raise InputError("texts is empty; give at least one text to probe", argument="texts")
    if isinstance(words, str):
        if words != "all":
            raise InputError(
                f'words={words!r} is not known; use "all", or a list with one word for each text', argument="words"
            )
    elif len(words) != len(listed):
        raise InputError(
            f'words must be "all" or one for each of the {len(listed)} texts, got {len(words)}', argument="words"
        )
    return listed
