"""Estimates, before a search of a pre-trained model, of how long it takes: its runs, times the time of one."""

import math
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from wordsway.maps.base import FeatureMap, View
from wordsway.measures.flip_radius import REAL_WORDS, chosen_words, search_steps
from wordsway.measures.question import OpenQuestion
from wordsway.measures.text_answer import SMALL, predicts
from wordsway.models.moving.map import PretrainedMap
from wordsway.search.effort import LOOK, Effort
from wordsway.search.landmarks import landmarks_cost
from wordsway.search.places import WORTH_IT
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS, STEP
from wordsway.support.seeds import generator
from wordsway.tokens import Tokens

_SIDE_BY_SIDE = 4  # deltas that are timed together
_SLOW = 0.25  # seconds of one run, from which a batch of them is not timed as well
# Share of the evaluations that an effort allows which a search uses; rounds end when they gain little. "quick" was
# counted on one sentence of 11 tokens (1,594 of 1,848), "default" is inferred from the time of one search of it, and
# "thorough" is a guess that follows it. An evaluation took 1.8 times as long as a timed one there, on a busy machine.
_USED = {"quick": 0.85, "default": 0.45, "thorough": 0.4}
_AROUND = 1.6


def expected_seconds(opened: OpenQuestion) -> float | None:
    """Estimate how long a question about a pre-trained model takes; None for another map, which soon shows its pace."""
    asked = opened.question
    if asked.model is None or not isinstance(opened.X, Tokens) or asked.joint or asked.tokens_at_once is not None:
        return None
    moving = opened.moving
    tokens = list(moving) if isinstance(moving, list) else [k for pieces in opened.X.pieces for k in pieces]
    return search_seconds(opened.phi, opened.X.X, tokens, opened.radii, asked.budget, asked.device)


def search_seconds(
    phi: FeatureMap,
    X: Tensor,
    tokens: Sequence[int],
    radii: Sequence[float],
    budget: int | str | None,
    device: torch.device | str,
) -> float:
    """Estimate how long the search of these tokens takes."""
    each = _AROUND * time_of_run(phi, X, tokens[0], radii[tokens[0]], device)
    if isinstance(budget, int):
        return each * budget * len(tokens)
    effort = Effort().for_few(len(tokens)).scaled(BUDGETS[budget or "default"])
    scouting = effort.rounds >= WORTH_IT and len(tokens) >= effort.core
    landmarks = landmarks_cost(phi, X, radii) if scouting else 0.0
    return each * (evaluations_used(len(tokens), budget or "default") + landmarks)


def evaluations_used(tokens: int, budget: str) -> float:
    """Estimate how many evaluations the search of so many tokens makes."""
    return _USED[budget] * Effort().for_few(tokens).scaled(BUDGETS[budget]).most(tokens)


def flip_seconds(
    phi: PretrainedMap,
    text: Tokens,
    word: str | int | None,
    budget: str,
    real_words: int | None,
    device: str,
    most_seconds: float = math.inf,
) -> float:
    """Estimate how long it takes to find the smallest moves that change a prediction, and real words that do, within
    `most_seconds`."""
    words = chosen_words(text, len(text), word)
    tokens = [token for k in words for token in text.pieces[k]]
    tried = REAL_WORDS[budget] if real_words is None else real_words
    each = _AROUND * time_of_run(phi, text.X, tokens[0], float(text.X[tokens[0]].norm()), device)
    return each * search_steps(len(tokens), budget) + min(most_seconds, each * LOOK * tried * len(words))


def time_of_texts(
    phi: PretrainedMap,
    texts: Sequence[str],
    radius: float | None = None,
    budget: int | str | None = None,
    max_tokens: int | None = None,
) -> float:
    """Estimate how long the answers about many texts take: the shortest, the middle and the longest one are timed, and
    those between lie between by their length. A text that cannot be encoded takes no time."""
    ordered = sorted(texts, key=len)
    known: dict[int, float] = {}
    for text in (ordered[0], ordered[len(ordered) // 2], ordered[-1]):
        if len(text) not in known:
            known[len(text)] = _time_of_text(phi, text, radius, budget, max_tokens)
    lengths = sorted(known)
    total = 0.0
    for text in ordered:
        above = next(k for k, length in enumerate(lengths) if length >= len(text))
        low, high = lengths[max(0, above - 1)], lengths[above]
        share = 1.0 if high == low else (len(text) - low) / (high - low)
        total += known[low] + share * (known[high] - known[low])
    return total


def _time_of_text(
    phi: PretrainedMap, text: str, radius: float | None, budget: int | str | None, max_tokens: int | None
) -> float:
    try:
        tokens = phi.encode(text, max_tokens)
    except InputError:
        return 0.0
    if not tokens.pieces:
        return 0.0
    if budget == STEP:
        return len(tokens.pieces) * time_of_run(phi, tokens.X, tokens.pieces[0][0], 0.1, "cpu")
    if predicts(phi):
        named = budget if isinstance(budget, str) else "default"
        seconds = flip_seconds(phi, tokens, None, named, None, "cpu")
        return seconds if not isinstance(budget, int) else seconds * search_steps(1, budget) / search_steps(1, None)
    norms = [float(norm) * (SMALL if radius is None else radius) for norm in tokens.X.norm(dim=1)]
    pieces = [k for piece in tokens.pieces for k in piece]
    return search_seconds(phi, tokens.X, pieces, norms, budget, "cpu")


def time_of_run(phi: FeatureMap, X: Tensor, token: int, radius: float, device: torch.device | str) -> float:
    """Time one run of a model with its gradient, alone or, where that is quick, in a batch."""
    view = phi.prepare(X.double(), device=torch.device(device)).view((token,), dtype=torch.float32)
    alone = _timed(phi, view, radius, 1, X.shape[1])
    if alone > _SLOW:  # the first run also allocates memory and chooses kernels
        alone = min(alone, _timed(phi, view, radius, 1, X.shape[1]))
    return alone if alone > _SLOW else _timed(phi, view, radius, _SIDE_BY_SIDE, X.shape[1])


def _timed(phi: FeatureMap, view: View, radius: float, count: int, d: int) -> float:
    delta = torch.randn(1, count, 1, d, generator=generator(0, "timing"))
    delta = (delta * (radius / delta.norm(dim=-1, keepdim=True))).to(view.device, view.dtype).requires_grad_()
    began = time.perf_counter()
    phi.sq_norms([view])(delta).sum().backward()
    return (time.perf_counter() - began) / count
