"""The public function `substitutions`: which real word, in the place of one, moves a model's output most."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch

from wordsway import __version__
from wordsway.measures.opening import over_texts
from wordsway.models.loading.load import open_model
from wordsway.models.moving.candidates import Candidates, find_candidates
from wordsway.models.moving.map import PretrainedMap
from wordsway.models.moving.outcomes import Meter, Replacement
from wordsway.models.running.model import Transformer
from wordsway.search.guided import largest
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_budget, check_size
from wordsway.support.plotting import bars
from wordsway.support.progress import Progress, shown_progress
from wordsway.support.public_gate import public
from wordsway.support.result import Result
from wordsway.support.seeds import stream
from wordsway.tokens import Tokens, find_word

_MOST_WORK = 1e13  # multiply-adds, twice, up to which every candidate is tried unless told otherwise: a minute or two
_STRIDE = 128  # candidates between two signs of life
ALLOWANCE = {"quick": 200, "default": 800, "thorough": 3200}  # candidates that a guided search tries


@dataclass(frozen=True)
class Tried:
    """The search for replacements of one word: `exhaustive` if all `candidates` were evaluated, else guided by the
    values evaluated so far, so that a better one may have been missed. `skipped` says what was left out, and why.
    `flips` counts the evaluated candidates that changed the prediction."""

    word: int
    text: str
    candidates: int
    evaluated: int
    exhaustive: bool
    flips: int | None
    skipped: dict[str, str]


@dataclass(frozen=True, repr=False)
class Substitutions(Result):
    """Replacements, at most `listed` of each word, the largest change first. `prediction` and `probability` are those
    of the text as it is."""

    format: ClassVar[str] = "wordsway.substitutions/2"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("word", "before", "after"), "change")

    text: str
    model: str
    output: str
    top: tuple[Replacement, ...]
    flipping: tuple[Replacement, ...]
    tried: tuple[Tried, ...]
    prediction: str | None
    probability: float | None
    seed: int
    listed: int = 10
    version: str = __version__
    made: dict[str, Any] | None = None

    @property
    def best(self) -> Replacement:
        """The supremum over what was evaluated."""
        if not self.top:
            raise InputError("no word that was tried, typed in there, is read as a word of its own; is it punctuation?")
        return max(self.top, key=lambda found: found.change)

    @property
    def ranking(self) -> tuple[Replacement, ...]:
        """The best replacement of each word, the word that matters most first."""
        best: dict[int, Replacement] = {}
        for found in self.top:
            if found.word not in best or found.change > best[found.word].change:
                best[found.word] = found
        return tuple(sorted(best.values(), key=lambda found: -found.change))

    def summary(self) -> str:
        """Say the best replacement in a line."""
        if not self.top:
            return f"{self.model}, {self.output}: no replacement"
        best = self.best
        return f"{self.model}, {self.output}: {best.before!r} -> {best.after!r} changes {best.change:.3g}"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a replacement."""
        return [asdict(found) for found in self.top]

    def plot(self, ax: Any = None) -> Any:
        """Bars of the largest changes; hatched where the prediction flips. Returns the axes."""
        shown = self.top if len(self.tried) == 1 else self.ranking
        names = [f"{found.before} \u2192 {found.after}" for found in shown[:20]]
        marks = [bool(found.flips) for found in shown[:20]]
        title = f"{self.model}, {self.output}: real words that move it most"
        return bars(ax, names, [found.change for found in shown[:20]], marks, "relative change", title)


