"""Pairs: how often the two sides are told apart, against the length of the context."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wordsway.studies.estimates import mean_interval
from wordsway.studies.panels.scene import COLOURS, MARKERS, PanelGrid, Picture, Row, Scene
from wordsway.support.plotting import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = {
    ("both", "seen"): "known words",
    ("both", "new"): "new words",
    ("one", "seen"): "one side a pair",
    ("both", "given"): "given pairs",
    ("one", "given"): "one side a pair",
}
_NAMES = {"mean": "mean embedding", "pooled": "mean state", "states": "all states"}
_CHANCE = "#777777"


def _draw(scene: Scene) -> None:
    """Axes for each kind of training and of test words, then for similarity where there is one."""
    there = {(row["sides"], row["words"]) for row in scene.rows}
    kinds = [kind for kind in _KINDS if kind in there]
    compared = any(row["auc"] is not None for row in scene.rows)
    grid: Any = scene.place.subplots(1, len(kinds) + compared, squeeze=False, sharey=True)[0]
    for axes, (sides, words) in zip(grid, kinds, strict=False):
        rows = [row for row in scene.rows if (row["sides"], row["words"]) == (sides, words)]
        _curves(axes, scene.grid, rows, lambda row: row["accuracy"])
        _chance(axes, rows)
        axes.set_title(f"{scene.title}: {_KINDS[sides, words]}", loc="left", fontsize=9.5)
    grid[0].set_ylabel("pairwise accuracy")
    if compared:
        rows = [row for row in scene.rows if row["words"] == "seen" and row["sides"] == "both"]
        _curves(grid[-1], scene.grid, rows, lambda row: row["auc"])
        grid[-1].axhline(0.5, color=_CHANCE, linewidth=1.0, linestyle=(0, (4, 3)))
        grid[-1].set_ylabel("AUC of the cosine")
        grid[-1].set_title(f"{scene.title}: similarity", loc="left", fontsize=9.5)
    handles, labels = grid[0].get_legend_handles_labels()
    scene.place.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8.5)


def _curves(axes: "Axes", grid: PanelGrid, rows: Sequence[Row], value: Callable[[Row], float]) -> None:
    """Means over trials with their 95% intervals, a line for each map (and whatever else varies)."""
    series = [name for name in grid.varied if name != "n"]
    groups: dict[tuple[Any, ...], dict[int, list[float]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in series), {}).setdefault(row["n"], []).append(value(row))
    lengths = sorted({row["n"] for row in rows})
    for k, (names, by_n) in enumerate(groups.items()):
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        places = sorted(by_n)
        found = [mean_interval(by_n[n]) for n in places]
        # Lines side by side, or intervals would hide each other.
        aside = max(2, lengths[-1] / lengths[0]) ** (0.008 * (k - (len(groups) - 1) / 2))
        shifted = [n * aside for n in places]
        low = [0.0 if each.low is None else each.value - each.low for each in found]
        high = [0.0 if each.high is None else each.high - each.value for each in found]
        parts = [(name, str(value)) for name, value in zip(series, names, strict=True) if value is not None]
        label = ", ".join(_NAMES.get(value, value) if name == "map" else f"{name}={value}" for name, value in parts)
        axes.errorbar(shifted, [each.value for each in found], yerr=[low, high], color=colour, marker=marker,
                      markersize=4.5, linewidth=1.4, elinewidth=0.9, capsize=2, label=plain(label) or None)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    axes.set_ylim(0.2, 1.03)
    axes.set_xlabel("context length n (tokens)")
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _chance(axes: "Axes", rows: Sequence[Row]) -> None:
    """One half, and where 95% of such means would be after training on labels that mean nothing: the widest map's."""
    lengths = sorted({row["n"] for row in rows})
    ends = []
    for n in lengths:
        maps: dict[Any, list[Row]] = {}
        for row in rows:
            if row["n"] == n:
                maps.setdefault(row["map"], []).append(row)
        bands = []
        for part in maps.values():
            middle = sum(row["permuted"] for row in part) / len(part)
            half = 1.96 * math.sqrt(sum(row["permuted_sd"] ** 2 for row in part)) / len(part)
            bands.append((middle - half, middle + half))
        ends.append((min(low for low, _ in bands), max(high for _, high in bands)))
    axes.fill_between(lengths, [a for a, _ in ends], [b for _, b in ends], color="#e8e8e8", linewidth=0, zorder=0,
                      label="labels without\nmeaning, 95%")  # fmt: skip
    axes.axhline(0.5, color=_CHANCE, linewidth=1.0, linestyle=(0, (4, 3)), label="chance")


def _width(grid: PanelGrid) -> float:
    return 1.5 + 3.3 * (4 if grid.values.get("data", "generated") == "generated" else 2)


PICTURE = Picture(
    _draw,
    "Texts that differ in the one word that decides: how often a readout gets it right; 95% intervals over trials.",
    _width,
    lambda grid: 3.4,
    note=lambda grid: "bars: 95% intervals over trials",
)
