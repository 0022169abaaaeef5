"""The result of `flip_radius`: for each word, how far it must move before the prediction changes."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from wordsway.measures.differences import Measured, ranks_of
from wordsway.measures.ranks import with_ranks, without_ranks
from wordsway.support.digits import count_of, probability_name, three
from wordsway.support.plotting import BLUE, GREEN, GREY, MOST_BARS, ORANGE, new_axes, plain
from wordsway.support.result import Result, subject_of_map

if TYPE_CHECKING:
    from torch import Tensor  # results are read and shown without it

# A radius found may be too long by so much: other attacks found shorter ones, at most by 13%. Seeds give one answer.
FLIP_SPREAD = 0.13


@dataclass(frozen=True)
class RealFlip:
    """The nearest real word that changes the prediction to `to`; `radius` is its distance in units of the old word's
    norm, `distance` the same in absolute terms."""

    text: str
    radius: float
    distance: float
    to: str


@dataclass(frozen=True)
class RealChange:
    """A real word in the place of another: the `probability` that is left of the prediction for the text as it is, and
    the class that is predicted then."""

    text: str
    probability: float | None
    to: str


@dataclass(frozen=True)
class WordFlip:
    """One word: the smallest move found that changes the prediction, and what is proven.

    `radius` is the norm of that move in units of the word's own norm (`norm`), `distance` the same in absolute terms,
    `to` the class that it changes the prediction to; all are None where no move within the allowed radius was found.
    `certified` is a radius, in the same units, within which no move can change the prediction: 0 where nothing is
    proven (`reason` says why), infinite where no move of any size can. It holds except with probability
    `certified_failure`. `token` is what moves; a word of several `tokens` is represented by the one with the smallest
    radius. `real` is the nearest real word that changes the prediction, of the `tried` nearest ones.

    Where effects were asked for, `lowest` is the smallest probability of the prediction that a move within the allowed
    radius was found to leave (the true smallest may be lower still), and `best` the real word, of those tried, that
    leaves least of it.
    """

    word: int
    text: str
    span: tuple[int, int]
    tokens: tuple[int, ...]
    token: int
    norm: float
    radius: float | None
    distance: float | None
    to: str | None
    certified: float
    certified_failure: float
    reason: str | None
    real: RealFlip | None
    tried: int
    untried: str | None
    gradients: int
    lowest: float | None = None
    best: RealChange | None = None

    @property
    def closeness(self) -> float:
        """The value that a word is coloured by: the nearer the real word that changes the prediction, the larger; 0
        where none was found."""
        return 0.0 if self.real is None else 1.0 / self.real.radius


@dataclass(frozen=True, eq=False, repr=False)
class FlipRadii(Result):
    """Lengths of the moves of each word that change the prediction, the smallest first. Tables and pictures have the
    words in the order of `ranked`.

    `prediction` is what is predicted for the text as it is (`probability` of it, for a model's logits), and `limit` the
    largest move that was allowed, in units of each word's norm. `gradients` counts all runs of the search: one without
    a gradient counts 0.4. `deltas` are the moves found, by the word's number (in memory only, not in a file). `kind`
    says what the prediction is: a "class", or the "next token" of a causal model. `second` is the class that is next to
    the prediction, with its probability.
    """

    format: ClassVar[str] = "wordsway.flip-radius/2"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("word", "word_text"), "flips_at")
    in_memory: ClassVar[tuple[str, ...]] = ("deltas",)

    prediction: str
    probability: float | None
    limit: float
    words: tuple[WordFlip, ...]
    map: dict[str, Any]
    text: dict[str, Any] | None
    gradients: int
    seed: int
    seconds: float
    checked: str
    version: str
    deltas: "dict[int, Tensor]" = field(default_factory=dict)
    made: dict[str, Any] | None = None
    kind: str = "class"
    second: tuple[str, float] | None = None

    def summary(self) -> str:
        """Say the smallest radius in a line."""
        first = self.words[0]
        flip = f"{first.text!r} flips it at {three(first.radius)} of its norm"
        best = "no flip found" if first.radius is None else flip
        return f"{self.prediction!r}: {best}; {count_of(len(self.words), 'word')}"

    @property
    def flipped(self) -> tuple[WordFlip, ...]:
        """The words for which a move was found."""
        return tuple(word for word in self.words if word.radius is not None)

    @property
    def by_real(self) -> tuple[WordFlip, ...]:
        """The words in the order of the nearest real word that changes the prediction; those for which none was found
        come last, in the order of their own radius."""
        return tuple(sorted(self.words, key=_real_order))

    @property
    def real_ranks(self) -> tuple[tuple[int, int], ...]:
        """The rank of each word of `by_real`, as (first possible rank, how many are possible): all words for which no
        real word was found share one."""
        ahead = sum(word.real is not None for word in self.words)
        rest = len(self.words) - ahead
        return tuple((k + 1, 1) if k < ahead else (ahead + 1, rest) for k in range(len(self.words)))

    @property
    def flip_ranks(self) -> tuple[tuple[int, int], ...]:
        """The rank of each word by its own radius, as (first possible rank, how many are possible): words share ranks
        where other searches may order them otherwise."""
        return tuple(ranks_of([self.known(word) for word in self.words], smallest_first=True))

    @property
    def by_real_words(self) -> bool:
        """Whether words are ordered by real words: where effects were asked for, as `measure` does."""
        return any(word.lowest is not None for word in self.words)

    @property
    def ranked(self) -> tuple[WordFlip, ...]:
        """The words in the order in which they are shown everywhere: `by_real` where effects were asked for, else by
        the smallest change that flips."""
        return self.by_real if self.by_real_words else self.words

    @property
    def ranks(self) -> tuple[tuple[int, int], ...]:
        """The rank of each word of `ranked`, as (first possible rank, how many are possible)."""
        return self.real_ranks if self.by_real_words else self.flip_ranks

    def known(self, word: WordFlip) -> Measured:
        """Bracket the radius of a word; without a flip it counts as the largest move that was allowed."""
        found = self.limit if word.radius is None else word.radius
        return Measured(found, word.certified, math.inf if word.radius is None else word.radius, FLIP_SPREAD)

    @property
    def lowest_differ(self) -> bool:
        """Whether words differ in the lowest probability that they leave, as far as it is written."""
        return len({probability_name(word.lowest) for word in self.words}) > 1

    @property
    def column_notes(self) -> tuple[str, ...]:
        """Say what the columns of the printed table mean, one sentence or two a column."""
        tried = sorted({word.tried for word in self.words if word.tried})
        count = " to ".join(f"{number:,}" for number in dict.fromkeys(tried[:1] + tried[-1:])) or "no"
        several = len(self.words) > 1
        ranked = ("rank: by flips at; words that another search may order otherwise share ranks.",)
        if self.by_real_words:
            ranked = ("rank: by that distance; words without one share a rank. In brackets: the rank by flips at.",)
        unit = "in units of the word's own norm"
        notes = (
            f"flipped by: the nearest real word that changes the prediction, and its distance {unit}. In a word's "
            f"place {count} of the nearest words were tried, whatever their grammar and meaning{self._untried}.",
            *(ranked if several else ()),
            f"flips at: the smallest change of the embedding found to flip the prediction, {unit}; a smaller one may "
            "exist.",
        )
        left = probability_name(self.words[0].lowest)
        if self.words[0].lowest is None:
            return notes
        of = f"the probability of {self.prediction!r}"
        reach = "its own norm" if self.limit == 1 else f"{self.limit:g} times its own norm"
        within = f"when the embedding may change by {reach}"
        same = f"below {left[1:]}" if left.startswith("<") else f"to {left} or less"
        return (
            *notes,
            f"P falls to: the lowest value of {of} that was found {within}; lower ones may exist."
            if self.lowest_differ
            else f"{'Any of these words' if several else 'The word'} can push {of} {same} {within}.",
            f"best word: of the real words tried, the one that lowers {of} most, and what is left of it (P).",
        )

    @property
    def _untried(self) -> str:
        """Name the words in the place of which nothing was tried, by the reason."""
        reasons: dict[str, list[str]] = {}
        for word in self.words:
            if word.untried:
                reasons.setdefault(word.untried, []).append(word.text)
        named = (f"{', '.join(dict.fromkeys(texts))} ({reason})" for reason, texts in reasons.items())
        return f"; not tried: {'; '.join(named)}" if reasons else ""

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a word, in the order of `ranked`. `radius` is the largest change that was allowed;
        it, `flips_at`, `certified` and `real_distance` are in units of the word's own norm."""
        predicted = {"prediction": self.prediction, "probability": self.probability}
        return [
            {
                "subject": subject_of_map(self.map),
                "word": word.word,
                "word_text": word.text,
                "rank": rank,
                "tied": tied,
                **predicted,
                "radius": self.limit,
                "flips_at": word.radius,
                "flips_to": word.to,
                "flips_at_absolute": word.distance,
                "certified": word.certified,
                "real_word": None if word.real is None else word.real.text,
                "real_distance": None if word.real is None else word.real.radius,
                "real_absolute": None if word.real is None else word.real.distance,
                "real_to": None if word.real is None else word.real.to,
                "probability_after": word.lowest,
                "best_word": None if word.best is None else word.best.text,
                "best_probability": None if word.best is None else word.best.probability,
                "best_to": None if word.best is None else word.best.to,
                "tried": word.tried,
                "norm": word.norm,
                "gradients": word.gradients,
            }
            for word, (rank, tied) in zip(self.ranked, self.ranks, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but `deltas`, as JSON values; each word with its rank, as `records` has it."""
        return with_ranks(super().to_dict(), self.ranked, self.ranks)

    @classmethod
    def read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the fields from JSON values; ranks follow from the others."""
        return super().read(without_ranks(values))

    def plot(self, ax: Any = None) -> Any:
        """Draw a line a word: the radius found, the certified one, and the nearest real word. Returns the axes."""
        shown = self.ranked[:MOST_BARS]
        ax = ax or new_axes(7.4, 1.9 + 0.3 * len(shown))
        reals = [word.real.radius for word in shown if word.real is not None]
        furthest = max([self.limit, *reals])
        beside: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8}
        for k, word in enumerate(shown):
            if word.certified > 0:
                proven = min(word.certified, 1.18 * furthest)
                ax.barh(k, proven, color=GREEN, height=0.66, alpha=0.35, label="proven: no move up to here flips it")
            if word.radius is None:
                ax.annotate("no flip found", (0, k), xytext=(4, 0), **beside)
            else:
                ax.plot([0, word.radius], [k, k], color=BLUE, linewidth=1.2)
                ax.plot([word.radius], [k], "o", color=BLUE, markersize=7, label="smallest move found that flips it")
                ax.annotate(three(word.radius), (word.radius, k), xytext=(8, 0), **beside)
            if word.real is not None:
                at = word.real.radius
                ax.plot([at], [k], "D", color=ORANGE, markersize=5, label="nearest real word that flips it")
                ax.annotate(plain(word.real.text), (at, k), xytext=(8, 0), **beside)
        ax.axvline(self.limit, color=GREY, linewidth=0.8, linestyle=":", label="the search went up to here")
        ax.set_yticks(range(len(shown)), [plain(word.text) for word in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.set_xlim(0, 1.18 * furthest)
        ax.set_xlabel("length of the move, in units of the word's own norm")
        title = f"How far a word must move before \u201c{self.prediction}\u201d changes"
        ax.set_title(plain(title), loc="left", fontsize=10, fontweight="bold")
        ax.spines[["top", "right"]].set_visible(False)
        handles, labels = ax.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        ax.figure.legend(once.values(), once.keys(), frameon=False, fontsize=8.5, loc="outside lower left", ncols=2)
        return ax


def flipped_by(word: WordFlip) -> str:
    """Name the real word that flips the prediction in the place of this one, or say that none was found or tried."""
    if word.real is not None:
        return word.real.text
    return f"none of {word.tried:,}" if word.tried else "not tried"


def _real_order(word: WordFlip) -> tuple[float, float, int]:
    nearest = math.inf if word.real is None else word.real.radius
    return nearest, math.inf if word.radius is None else word.radius, word.word
