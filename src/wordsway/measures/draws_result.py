"""The result of `compare_draws`: words of a text on several maps, over independent draws of their weights."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from wordsway.measures.ranks import LEVEL
from wordsway.measures.results import Sensitivity
from wordsway.support.digits import count_of
from wordsway.support.json_values import read_fields
from wordsway.support.plotting import BLUE, GREEN, GREY, MOST_BARS, ORANGE, PINK, new_axes, plain
from wordsway.support.result import Result

_COLOURS = (BLUE, ORANGE, GREEN, PINK)


@dataclass(frozen=True)
class WordDraws:
    """One word on one map: the largest change found on each draw (`lower`) with its mean and standard deviation, and
    the proven bounds (`upper`, empty where a draw has none). Ranks `rank` to `rank + tied - 1` are possible for it: the
    words that it is not separated from may be before it or behind it."""

    word: int
    text: str
    span: tuple[int, int]
    rank: int
    tied: int
    mean: float
    sd: float
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def proven(self) -> float | None:
        """The mean of the proven bounds over draws."""
        return math.fsum(self.upper) / len(self.upper) if self.upper else None


@dataclass(frozen=True)
class MapDraws:
    """One map: its words in the order of the text, and the mean change by a random move on each draw (`random`, empty
    where it was not asked for). Two words are separated where their means differ by more than `margin`; None for a
    single draw, where two words are separated if the lower bound of one is above the upper bound of the other."""

    name: str
    map: dict[str, Any]
    words: tuple[WordDraws, ...]
    random: tuple[float, ...]
    margin: float | None
    reason: str | None  # why there is no upper bound
    misses: float = 0.0  # the share of a value that the search may miss, which is part of `margin`

    @property
    def ranked(self) -> tuple[WordDraws, ...]:
        """The words from the largest mean to the smallest."""
        return tuple(sorted(self.words, key=lambda word: -word.mean))

    @property
    def top(self) -> tuple[WordDraws, ...]:
        """The words that may be the first; one only where it is separated from all others."""
        return tuple(word for word in self.ranked if word.rank == 1)

    @property
    def mean(self) -> float:
        """The mean over words."""
        return math.fsum(word.mean for word in self.words) / len(self.words)

    @property
    def typical(self) -> float | None:
        """The mean change by a random move, over draws."""
        return math.fsum(self.random) / len(self.random) if self.random else None

    def separated(self, first: WordDraws, second: WordDraws) -> bool:
        """Whether the first word is separated from the second and above it."""
        if self.margin is not None:
            return first.mean - second.mean > self.margin
        return bool(second.upper) and first.lower[0] > second.upper[0]


@dataclass(frozen=True, eq=False, repr=False)
class DrawComparison(Result):
    """Words of one text on several maps, each with its weights drawn several times.

    `seeds` are those of the draws: the first is the seed that was asked for, and each one measures the same again as
    the seed of a single map. `asked` is how many draws were asked for; there are fewer where these would have taken too
    long. All differences between the words of one map lie within their intervals, mean difference +- `margin`,
    together with probability `level` over the draws. `first` is the whole measurement of the first map's first draw.
    """

    format: ClassVar[str] = "wordsway.draws/2"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("subject", "word", "word_text"), "mean")
    in_memory: ClassVar[tuple[str, ...]] = ("first",)  # a result of its own, which is added as it saves itself

    maps: tuple[MapDraws, ...]
    seeds: tuple[int, ...]
    asked: int
    text: dict[str, Any]
    n: int
    d: int
    radius: float
    seconds: float
    version: str
    first: Sensitivity
    level: float = LEVEL
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say the means and what is separated in a line."""
        means = ", ".join(f"{each.name} {each.mean:.3g}" for each in self.maps)
        top = self.maps[0].top
        first = f"{top[0].text!r} first" if len(top) == 1 else f"{len(top)} words not separated at the top"
        return f"{means}; {count_of(len(self.seeds), 'draw')}, {count_of(len(self.maps[0].words), 'word')}, {first}"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row for each map and word, the largest mean first."""
        return [
            {
                "subject": each.name,
                "word": word.word,
                "word_text": word.text,
                "rank": word.rank,
                "tied": word.tied,
                "mean": word.mean,
                "sd": word.sd,
                "proven": word.proven,
                "random": each.typical,
                "margin": each.margin,
                "draws": len(word.lower),
            }
            for each in self.maps
            for word in each.ranked
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON values."""
        return super().to_dict() | {"first": self.first.to_dict()}

    @classmethod
    def read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the fields from JSON values."""
        rest = {name: value for name, value in values.items() if name != "first"}
        return read_fields(cls, rest, given=("first",)) | {"first": Sensitivity.from_dict(values["first"])}

    def plot(self, ax: Any = None) -> Any:
        """Draw a row a word: the mean change found on each map, its spread over draws, and the proven bound."""
        shown = self.maps[0].ranked[:MOST_BARS]
        ax = ax or new_axes(7.4, 1.9 + (0.1 + 0.12 * max(2, len(self.maps))) * len(shown))
        high = 0.8 / len(self.maps)
        for m, each in enumerate(self.maps):
            words = {word.word: word for word in each.words}
            colour = _COLOURS[m] if m < len(_COLOURS) else GREY
            for k, about in enumerate(shown):
                word, place = words[about.word], k - 0.4 + high * (m + 0.5)
                if word.proven is not None:
                    ax.barh(place, word.proven, height=0.9 * high, color=colour, alpha=0.22)
                ax.barh(place, word.mean, height=0.9 * high, color=colour, label=f"{each.name}: mean change found")
                ax.errorbar(word.mean, place, xerr=word.sd, color="#222222", linewidth=1.0, capsize=2)
        ax.set_yticks(range(len(shown)), [plain(word.text) for word in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.set_xlim(left=0)
        ax.set_xlabel("largest relative change of the features\nwhisker: sd over draws; pale: up to the proven bound")
        ax.set_title(plain(self.headline), loc="left", fontsize=10, fontweight="bold")
        ax.spines[["top", "right"]].set_visible(False)
        handles, labels = ax.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        ax.figure.legend(once.values(), once.keys(), frameon=False, fontsize=8.5, loc="outside lower left", ncols=2)
        return ax

    @property
    def headline(self) -> str:
        """The finding in one sentence."""
        if len(self.maps) == 1:
            return f"One word can change {self.maps[0].name} by {self.maps[0].mean:.3g} times its output, on average"
        more, *_, less = sorted(self.maps, key=lambda each: -each.mean)
        ratio = more.mean / max(less.mean, 1e-300)
        return f"One word can move {more.name} {ratio:.2g} times as far as {less.name}"
