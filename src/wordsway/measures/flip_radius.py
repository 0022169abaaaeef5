"""The public function `flip_radius`: how far must one word move before the prediction changes?"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from wordsway import __version__
from wordsway.maps.base import FeatureMap
from wordsway.maps.map_names import is_map
from wordsway.measures.flip_proof import Proof, prove
from wordsway.measures.flip_radii import FlipRadii, WordFlip
from wordsway.measures.lowest_probability import lowest_probabilities
from wordsway.measures.margins import Margins, class_names, readout_of, words_of_text
from wordsway.measures.opening import Source, is_model, over_texts
from wordsway.measures.real_flips import RealSearch, nearest_real
from wordsway.measures.words import describe
from wordsway.models.moving.map import PretrainedMap
from wordsway.search.effort import LOOK
from wordsway.search.nearest_flip import FlipEffort, FlipSearch, Nearest
from wordsway.support.cancelling import Cancel
from wordsway.support.clock import Clock
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS
from wordsway.support.plain_checks import check_effort, check_size
from wordsway.support.progress import Progress, takes_progress
from wordsway.support.public_gate import public
from wordsway.tokens import Tokens, as_text, find_words

REAL_WORDS = {"quick": 100, "default": 400, "thorough": 4000}  # nearest ones that are tried in a word's place
# Shares by which a move is lengthened until a plain run flips too; the large ones are for half precision.
_NUDGES = (0.0, 1e-6, 3e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1)


@public
@over_texts
@takes_progress("step")
def flip_radius(
    model: Any,
    text: str | Tokens | Tensor,
    word: str | int | None = None,
    *,
    radius: float = 1.0,
    readout: Any = None,
    bias: Any = None,
    classes: Sequence[str] | None = None,
    real_words: int | None = None,
    effects: bool = False,
    seconds: float | None = None,
    budget: int | str | None = None,
    at: str = "embeddings",
    seed: int = 0,
    tokenizer: Any = None,
    max_tokens: int | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = None,
    each: Callable[[WordFlip], None] | None = None,
    cancel: Cancel | None = None,
) -> FlipRadii:
    """Find, for each word of a text, the smallest move of its embedding that changes the prediction.

    `model` is a classifier or a causal model (its prediction is the next token): a name, a folder, a hub id, a live
    model with its `tokenizer`, or a `PretrainedMap`. It may also be a feature map or a function of a text, with a
    `readout` of your own: a matrix (classes x features), or a vector whose sign is the prediction; `bias` is added to
    the scores, and `classes` names them. `text` is one, encoded or not, rows (n, d), or a list (`TextResults`).

    `word` is one word: itself, or its number from 1 (of rows: the row's number). `radius` is the largest move allowed,
    in units of each word's own norm; 1 allows to erase the word, and little is left of it beyond. A word of several
    tokens is represented by the one that needs the smallest move. `budget` is the number of runs with a gradient for
    each token, or "quick", "default" or "thorough"; `real_words` how many real words are tried in a word's place, the
    nearest first, within about `seconds` for all words together, if given. With `effects`, the largest change of the
    prediction's probability within the radius is searched too, by any move and among the real words. `progress` is True
    to show it or called with (steps done, steps in all), `each` with each finished word, `cancel` before runs.
    """
    began = time.perf_counter()
    limit = check_limit(radius)
    check_effort(budget)
    phi, X, encoded = _opened(model, text, readout, at, tokenizer, max_tokens, device, seed)
    readings = readout_of(phi, phi(X).numel(), readout, bias)
    margins = Margins(phi, X, readings, class_names(phi, readings, classes), find_device(device))
    chosen = chosen_words(encoded, len(X), word)
    words = words_of_text(encoded, len(X))
    tokens = [token for k in chosen for token in words[k][2]]
    most = _words_to_try(real_words, budget)
    told = _teller(progress, cancel, search_steps(len(tokens), budget), LOOK * most, len(chosen))
    with phi.cancellable(cancel):
        found = find_flips(margins, tokens, limit, budget, seed, told)
        flips = {token: checked_flip(margins, token, found[token], limit) for token in tokens}
        moves = {token: None if flip is None else flip[0] for token, flip in flips.items()}
        lowest = lowest_probabilities(margins, tokens, moves, limit, budget, cancel) if effects else {}
        entries, deltas = [], {}
        for k, nearest in _real_words(margins, encoded, chosen, most, effects, seconds, cancel):
            entry, delta = _entry(margins, k, words[k], flips, found, nearest, limit, lowest)
            entries.append(entry)
            deltas |= {} if delta is None else {entry.word: delta}
            told(1.0, len(entries))
            if each:
                each(entry)
    return FlipRadii(
        prediction=margins.name(margins.predicted),
        probability=margins.probability(margins.scores),
        limit=limit,
        words=tuple(sorted(entries, key=lambda entry: (entry.radius is None, entry.radius, entry.word))),
        map=phi.config(),
        text=None if encoded is None else describe(encoded),
        gradients=sum(entry.gradients for entry in entries),
        seed=seed,
        seconds=time.perf_counter() - began,
        checked=f"plain map, {phi.plain_precision}",
        version=__version__,
        deltas=deltas,
        second=margins.second(),
        kind="next token" if isinstance(phi, PretrainedMap) and not phi.model.classifies else "class",
    )


def _teller(progress: Progress, cancel: Cancel | None, search: float, real: float, count: int) -> Callable[..., None]:
    """Make a function of the share of the search and the words that are done, which says how far that is: in runs, of
    which the search makes so many, and the real words of each of `count` words."""

    def told(share: float, words: int = 0) -> None:
        if cancel:
            cancel()
        if callable(progress):
            progress(round(share * search + words * real), round(search + count * real))

    return told


def _words_to_try(real_words: int | None, budget: int | str | None) -> int:
    """Say how many real words are tried in a word's place; unless given, the budget decides."""
    usual = REAL_WORDS[budget if isinstance(budget, str) else "default"]
    return check_size(usual if real_words is None else real_words, "real_words", least=0)


def _real_words(
    margins: Margins,
    encoded: Tokens | None,
    chosen: Sequence[int],
    most: int,
    every: bool,
    seconds: float | None,
    cancel: Cancel | None,
) -> Iterator[tuple[int, RealSearch]]:
    """Try real words in the place of each chosen word; each gets an equal share of the time that is left."""
    clock = Clock()
    for number, k in enumerate(chosen):
        if encoded is None:
            yield k, RealSearch(None, 0, "rows have no words")
            continue
        share = None if seconds is None else (seconds - clock.seconds()) / (len(chosen) - number)
        yield k, nearest_real(margins, encoded, k, most, cancel, every=every, seconds=share)


def check_limit(radius: Any) -> float:
    """Check the largest allowed radius."""
    if isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 < radius < math.inf:
        raise InputError(f"radius must be a positive number, got {radius!r}", argument="radius")
    return float(radius)


def search_steps(tokens: int, budget: int | str | None) -> float:
    """The runs that a search for the smallest moves of so many tokens makes, at most."""
    return _effort(budget).most * tokens


def _effort(budget: int | str | None) -> FlipEffort:
    if isinstance(budget, int):
        return FlipEffort().within(budget)
    return FlipEffort().scaled(BUDGETS[budget or "default"])


def find_flips(
    margins: Margins,
    tokens: Sequence[int],
    limit: float,
    budget: int | str | None,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> dict[int, Nearest]:
    """Search the smallest move of each token that changes the prediction."""
    norms = margins.X.norm(dim=1)
    search = FlipSearch(
        open=margins.open,
        X=margins.X,
        tokens=tokens,
        most=[limit * float(norms[token]) for token in tokens],
        effort=_effort(budget),
        seed=check_size(seed, "seed", least=0),
        size=margins.phi.side_by_side(len(margins.X), margins.X.shape[1], 1),
        progress=progress,
    )
    return search.run()


def checked_flip(margins: Margins, token: int, found: Nearest, limit: float) -> tuple[Tensor, int] | None:
    """Run a move once more through the plain map, a little longer where rounding needs that; None where it does not
    change the prediction there, or would have to be longer than allowed."""
    if found.delta is None:
        return None
    most = limit * float(margins.X[token].norm())
    for nudge in _NUDGES:
        delta = found.delta * (1 + nudge)
        to = margins.flips_to(margins.after(token, delta))
        if to is not None:
            return (delta, to) if float(delta.norm()) <= most else None
    return None


def _opened(
    model: Any, text: Any, readout: Any, at: str, tokenizer: Any, max_tokens: int | None, device: Any, seed: int
) -> tuple[FeatureMap, Tensor, Tokens | None]:
    """Load the model and encode the text, or check that a map and a text belong together."""
    source = Source(None, None, tokenizer, None, max_tokens, seed, device, called="model")
    if is_model(model) and not (isinstance(model, str) and is_map(model)):
        source = replace(source, output="logits", at=at)
    phi, (text,) = source.open(model, text)
    encoded = text if isinstance(text, Tokens) else None
    X = as_text(text, "text")
    phi.check(X)
    if encoded is not None:
        phi.check_tokens(encoded)
    return phi, X, encoded


def chosen_words(encoded: Tokens | None, n: int, word: str | int | None) -> list[int]:
    """The places of the words that are asked for, indices from 0."""
    if encoded is None:
        if word is None:
            return list(range(n))
        if isinstance(word, bool) or not isinstance(word, int) or not 1 <= word <= n:
            raise InputError(f"word must be the number of a row, 1 to {n}, got {word!r}", argument="word")
        return [word - 1]
    if word is not None:
        if isinstance(word, bool) or not isinstance(word, str | int):
            raise InputError(f"word must be a word or its number from 1, got {word!r}", argument="word")
        return find_words(encoded, word)
    if not encoded.pieces:
        raise InputError("the text has no words to move")
    return list(range(len(encoded.pieces)))


def _entry(
    margins: Margins,
    word: int,
    about: tuple[str, tuple[int, int], tuple[int, ...]],
    flips: dict[int, tuple[Tensor, int] | None],
    found: dict[int, Nearest],
    nearest: RealSearch,
    limit: float,
    lowest: dict[int, float | None],
) -> tuple[WordFlip, Tensor | None]:
    """Put together what is known of one word."""
    text, span, tokens = about
    norms = {token: float(margins.X[token].norm()) for token in tokens}
    own = {token: flips[token] for token in tokens}
    shares = {t: math.inf if flip is None else float(flip[0].norm()) / norms[t] for t, flip in own.items()}
    left = [value for t in tokens if (value := lowest.get(t)) is not None]
    token = min(tokens, key=lambda t: shares[t])
    flip = flips[token]
    proofs: dict[int, Proof] = {t: prove(margins, t, limit * norms[t]) for t in tokens}
    weakest = min(tokens, key=lambda t: proofs[t].radius / norms[t])
    entry = WordFlip(
        word=word + 1,
        text=text,
        span=span,
        tokens=tokens,
        token=token,
        norm=norms[token],
        radius=None if flip is None else shares[token],
        distance=None if flip is None else float(flip[0].norm()),
        to=None if flip is None else margins.name(flip[1]),
        certified=proofs[weakest].radius / norms[weakest],
        certified_failure=sum(proof.failure for proof in proofs.values()),
        reason=proofs[weakest].reason,
        real=nearest.real,
        tried=nearest.tried,
        untried=nearest.untried,
        gradients=math.ceil(sum(found[t].runs for t in tokens)),
        lowest=min(left) if left else None,
        best=nearest.best,
    )
    return entry, None if flip is None else flip[0]
