"""The result of `radius_profile`: the change of each word against the radius."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from wordsway.measures.ranks import shared_ranks, with_ranks, without_ranks
from wordsway.support.digits import count_of
from wordsway.support.plotting import GREY, new_axes, plain
from wordsway.support.result import Result, subject_of_map

_MOST_LINES = 12  # words that have a colour and a name of their own in a picture; the others are grey


@dataclass(frozen=True)
class WordProfile:
    """One word: the largest change found (`lower`) and the bound (`upper`, None where there is none, for a `reason`) at
    each radius. `flip` is the smallest radius found at which the prediction changes, where that was asked for."""

    word: int
    text: str
    span: tuple[int, int]
    tokens: tuple[int, ...]
    lower: tuple[float, ...]
    upper: tuple[float | None, ...]
    reason: str | None
    flip: float | None


@dataclass(frozen=True, eq=False, repr=False)
class RadiusProfile(Result):
    """The change of the features against the radius, one line a word, in the order of the text. `radii` are in units of
    each word's own norm. Changes found never fall with the radius, since a larger ball contains the smaller ones.
    `prediction` is there where flip radii were searched too. `search_spread` is by how much the search's answer varies,
    relative to it."""

    format: ClassVar[str] = "wordsway.radius-profile/2"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("word", "word_text", "radius"), "lower")

    radii: tuple[float, ...]
    words: tuple[WordProfile, ...]
    prediction: str | None
    map: dict[str, Any]
    text: dict[str, Any] | None
    evaluations: int
    seed: int
    seconds: float
    checked: str
    version: str
    made: dict[str, Any] | None = None
    search_spread: float = 0.0

    def summary(self) -> str:
        """Say what was measured in a line."""
        return f"{count_of(len(self.words), 'word')}, radii {', '.join(f'{r:g}' for r in self.radii)}"

    def spread(self, position: int) -> float:
        """The largest change of a word at a radius, over the smallest: how far words differ there."""
        values = [word.lower[position] for word in self.words]
        return max(values) / max(min(values), 1e-300)

    @property
    def ranked(self) -> tuple[WordProfile, ...]:
        """The words from the largest change at the smallest radius to the smallest."""
        return tuple(sorted(self.words, key=lambda word: -word.lower[0]))

    @property
    def ranks(self) -> list[tuple[int, int]]:
        """The rank of each word of `ranked` at the smallest radius, as (first possible rank, how many are possible)."""
        ordered = self.ranked
        return shared_ranks([w.lower[0] for w in ordered], self.search_spread, [w.upper[0] for w in ordered])

    @property
    def reading(self) -> str:
        """Say what the numbers of a model are, and by which of them words are ordered."""
        return (
            f"The largest relative change that a search found when a word's embedding may change by so many times its "
            f"own norm. Words are ordered at radius {self.radii[0]:g}: at larger ones nearly all words of a model "
            f"are equal. Words share ranks where they differ by less than the search varies, {self.search_spread:.0%}."
        )

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row for each word and radius, the words in the order of `ranked`."""
        predicted = {} if self.prediction is None else {"prediction": self.prediction}
        return [
            {
                "subject": subject_of_map(self.map),
                "word": word.word,
                "word_text": word.text,
                "rank": rank,
                "tied": tied,
                **predicted,
                "radius": radius,
                "lower": word.lower[k],
                "upper": word.upper[k],
                "flips": None if self.prediction is None else word.flip is not None and word.flip <= radius,
            }
            for word, (rank, tied) in zip(self.ranked, self.ranks, strict=True)
            for k, radius in enumerate(self.radii)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON values; each word with its rank, as `records` has it."""
        return with_ranks(super().to_dict(), self.ranked, self.ranks)

    @classmethod
    def read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the fields from JSON values; ranks follow from the others."""
        return super().read(without_ranks(values))

    def plot(self, ax: Any = None) -> Any:
        """Draw a line a word, with a star where the prediction changes; dashed: what no move can exceed. Returns the
        axes."""
        from matplotlib import colormaps

        ax = ax or new_axes(8.2, 4.8)
        ranked = self.ranked
        steps = max(1, min(len(ranked), _MOST_LINES) - 1)
        colours = [colormaps["viridis"](0.92 * k / steps) for k in range(_MOST_LINES)]
        for k, word in enumerate(ranked):
            colour = colours[k] if k < _MOST_LINES else GREY
            name = plain(word.text) if k < _MOST_LINES else None
            ax.plot(self.radii, word.lower, color=colour, marker="o", markersize=3.5, linewidth=1.4, label=name)
            if word.flip is not None and self.radii[0] <= word.flip <= self.radii[-1]:
                ax.plot([word.flip], [_between(self.radii, word.lower, word.flip)], "*", color=colour, markersize=12,
                        markeredgecolor="#333333", markeredgewidth=0.6)  # fmt: skip
        for bounds in {word.upper for word in self.words if None not in word.upper}:
            ax.plot(self.radii, bounds, color=GREY, linestyle="--", linewidth=1.0)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(self.radii, [f"{radius:g}" for radius in self.radii])
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        ax.set_xlabel("radius, in units of the word's own norm")
        ax.set_ylabel("relative change of the output, found")
        first, last = self.spread(0), self.spread(-1)
        title = f"Words differ {first:.1f}-fold at radius {self.radii[0]:g}, {last:.1f}-fold at {self.radii[-1]:g}"
        ax.set_title(plain(title), loc="left", fontsize=10, fontweight="bold")
        ax.grid(True, color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        self._legend(ax)
        return ax

    def _legend(self, ax: Any) -> None:
        from matplotlib.lines import Line2D

        handles, _ = ax.get_legend_handles_labels()
        if any(word.flip is not None for word in self.words):
            star = {"marker": "*", "linestyle": "", "color": "white", "markeredgecolor": "#333333", "markersize": 11}
            handles.append(Line2D([], [], **star, label="the prediction changes"))
        if any(None not in word.upper for word in self.words):
            handles.append(Line2D([], [], color=GREY, linestyle="--", label="no move can exceed"))
        if len(self.words) > _MOST_LINES:
            handles.append(Line2D([], [], color=GREY, label=f"{len(self.words) - _MOST_LINES} other words"))
        ax.legend(handles=handles, frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _between(radii: tuple[float, ...], values: tuple[float, ...], radius: float) -> float:
    """The value of a line at a radius between two others, on logarithmic axes."""
    k = next((k for k in range(1, len(radii)) if radius <= radii[k]), len(radii) - 1)
    if k < 1:
        return values[0]
    share = math.log(radius / radii[k - 1]) / math.log(radii[k] / radii[k - 1])
    return values[k - 1] ** (1 - share) * values[k] ** share
