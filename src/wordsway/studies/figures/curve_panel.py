"""Curves: word sensitivity against n, or against another number."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wordsway.studies.estimates import mean_sd
from wordsway.studies.figures.scene import COLOURS, MARKERS, Picture, Row, short, short_maps
from wordsway.studies.study import Panel
from wordsway.support.plotting import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES = {
    "n": "context length n (tokens)",
    "radius": "radius (in sqrt(d))",
    "depth": "depth L",
    "tokens_at_once": "tokens that move together, m",
    "correlation": "correlation rho of the rows",
    "temperature": "temperature",
}


def _draw_curves(axes: "Axes", panel: Panel, rows: Sequence[Row]) -> None:
    """S against n, or against what else has most values: mean over trials with a band of one sd, a line for every
    combination of the other axes, the prediction dotted."""
    varied = panel.axes()
    numeric = [name for name, values in varied.items() if all(isinstance(v, int | float) for v in values)]
    asked = [name for name in ("n", *_NAMES) if name in numeric]
    x = max(asked, key=lambda name: len(varied[name])) if asked else numeric[0] if numeric else "n"
    series = [name for name in varied if name != x]
    groups: dict[tuple[Any, ...], dict[Any, list[Row]]] = {}
    for row in (row for row in rows if row["lower"] is not None):
        groups.setdefault(tuple(row[name] for name in series), {}).setdefault(row[x], []).append(row)
    predicted = False
    maps = short_maps(list(dict.fromkeys(row["map"] for row in rows)))
    for k, (values, by_x) in enumerate(groups.items()):
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        places = sorted(by_x)
        stats = [mean_sd([row["lower"] for row in by_x[place]]) for place in places]
        named = [(name, value) for name, value in zip(series, values, strict=True) if value is not None]
        label = ", ".join(maps[value] if name == "map" else f"{short(name)}={value}" for name, value in named)
        low, high = [m - s for m, s in stats], [m + s for m, s in stats]
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(
            places, [m for m, _ in stats], color=colour, marker=marker, markersize=4.5, label=plain(label) or None
        )
        theory = [(place, by_x[place][0].get("predicted")) for place in places]
        if all(value is not None for _, value in theory):
            axes.plot(*zip(*theory, strict=True), color="#333333", linestyle=(0, (1, 2)), linewidth=1.3, zorder=3)
            predicted = True
    if predicted:
        axes.plot([], [], color="#333333", linestyle=(0, (1, 2)), linewidth=1.3, label="prediction")
    ticks = sorted({row[x] for row in rows})
    if x in ("depth", "tokens_at_once") and ticks[-1] >= 8 * ticks[0]:
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
    elif len(ticks) <= 8:
        close = [a for a, b in pairwise(ticks) if b - a < 0.07 * (ticks[-1] - ticks[0])]
        axes.set_xticks([tick for tick in ticks if tick not in close])
    axes.set_xlabel(_NAMES.get(x, x))
    axes.set_ylabel("word sensitivity S")
    axes.set_title(plain(panel.title), loc="left", fontsize=10)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0)
    if axes.get_legend_handles_labels()[1]:
        outside = len(groups) > 4
        place: Any = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if outside else {}
        axes.legend(frameon=False, fontsize=8.5, **place)


def _width(panel: Panel) -> float:
    """More for a legend beside the axes; one axis is not in it."""
    lengths = [len(values) for values in panel.axes().values()]
    lines = math.prod(lengths) // max(lengths, default=1)
    return 7.4 if lines > 4 else 5.2


SEE = (
    "Word sensitivity: the largest relative change that moves of one token were found to make. Lines are means over "
    "trials, bands one standard deviation; a dotted line, where there is one, is the prediction. A map whose line "
    "falls with n hardly notices one word of a long text; one whose line stays level notices it at every length."
)
PICTURE = Picture(lambda scene: _draw_curves(scene.place.subplots(), scene.panel, scene.rows), SEE, _width)
