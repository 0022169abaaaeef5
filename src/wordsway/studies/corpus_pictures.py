"""Pictures of many texts: what each text takes, and the words that occur in several of them."""

from collections.abc import Sequence
from typing import Any

from wordsway.studies.corpus_findings import AVERAGE
from wordsway.studies.word_ranking import occurrences_of
from wordsway.support.plotting import BLUE, GREY, dots, new_axes, plain

MOST_DOTS = 40  # texts that get a dot each; of more, there is a histogram
_MOST_WORDS = 20
_LETTERS = 24  # of a text beside its dot
_LABELS = {
    "flips_at": "smallest change found that flips, over the word's norm",
    "fall": "largest fall of the probability in one step",
    "change": "largest relative change found",
}


def panels(words: int, rows: int) -> list[Any]:
    """Make the axes of a picture of texts that is so many rows high, and of words beside them where there are any."""
    if not words:
        return [new_axes(8.0, 1.7 + 0.28 * rows)]
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 1.9 + 0.28 * max(rows, min(words, _MOST_WORDS))), layout="constrained")
    FigureCanvasAgg(figure)
    return list(figure.subplots(1, 2, width_ratios=(3, 2)))


def height_of(texts: int) -> int:
    """Count the rows that a picture of so many texts is high."""
    return texts if texts <= MOST_DOTS else 9


def draw_texts(axes: Any, lines: Sequence[dict[str, Any]], column: str, limit: float, title: str) -> Any:
    """Draw a dot for each text with the word that leads in it, the first on top, or a histogram of many."""
    flips = column == "flips_at"
    placed = [(line, limit if line[column] is None else line[column]) for line in lines]
    placed.sort(key=lambda each: (each[0][column] is None, each[1]) if flips else (False, -each[1]))
    missing = sum(line[column] is None for line in lines)
    label = _LABELS[column] + (f"\nhollow: no flip found up to {limit:g}" if missing else "")
    axes.set_xlabel(label)
    axes.set_title(plain(title), loc="left", fontsize=10, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    if len(placed) > MOST_DOTS:
        values = [value for line, value in placed if line[column] is not None]
        axes.hist(values, bins=min(30, max(5, len(values) // 4)), color=BLUE, alpha=0.8)
        axes.set_xlabel(f"{_LABELS[column]} ({len(values)} of {len(lines)} texts)")
        axes.set_ylabel("texts")
        return axes
    for row, (line, value) in enumerate(placed):
        found = line[column] is not None
        axes.plot([value], [row], "o", color=BLUE, markersize=6, markerfacecolor=BLUE if found else "white")
        axes.annotate(plain(line["first_word"] or "no flip found"), (value, row), xytext=(7, 0), va="center",
                      textcoords="offset points", fontsize=8.5, color="#333333")  # fmt: skip
    names = [f"{line['text_number']}  {_beginning(line['text'])}" for line, _ in placed]
    axes.set_yticks(range(len(names)), [plain(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(True, axis="x", color="#dddddd", linewidth=0.6)
    axes.set_xlim(0, 1.25 * max(value for _, value in placed) or 1.0)  # with room for the words
    return axes


def draw_words(axes: Any, ranked: Sequence[dict[str, Any]], column: str) -> Any:
    """Draw a dot for each word of several texts, with its interval where it has one."""
    shown = ranked[:_MOST_WORDS]
    names = [f"{each['text']} ({occurrences_of(each)})" for each in shown]
    spans = [None if each["low"] is None else (each["low"], each["high"]) for each in shown]
    label = "change over the mean of its text\n(dotted: an average word"
    if column == "flips_at":
        label = "share of its text's other words that need more\n(dotted: an average word"
    label += "; line: 95% interval)" if any(spans) else ")"
    more = f" (the first {len(shown)} of {len(ranked)})" if len(ranked) > len(shown) else ""
    title = f"Words of several texts{more}"
    drawn = dots(axes, names, [each["value"] for each in shown], spans, AVERAGE[column], label, title)
    if column == "flips_at":
        drawn.set_xlim(-0.02, 1.02)
    drawn.axvline(AVERAGE[column], color=GREY, linestyle=":", linewidth=1.2)
    return drawn


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LETTERS else line[: _LETTERS - 1].rstrip() + "\u2026"
