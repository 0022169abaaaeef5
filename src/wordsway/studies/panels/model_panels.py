"""Panels about a pre-trained model: its layers, its attention, its answers."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wordsway.studies.estimates import mean_sd
from wordsway.studies.panels.scene import Arrays, Picture, Row, clip
from wordsway.support.plotting import BLUE, GREY, ORANGE, heat, lines, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


def _draw_layers(axes: "Axes", title: str, rows: Sequence[Row]) -> None:
    by_layer: dict[int, list[Row]] = {}
    for row in rows:
        by_layer.setdefault(row["layer"], []).append(row)
    layers = sorted(by_layer)

    def mean(name: str) -> list[float]:
        return [mean_sd([row[name] for row in by_layer[layer]])[0] for layer in layers]

    series = {
        "searched": (mean("searched"), GREY, "v"),
        "attention-attracting": (mean("attracting"), ORANGE, "s"),
        "Gaussian noise": (mean("noise"), BLUE, "o"),
    }
    labels = ("layer (0 is the input)", "relative change of its output")
    lines(axes, layers, series, {"Gaussian noise": mean("noise_sd")}, labels, "")
    axes.legend(frameon=False, fontsize=8.5)
    first = rows[0]
    what = f"{title} (token {first['token'] + 1}, \u201c{plain(str(first['word']))}\u201d)"
    axes.set_title(what, loc="left", fontsize=10)


def _draw_attention(place: "SubFigure", title: str, row: Row, arrays: Arrays) -> None:
    found = arrays(row["arrays"])
    left, right = place.subplots(1, 2)
    most = max(float(found[name].max()) for name in ("before", "after"))
    names = row["before_tokens"].split(" "), row["after_tokens"].split(" ")
    moved = row.get("word")
    marked = [k for k, name in enumerate(names[0]) if moved and name == moved]
    titles = ("before", f"\u201c{moved}\u201d moved") if moved else (clip(row["text"]), clip(row["against"]))
    image = heat(left, found["before"], names[0], titles[0], most, marked)
    heat(right, found["after"], names[1], titles[1], most, marked)
    place.colorbar(image, ax=[left, right], shrink=0.7, label="weight")
    head = "mean over heads" if row["head"] == 0 else f"head {row['head']}"
    which = f"{title}: layer {row['layer']}, {head}" + (f", token {row['token'] + 1} moved" if moved else "")
    place.suptitle(which, x=0.02, ha="left", fontsize=10)


def _draw_answers(place: "SubFigure", title: str, row: Row) -> None:
    axes = place.subplots()
    axes.axis("off")
    axes.set_title(title, loc="left", fontsize=10)
    parts = []
    for prompt, answer in (("before", "answer_before"), ("after", "answer_after")):
        parts += ["\u2014 " + row[prompt], "  \u2192 " + (row[answer] or "(nothing)"), ""]
    shown = "\n".join(textwrap.fill(part, 64) for part in parts)
    axes.text(0.0, 0.95, plain(shown), va="top", ha="left", fontsize=8, wrap=False, transform=axes.transAxes)


LAYERS = Picture(
    lambda scene: _draw_layers(scene.place.subplots(), scene.title, scene.rows),
    "Relative change of every layer's output for moves of one word, all of the same size: found by a search, along the "
    "direction that draws attention, and at random.",
    lambda grid: 7.0,
)
ATTENTION = Picture(
    lambda scene: _draw_attention(scene.place, scene.title, scene.rows[0], scene.arrays),
    "Where each token (row) looks, before and after. A dark column is a token that draws attention from everywhere.",
    lambda grid: 8.0,
    lambda grid: 4.3,
)
ANSWERS = Picture(
    lambda scene: _draw_answers(scene.place, scene.title, scene.rows[0]),
    "What a chat model answers to two prompts that differ in one word.",
)
