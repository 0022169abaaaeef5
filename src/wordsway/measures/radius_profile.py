"""The public function `radius_profile`: the change of each word against the radius."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from wordsway import __version__
from wordsway.certificates.certify import certify
from wordsway.maps.base import FeatureMap, View
from wordsway.maps.map_names import is_map
from wordsway.measures.flip_radius import chosen_words, flip_radius
from wordsway.measures.job import Job
from wordsway.measures.listener import Listener
from wordsway.measures.margins import words_of_text
from wordsway.measures.move_search import MoveSearch
from wordsway.measures.opening import Source, is_model, over_texts
from wordsway.measures.profile_result import RadiusProfile, WordProfile
from wordsway.measures.words import describe
from wordsway.models.moving.map import PretrainedMap
from wordsway.search.widening import Widening, WideningSearch
from wordsway.support.cancelling import Cancel
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS
from wordsway.support.plain_checks import check_budget, check_size
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.tokens import Tokens, as_text


@public
@over_texts
@takes_progress("radius")
def radius_profile(
    model_or_map: Any,
    text: str | Tokens | Tensor,
    radii: Sequence[float] = (0.01, 0.03, 0.1, 0.3, 1.0),
    word: str | int | None = None,
    *,
    output: str | None = None,
    flips: bool | None = None,
    certificate: bool = True,
    budget: str = "default",
    at: str = "embeddings",
    seed: int = 0,
    tokenizer: Any = None,
    max_tokens: int | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = None,
    each: Callable[[int, float], None] | None = None,
    cancel: Cancel | None = None,
) -> RadiusProfile:
    """Measure the largest change that each word can cause, for one radius after another.

    `model_or_map` is a model (name, folder, hub id, live with its `tokenizer`), of which `output` is observed (logits
    where it has them, else last), or a map (a name such as "raf", or one with weights) or a function of rows. `text` is
    a text, an encoded one, rows (n, d), or a list of texts, which gives `TextResults`. `radii` are in units of each
    word's own norm; they are searched from small to large, each beginning with what the one before found, so that the
    change never falls. `word` is one word, or its number from 1. With `flips`, the radius at which the prediction
    changes is searched as well (`flip_radius`); unless given, it is for classifiers. A word of several tokens has, at
    each radius, the change of its best token. `progress` is called with (steps done, steps in all), or True to show it;
    `each` with the number of each word, from 0, and its change at the smallest radius, when that radius is done.
    """
    began = time.perf_counter()
    shares = check_radii(radii)
    check_budget(budget)
    source = Source(
        output, None, tokenizer, None, max_tokens, check_size(seed, "seed", least=0), device, called="model_or_map"
    )
    if is_model(model_or_map) and not (isinstance(model_or_map, str) and is_map(model_or_map)):
        source = replace(source, at=at)
    phi, (text,) = source.open(model_or_map, text)
    X, encoded = as_text(text, "text"), text if isinstance(text, Tokens) else None
    phi.check(X)
    if encoded is not None:
        phi.check_tokens(encoded)
    words = words_of_text(encoded, len(X))
    chosen = chosen_words(encoded, len(X), word)
    tokens = [token for k in chosen for token in words[k][2]]
    job = _job(phi, X, encoded, tokens, seed, certificate, device)
    marks, prediction = _flips(phi, encoded, word, flips, shares[-1], budget, seed, device, cancel)
    tell = as_function(progress)

    def told(done: int, lower: Table) -> None:
        if each and done == 1:
            for k in chosen:
                each(k + 1, max(lower[token][0] for token in words[k][2]))
        if tell:
            tell(done, len(shares))

    with phi.cancellable(cancel):
        lower, upper, reasons, evaluations = _climb(job, tokens, shares, budget, told, cancel)
    entries = [_entry(k, words[k], lower, upper, reasons, marks.get(k + 1)) for k in chosen]
    return RadiusProfile(
        radii=shares,
        words=tuple(entries),
        prediction=prediction,
        map=phi.config(),
        text=None if encoded is None else describe(encoded),
        evaluations=evaluations,
        seed=seed,
        seconds=time.perf_counter() - began,
        checked=str(job.check),
        version=__version__,
        search_spread=phi.search_spread,
    )


def check_radii(radii: Any) -> tuple[float, ...]:
    """Check radii, and return them from small to large, each once."""
    if isinstance(radii, str) or not isinstance(radii, Sequence) or not len(radii):
        raise InputError(f"radii must be a list of positive numbers, got {radii!r}", argument="radii")
    for value in radii:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InputError(f"each radius must be a positive number, got {value!r}", argument="radii")
    return tuple(sorted({float(value) for value in radii}))


def _job(
    phi: FeatureMap,
    X: Tensor,
    encoded: Tokens | None,
    tokens: Sequence[int],
    seed: int,
    certificate: bool,
    device: torch.device | str,
) -> Job:
    """Make the measurement that all radii share."""
    place = find_device(device)
    return Job(
        phi=phi,
        text=X,
        encoded=encoded,
        moves=tuple((token,) for token in tokens),
        seed=seed,
        draws=0,
        radii=tuple(X.norm(dim=1).tolist()),
        device=place,
        dtype=torch.float64,
        budget=None,
        certificate=certificate,
        prepared=phi.prepare(X, device=place),
    )


Table = dict[int, list[float]]

# Of a word's norm: from here on words of a deep model are also searched as `word_sensitivity` does, from the places of
# others: a search that grows from small moves ends up to 30% lower at radius 1. At 0.5 either may be the better one.
_PLACES = 0.5


def _climb(
    job: Job,
    tokens: Sequence[int],
    shares: Sequence[float],
    budget: str,
    told: Callable[[int, Table], None],
    cancel: Cancel | None,
) -> tuple[Table, dict[int, list[float | None]], dict[int, str | None], int]:
    """Search all radii, and evaluate what was found by the plain map; `told` hears of each radius. Returns changes and
    bounds by token."""
    places = {token: position for position, token in enumerate(tokens)}
    views: dict[int, View] = {}

    def view(token: int) -> View:
        if cancel:
            cancel()
        if token not in views:
            views[token] = job.view(places[token])
        return views[token]

    search = WideningSearch(job.phi, job.text, tokens, view, Widening().scaled(BUDGETS[budget]), job.seed)
    at_places = 0
    lower: Table = {token: [] for token in tokens}
    upper: dict[int, list[float | None]] = {token: [] for token in tokens}
    reasons: dict[int, str | None] = dict.fromkeys(tokens)
    for done, share in enumerate(shares, start=1):
        search.at(share)
        if share >= _PLACES and view(tokens[0]).shares_places:
            at_places += _search_places(job, share, budget, view, search, cancel)
        for token, delta in search.deltas.items():
            reached = job.relative_change(view(token), delta[None])
            lower[token].append(max(reached, *lower[token][-1:], 0.0))
            if job.certificate:
                bound = certify(view(token), share * job.radii[token])
                upper[token].append(bound.upper)
                reasons[token] = reasons[token] or bound.reason
            else:
                upper[token].append(None)
                reasons[token] = "not asked for"
        told(done, lower)
    return lower, upper, reasons, math.ceil(search.evaluations) + at_places


def _search_places(
    job: Job, share: float, budget: str, view: Callable[[int], View], search: WideningSearch, cancel: Cancel | None
) -> int:
    """Search a large radius as `word_sensitivity` does, and offer what it finds. Returns the number of evaluations."""
    wide = replace(job, radii=tuple(share * norm for norm in job.radii), budget=budget)
    moves = MoveSearch(wide, Listener(cancel=cancel))
    found = moves.best(range(len(wide.moves)), [view(token) for (token,) in wide.moves], {})
    for (token,), best in zip(wide.moves, found, strict=True):
        search.offer(token, best.delta[0].to("cpu", torch.float64), best.value)
    return moves.scouted + sum(best.evaluations for best in found)


def _flips(
    phi: FeatureMap,
    encoded: Tokens | None,
    word: str | int | None,
    flips: bool | None,
    limit: float,
    budget: str,
    seed: int,
    device: torch.device | str,
    cancel: Cancel | None,
) -> tuple[dict[int, float], str | None]:
    """Find the radius at which each word changes the prediction, where that is asked for."""
    able = isinstance(phi, PretrainedMap) and encoded is not None
    if flips and not able:
        raise InputError("flips= needs a model that predicts, and a text with words", argument="flips")
    if not isinstance(phi, PretrainedMap) or encoded is None or flips is False:
        return {}, None
    if flips is None and not phi.model.classifies:
        return {}, None
    logits = PretrainedMap(phi.model, "logits", at=phi.at)
    options: dict[str, Any] = {"radius": limit, "real_words": 0, "budget": budget, "seed": seed, "device": device}
    result = flip_radius(logits, encoded, word, **options, cancel=cancel)
    return {entry.word: entry.radius for entry in result.words if entry.radius is not None}, result.prediction


def _entry(
    word: int,
    about: tuple[str, tuple[int, int], tuple[int, ...]],
    lower: Table,
    upper: dict[int, list[float | None]],
    reasons: dict[int, str | None],
    flip: float | None,
) -> WordProfile:
    """Put together what is known of one word."""
    text, span, tokens = about
    lines = list(zip(*(upper[token] for token in tokens), strict=True))
    bounds = [None if None in line else max(value for value in line if value is not None) for line in lines]
    for k in range(len(bounds) - 2, -1, -1):  # what bounds a larger ball bounds the smaller one
        here, larger = bounds[k], bounds[k + 1]
        bounds[k] = larger if here is None or (larger is not None and larger < here) else here
    missing = next((reasons[token] for token in tokens if reasons[token]), None)
    return WordProfile(
        word=word + 1,
        text=text,
        span=span,
        tokens=tokens,
        lower=tuple(max(line) for line in zip(*(lower[token] for token in tokens), strict=True)),
        upper=tuple(bounds),
        reason=missing if None in bounds else None,
        flip=flip,
    )
