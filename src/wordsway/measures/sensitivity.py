"""The public functions: how far can one token move the features of a text?"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway import __version__
from wordsway.maps.base import FeatureMap
from wordsway.maps.from_callable import as_map
from wordsway.measures.job import Job, find_lift, find_search_dtype
from wordsway.measures.listener import Listener
from wordsway.measures.measure_moves import Outcome, measure_moves
from wordsway.measures.opening import Source, over_texts
from wordsway.measures.results import Sensitivity, TokenSensitivity, summarize
from wordsway.measures.several_tokens import several_of
from wordsway.measures.token_choice import Choice, choose_moves
from wordsway.measures.words import describe, moves_of, radii_of, rank_words
from wordsway.support.cancelling import Cancel
from wordsway.support.devices import find_device, find_dtype
from wordsway.support.errors import InputError, ZeroError
from wordsway.support.memory import require
from wordsway.support.plain_checks import check_effort, check_size
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.tokens import Tokens, as_text, find_words


@public
@over_texts
@takes_progress("token")
def word_sensitivity(
    phi: Any,
    X: Any,
    token: int | Sequence[int] | Literal["all"] | None = None,
    *,
    word: str | int | None = None,
    output: str | None = None,
    at: str | None = None,
    tokenizer: Any = None,
    encoder: Any = None,
    max_tokens: int | None = None,
    seed: int = 0,
    radius: float | Sequence[float] | None = None,
    budget: int | str | None = None,
    joint: bool = False,
    special: bool = False,
    tokens_at_once: int | None = None,
    choose: str | None = None,
    ball: str = "each",
    certificate: bool = True,
    random_draws: int = 100,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str = torch.float32,
    progress: Progress = None,
    each: Callable[[TokenSensitivity], None] | None = None,
    cancel: Cancel | None = None,
) -> Sensitivity:
    """Bound the largest relative change norm(phi(X^i(delta)) - phi(X)) / norm(phi(X)) over norm(delta) <= radius.

    `phi` is a model (a name such as "sentiment", a folder, a hub id, or a live one with its `tokenizer`), of which
    `output` is observed (logits where it has them, else last) and which moves enter `at` ("embeddings"); or a map (a
    name such as "raf", with weights drawn by `seed`, or one with weights), or any function of rows. `X` is a text, an
    encoded one (`Tokens`), rows (n, d), or a list of texts, which gives `TextResults`. `encoder` embeds a text for a
    map (minilm), and `max_tokens` crops it.

    `word` is the word that moves: itself, or its number from 1; else `token` is one index, a list of them, or "all" for
    the supremum over every token: each is moved alone, on one and the same map. `radius` is one for all or one for each
    token; unless given it is sqrt(d), or a token's own norm for `Tokens` that were not normalised. `budget` is
    the evaluations of a token's search, or "quick", "default" or "thorough". The search runs in `dtype` on `device`;
    what it found is evaluated again in float64 (a pre-trained model: in its own precision). `certificate=False` and
    `random_draws=0` leave out the upper bound and the average case. `progress` is called with (searches done, searches
    in all), or True to show it; `each` with the bounds of every move, `cancel` around every evaluation and before each
    module of a model; what any of them raises ends the measurement.

    In an encoded text "all" means the tokens of its words, and `special=True` the others too. A word's sensitivity is
    that of its best token; with `joint=True`, its tokens move together within one ball of the largest of their radii.
    With `tokens_at_once`, so many tokens move together, each in a ball of its own or (`ball="shared"`) all in one.
    `choose` says which: "greedy" (unless given), "random" (unless given, of a lazy map) or "given": all of `token`.
    """
    began = time.perf_counter()
    source = Source(output, at, tokenizer, encoder, max_tokens, check_size(seed, "seed", least=0), device)
    phi, (X,) = source.open(phi, X)
    phi, text, encoded = _check_text(phi, X)
    moves = moves_of(_moving(encoded, word, token), len(text), encoded, joint, special)
    device = find_device(device)
    radii = radii_of(radius, text, own_norms=encoded is not None and not encoded.normalized)
    lift, dtype = find_lift(radii, text), find_dtype(dtype)
    job = Job(
        phi=phi,
        text=text,
        encoded=encoded,
        moves=moves,
        seed=seed,
        draws=check_draws(random_draws, text.shape[1]),
        radii=tuple(lift * value for value in radii),
        lift=lift,
        device=device,
        dtype=dtype if device.type == "mps" else find_search_dtype(radii, text, dtype),
        budget=check_effort(budget),
        certificate=certificate,
        several=several_of(tokens_at_once, choose, ball, joint, len(moves)),
        prepared=phi.prepare(text, device=device),
    )
    with phi.cancellable(cancel):
        choice = choose_moves(job, as_function(progress), cancel)
        outcome = measure_moves(choice.job, Listener(as_function(progress), each, cancel))
    return _pack(choice, outcome, began)


def _moving(encoded: Tokens | None, word: str | int | None, token: Any) -> Any:
    """Find the tokens that move for a word or a token that was asked for."""
    if word is None:
        return "all" if token is None else token
    if token is not None:
        raise InputError("word and token both say what moves; give one of them", argument="word")
    if encoded is None:
        raise InputError("word needs a text: rows alone have no words", argument="word")
    if isinstance(word, bool) or not isinstance(word, str | int):
        raise InputError(f"word must be a word or its number from 1, got {word!r}", argument="word")
    return [piece for place in find_words(encoded, word) for piece in encoded.pieces[place]]


def _check_text(
    phi: FeatureMap | Callable[[Tensor], Tensor], X: Any
) -> tuple[FeatureMap, Float[Tensor, "n d"], Tokens | None]:
    """Check that a map and a text belong together; the last of the three is the text with its words, if it has any."""
    phi, text = as_map(phi), as_text(X)
    phi.check(text)
    encoded = X if isinstance(X, Tokens) else None
    if encoded is not None:
        phi.check_tokens(encoded)
    return phi, text, encoded


def check_draws(draws: int, d: int) -> int:
    """Return the number of random moves to compare with, or raise an error where they do not fit in memory."""
    need = 64.0 * check_size(draws, "random_draws", least=0) * d  # of a move in float64, its projection and its change
    require(need, f"drawing {draws:,} random moves", "use fewer (--draws, random_draws=)")
    return draws


def _pack(choice: Choice, outcome: Outcome, began: float) -> Sensitivity:
    """Pack the moves of a measurement that began at a time as its result."""
    job, encoded, table = choice.job, choice.job.encoded, [move.bounds for move in outcome.moves]
    top = max(outcome.moves, key=lambda move: move.bounds.lower)
    deltas = tuple(move.delta / job.lift for move in outcome.moves)
    best = deltas[outcome.moves.index(top)]
    missing = next((entry.upper_reason for entry in table if entry.upper is None), None)
    ranked = encoded if job.several is None else None  # words have ranks where tokens moved alone
    return Sensitivity(
        lower=top.bounds.lower,
        upper=None if missing is not None else max(entry.upper for entry in table if entry.upper is not None),
        upper_failure=min(1.0, sum(entry.upper_failure for entry in table)),
        upper_reason=missing,
        token=top.bounds.token,
        delta=best[0] if len(best) == 1 else best,
        radius=top.bounds.radius,
        per_token=tuple(table),
        random=summarize(torch.cat([move.changes for move in outcome.moves])) if job.draws else None,
        evaluations=choice.spent + outcome.evaluations,
        check=job.check,
        map=job.phi.config(),
        n=job.text.shape[0],
        d=job.text.shape[1],
        seed=job.seed,
        seconds=time.perf_counter() - began,
        version=__version__,
        tokens=top.bounds.tokens,
        words=None if ranked is None else rank_words(ranked, table, job.phi.search_spread),
        together=None if job.several is None or choice.by is None else {"by": choice.by, "ball": job.several.ball},
        text=None if encoded is None else describe(encoded),
        deltas=deltas,
        spread=job.phi.search_spread,
    )


@public
def change(
    phi: Any,
    X: Any,
    X2: Any,
    *,
    output: str | None = None,
    tokenizer: Any = None,
    encoder: Any = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> float:
    """Compute norm(phi(X2) - phi(X)) / norm(phi(X)): how much a given substitution changes the features. The model or
    map and both texts are given as for `word_sensitivity`."""
    source = Source(output, None, tokenizer, encoder, None, seed, device)
    phi, (X, X2) = source.open(phi, X, X2)
    before, after = as_text(X), as_text(X2, "X2")
    if before.shape != after.shape:
        raise InputError(f"X and X2 must have one shape, got {tuple(before.shape)} and {tuple(after.shape)}")
    phi.check(before)
    base = phi(before)
    size = float(base.norm())
    if not size > 0:
        raise ZeroError("phi(X) is zero, so a change relative to it is not defined")
    return float((phi(after) - base).norm()) / size
