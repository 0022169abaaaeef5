"""Curves: a number of each cell against n, or against another axis of the grid."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wordsway.studies.estimates import mean_sd
from wordsway.studies.panels.scene import COLOURS, MARKERS, PanelGrid, Picture, Row, Scene, short, short_maps
from wordsway.support.plotting import plain
from wordsway.support.public_gate import public

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
_DOTS: Any = (0, (1, 2))
_COARSE, _FINE = (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)  # first digits of the ticks of a logarithmic axis
_FEWEST = 3  # ticks that an axis should have: with fewer, a reader cannot tell its scale


@public
def curve_picture(column: str, label: str = "", see: str = "", *, log: bool = False, slope: bool = True) -> Picture:
    """Draw a column of a kind of cell against n (or another axis of numbers, if that has more values): means over
    trials with a band of one standard deviation, a line for every combination of the other axes. A column `predicted`,
    where rows have one, is dotted.

    `label` is written at the axis of values (the column's name unless given), `see` under the panel in the report; with
    `log`, both axes are logarithmic; with `slope`, the report lists exponents in n.
    """
    lines = "Lines are means over trials, bands one standard deviation; a dotted line, where there is one, is the "
    return Picture(
        lambda scene: _draw(scene, column, label or column, log),
        see or f"{label or column}. {lines}prediction.",
        _width,
        note=lambda grid: "bands: one standard deviation",
        slope=column if slope else None,
    )


def _draw(scene: Scene, column: str, label: str, log: bool) -> None:
    axes, rows = scene.place.subplots(), [row for row in scene.rows if row.get(column) is not None]
    x = _axis(scene.grid)
    series = [name for name in scene.grid.varied if name != x]
    groups: dict[tuple[Any, ...], dict[Any, list[Row]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in series), {}).setdefault(row.get(x, 0), []).append(row)
    maps = short_maps(list(dict.fromkeys(row["map"] for row in scene.rows if "map" in row)))
    predicted = False
    for k, (values, by_x) in enumerate(groups.items()):
        named = [(name, value) for name, value in zip(series, values, strict=True) if value is not None]
        legend = ", ".join(maps[value] if name == "map" else f"{short(name)}={value}" for name, value in named)
        predicted |= _draw_line(axes, by_x, column, k, plain(legend))
    if predicted:
        axes.plot([], [], color="#333333", linestyle=_DOTS, linewidth=1.3, label="prediction")
    _ticks(axes, x, sorted({row.get(x, 0) for row in scene.rows}), log)
    axes.set_xlabel(_NAMES.get(x, x))
    axes.set_ylabel(plain(label))
    axes.set_title(plain(scene.grid.title), loc="left", fontsize=10)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        place: Any = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if len(groups) > 4 else {}
        axes.legend(frameon=False, fontsize=8.5, **place)


def _axis(grid: PanelGrid) -> str:
    """Choose what values are drawn against: n, or the axis of numbers with most values."""
    numeric = [name for name, values in grid.varied.items() if all(isinstance(v, int | float) for v in values)]
    usual = [name for name in ("n", *_NAMES) if name in numeric]
    if usual:
        return max(usual, key=lambda name: len(grid.varied[name]))
    return numeric[0] if numeric else "n"


def _draw_line(axes: "Axes", by_x: dict[Any, list[Row]], column: str, number: int, label: str) -> bool:
    """Draw one line with its band; returns whether it has a prediction, which is drawn too."""
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    places = sorted(by_x)
    stats = [mean_sd([row[column] for row in by_x[place]]) for place in places]
    low, high = [m - s for m, s in stats], [m + s for m, s in stats]
    axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(places, [m for m, _ in stats], color=colour, marker=marker, markersize=4.5, label=label or None)
    theory = [(place, by_x[place][0].get("predicted")) for place in places]
    if any(value is None for _, value in theory):
        return False
    axes.plot(*zip(*theory, strict=True), color="#333333", linestyle=_DOTS, linewidth=1.3, zorder=3)
    return True


def _ticks(axes: "Axes", x: str, ticks: Sequence[Any], log: bool) -> None:
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        low, high = axes.get_ylim()
        for digits in (_COARSE, _FINE):
            shown = [d * 10.0**k for k in range(-9, 10) for d in digits if low <= d * 10.0**k <= high]
            if len(shown) >= _FEWEST:
                break
        axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
        axes.minorticks_off()
        return
    if x in ("depth", "tokens_at_once") and ticks[-1] >= 8 * ticks[0]:
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
    elif len(ticks) <= 8:
        close = [a for a, b in pairwise(ticks) if b - a < 0.07 * (ticks[-1] - ticks[0])]
        axes.set_xticks([tick for tick in ticks if tick not in close])
    axes.set_ylim(bottom=0)


def _width(grid: PanelGrid) -> float:
    """Make room for a legend beside the axes; one axis is not in it."""
    lengths = [len(values) for values in grid.varied.values()]
    lines = math.prod(lengths) // max(lengths, default=1)
    return 7.4 if lines > 4 else 5.2