@public
@over_texts
def substitutions(
    model: Any,
    text: str | Tokens,
    word: str | int = "all",
    *,
    output: str | None = None,
    top: int = 10,
    candidates: Sequence[str] | None = None,
    pieces: bool = False,
    similar: float | None = None,
    same_length: bool | None = None,
    search: str = "auto",
    budget: str = "default",
    seed: int = 0,
    tokenizer: Any = None,
    max_tokens: int | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = None,
) -> Substitutions:
    """The supremum over real words: what replaces `word` (itself, its number from 1, or "all" but punctuation) and
    moves `output` most. A list of texts gives the results of all (`TextResults`).

    Candidates are the whole words of the model's vocabulary, or all of its `pieces`, or the words of a list
    (`candidates`); `similar` is the least cosine of their word embeddings with the old word's. Texts of another length
    are compared where the output allows it, unless `same_length`. `output` is "logits" where the model has them, else
    "pooled". `search="auto"` tries every candidate where that takes a minute or two, and otherwise is "guided": as many
    as `budget` allows ("quick", "default", "thorough"), chosen by what the model answered to others. `progress` is
    called with (texts done, texts in all), or True to show it; without it, a long list shows a bar on a terminal.
    """
    _check_options(search, budget, top, candidates)
    opened = open_model(model, tokenizer, device)
    default = "logits" if opened.classifies or opened.predicts_tokens else "pooled"
    phi = PretrainedMap(opened, output or default)
    tokens = encoded_for(phi, text, max_tokens)
    every = [k for k, name in enumerate(tokens.words) if any(letter.isalnum() for letter in name)]
    places = every if word == "all" else [find_word(tokens, word)]
    lengths = _same_length(phi, same_length)
    options = {"allowed": candidates, "pieces": pieces, "similar": similar, "same_length": lengths}
    choices = [find_candidates(opened, tokens, place, **options) for place in places]
    if not any(len(found) for found in choices):
        raise InputError(_nothing(tokens, places, choices, lengths, similar))
    meter = Meter(opened, phi.output, tokens)
    allowed = [_allowed(opened, tokens, found, search, budget, sum(map(len, choices))) for found in choices]
    total, done, best, flipping, tried = sum(allowed), 0, [], [], []
    with shown_progress(progress, "text", total) as report:
        for place, found, count in zip(places, choices, allowed, strict=True):
            outcomes: dict[int, Replacement] = {}

            def evaluate(part: list[int], place: int = place, found: Candidates = found, kept: Any = outcomes) -> Any:
                nonlocal done
                for start in range(0, len(part), _STRIDE):
                    some = part[start : start + _STRIDE]
                    kept.update(zip(some, meter.outcomes(place, found, some), strict=True))
                    done += len(some)
                    report(done, total)
                return [kept[index].change for index in part]

            if len(found):
                largest(found.points, evaluate, count, stream(seed, "substitutions", place))
            ordered = sorted(outcomes.values(), key=lambda item: -item.change)
            best += meter.spelled(ordered, found, pieces, top)
            turned = [item for item in ordered if item.flips]
            flipping += meter.spelled(turned, found, pieces, top)
            flips = len(turned) if opened.classifies and meter.before is not None else None
            counts = (len(found), len(outcomes), count >= len(found), flips)
            tried.append(Tried(place + 1, tokens.words[place], *counts, found.skipped))
    return Substitutions(
        text=tokens.text,
        model=opened.name,
        output=phi.output.name,
        top=tuple(best),
        flipping=tuple(flipping),
        tried=tuple(tried),
        prediction=meter.prediction,
        probability=meter.probability,
        seed=seed,
        listed=top,
    )


def encoded_for(phi: PretrainedMap, text: str | Tokens, max_tokens: int | None) -> Tokens:
    """Encode a text for a model; one that is encoded already is checked to be made for it."""
    tokens = text if isinstance(text, Tokens) else phi.encode(text, max_tokens)
    phi.check_tokens(tokens)
    return tokens


def _check_options(search: str, budget: str, top: int, candidates: Sequence[str] | None) -> None:
    if search not in ("auto", "exhaustive", "guided"):
        raise InputError(f"search={search!r} is not known; use auto, exhaustive or guided")
    check_budget(budget)
    check_size(top, "top")
    if isinstance(candidates, str) or (candidates is not None and not len(candidates)):
        raise InputError(f"candidates must be a list of words with something in it, got {candidates!r}")


def _same_length(phi: PretrainedMap, asked: bool | None) -> bool:
    chosen = phi.output.has_rows if asked is None else asked
    if phi.output.has_rows and not chosen:
        raise InputError(f"output={phi.output.name!r} has a row for each token, so it needs same_length")
    return chosen


def _allowed(model: Transformer, tokens: Tokens, found: Candidates, search: str, budget: str, count: int) -> int:
    weights = sum(part.numel() for part in model.encoder.blocks.parameters()) if model.encoder.blocks else 10**9
    affordable = 2.0 * weights * len(tokens) * count <= _MOST_WORK
    if search == "exhaustive" or (search == "auto" and affordable):
        return len(found)
    return min(len(found), ALLOWANCE[budget])


def _nothing(
    tokens: Tokens, places: Sequence[int], choices: Sequence[Candidates], same_length: bool, similar: float | None
) -> str:
    words = ", ".join(repr(tokens.words[k]) for k in places[:5])
    reasons = sorted({reason for found in choices for reason in found.skipped.values()})
    if similar is not None and not reasons:
        reasons = [f"none has a cosine of {similar:g} or more with it"]
    hint = (
        "; allow other lengths, with an output that has no row for each token (pooled, logits)" if same_length else ""
    )
    return f"no candidate can replace {words}" + (f" ({'; '.join(reasons)})" if reasons else "") + hint
