"""The public function `compare_draws`: words of a text on several maps, over independent draws of their weights."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from wordsway import __version__
from wordsway.measures.draws_result import DrawComparison, MapDraws, WordDraws
from wordsway.measures.opening import over_texts
from wordsway.measures.question import OpenQuestion, Question
from wordsway.measures.ranks import rank_ranges, shared_ranks
from wordsway.measures.results import Sensitivity, TokenSensitivity, WordSensitivity
from wordsway.measures.separation import separation
from wordsway.measures.words import describe
from wordsway.support.cancelling import Cancel
from wordsway.support.clock import Clock
from wordsway.support.errors import InputError
from wordsway.support.names import ENCODER, Budget
from wordsway.support.plain_checks import check_size
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.support.seeds import stream
from wordsway.tokens import Tokens

MAPS = ("raf", "rf")  # what is compared unless given: attention and random features
MOST_WEIGHTS = 10_000  # draws: a spread is known to 1% by then
WEIGHTS = 5  # draws unless given: the spread of five is known to a factor of two or so
# What a search shorter than the default one may miss, as a share of the value. On five sentences quick searches ended
# up to 8% below thorough ones (raf; rf 5%), default ones less than 1%.
SHORT_MISSES = 0.1


@public
@over_texts
@takes_progress("map")
def compare_draws(
    text: Any,
    maps: Sequence[str] = MAPS,
    *,
    weights: int = WEIGHTS,
    seed: int = 0,
    word: str | int | None = None,
    radius: float = 1.0,
    budget: int | str | None = None,
    certificate: bool = True,
    random_draws: int = 100,
    encoder: Any = ENCODER,
    layer: int = 0,
    seconds: float | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = None,
    cancel: Cancel | None = None,
) -> DrawComparison:
    """Measure every word of a text on several random maps, each with its weights drawn `weights` times.

    Words are compared within draws, and two are called separated only where the interval of their difference excludes
    zero; the intervals of all pairs of one map hold together with probability 95% (Tukey). What the search may miss (of
    `budget="quick"` 10%) counts against a separation. With one draw, two words are separated only where the lower bound
    of one is above the upper bound of the other.

    `maps` are names, with options as in "raf:heads=4". `seconds` limits the number of draws to what takes about that
    long, at least one; the result says how many there are. The other arguments are those of `Question`. `text` may
    be a list of them (`TextResults`). `progress` is True to show it, or called with (maps measured, maps in all).
    """
    if not isinstance(text, str | Tokens):
        message = "draws are compared by words: give a text, a list of texts, or an encoded text (ws.encode)"
        raise InputError(f"{message}, got {type(text).__name__}", argument="text")
    names = (maps,) if isinstance(maps, str) else tuple(maps)
    if not names or len(set(names)) < len(names):
        raise InputError(f"maps must be different names of maps, got {list(names)!r}", argument="maps")
    asked = Question(
        text, map=names[0], word=word, radius=radius, budget=budget, certificate=certificate, seed=seed, layer=layer,
        random_draws=random_draws, encoder=encoder, device=device,
    )  # fmt: skip
    return draws_of(asked, names, weights, seconds, as_function(progress), cancel)


def draws_of(
    asked: Question,
    names: Sequence[str],
    weights: int,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancel: Cancel | None = None,
    keep: Callable[[OpenQuestion, Sensitivity], Sensitivity] | None = None,
    each: Callable[[TokenSensitivity], None] | None = None,
) -> DrawComparison:
    """Answer a question about a map for several maps and draws; `each` hears the tokens of the first measurement, and
    `keep` completes it."""
    began = time.perf_counter()
    if check_size(weights, "weights") > MOST_WEIGHTS:
        raise InputError(f"weights={weights} is more than {MOST_WEIGHTS:,} draws, the most", argument="weights")
    tokens = asked.encode(asked.text) if isinstance(asked.text, str) else asked.text
    if not isinstance(tokens, Tokens):
        raise InputError("draws are compared by words: give a text, or an encoded one (ws.encode)", argument="text")
    asked = replace(asked, text=tokens, n=None, d=None, max_tokens=None)
    questions = [replace(asked, map=name) for name in names]  # a wrong name is told before any work
    seeds = draw_seeds(asked.seed, weights)
    table: dict[str, list[Sensitivity]] = {name: [] for name in names}
    first, count, once = None, weights, 0.0
    for k, drawn in enumerate(seeds):
        if k >= count:
            break
        for name, question in zip(names, questions, strict=True):
            clock = Clock()
            opened = replace(question, seed=drawn).open()
            result = opened.measure(each=each if first is None else None, cancel=cancel)
            table[name].append(result)
            once += clock.seconds()
            if first is None:
                first = result if keep is None else keep(opened, result)
            if progress:
                progress(sum(map(len, table.values())), count * len(names))
        if k == 0 and seconds is not None:
            count = max(1, min(weights, int(seconds / max(once, 1e-9))))
    assert first is not None
    return DrawComparison(
        maps=tuple(_map_draws(name, results, _may_miss(asked, results)) for name, results in table.items()),
        seeds=tuple(seeds[: len(table[names[0]])]),
        asked=weights,
        text=describe(tokens),
        n=first.n,
        d=first.d,
        radius=asked.radius,
        seconds=time.perf_counter() - began,
        version=__version__,
        first=first,
    )


def draw_seeds(seed: int, weights: int) -> list[int]:
    """The seeds of the draws: the given one, then others that belong to it, so that no two seeds share a draw."""
    return [seed, *(stream(seed, "weights", k) % 2**31 for k in range(1, weights))]


def _may_miss(asked: Question, results: Sequence[Sensitivity]) -> float:
    """Say which share of a word's value the search may miss: luck of the search must not look like a difference."""
    short = asked.budget not in (None, Budget.default.value, Budget.thorough.value)
    return max(results[0].spread, SHORT_MISSES if short else 0.0)


def _map_draws(name: str, results: Sequence[Sensitivity], misses: float) -> MapDraws:
    """Put the draws of one map together. The search may miss a share `misses` of a value."""
    rows: list[list[WordSensitivity]] = [list(words) for words in zip(*(r.words or () for r in results), strict=True)]
    lower = [[word.lower for word in row] for row in rows]
    upper = [[word.upper for word in row if word.upper is not None] for row in rows]
    means = [math.fsum(row) / len(row) for row in lower]
    apart = separation(lower)
    margin = None if apart is None else apart.margin + misses * max(means)
    if len(results) == 1:
        ranks = shared_ranks([row[0] for row in lower], results[0].spread, [row[0].upper for row in rows])
    else:
        ranks = rank_ranges(len(rows), lambda i, j: margin is not None and means[i] - means[j] > margin)
    return MapDraws(
        name=name,
        map={key: value for key, value in results[0].map.items() if key != "seed"},
        words=tuple(
            WordDraws(
                word=row[0].word,
                text=row[0].text,
                span=row[0].span,
                rank=rank,
                tied=tied,
                mean=mean,
                sd=_deviation(values, mean),
                lower=tuple(values),
                upper=tuple(bounds) if len(bounds) == len(row) else (),
            )
            for row, (rank, tied), mean, values, bounds in zip(rows, ranks, means, lower, upper, strict=True)
        ),
        random=tuple(result.random.mean for result in results if result.random is not None),
        margin=margin,
        misses=misses,
        reason=next((result.upper_reason for result in results if result.upper is None), None),
    )


def _deviation(values: Sequence[float], mean: float) -> float:
    if len(values) < 2:
        return 0.0
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
