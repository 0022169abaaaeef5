"""Hidden states of encoders: layers against lengths as a heat map, or lines over the layers."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.models.loading.reinit import split_name
from wordsway.studies.estimates import Estimate, fit_exponent, mean_interval
from wordsway.studies.panels.scene import COLOURS, MARKERS, PanelGrid, Picture, Row, Scene
from wordsway.support.plotting import GREY, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWN = {"reinit": "all drawn anew", "reinit-layers": "layers drawn anew"}
_DARK, _BRIGHT = math.log10(0.03), math.log10(2.5)  # one scale for all heat maps, so that they can be compared
_LEFT, _RIGHT = -0.95, 0.45  # where the axis of exponents ends; an interval beyond it has an arrow


def _draw(scene: Scene) -> None:
    varied = [name for name in scene.grid.varied if name != "n"]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in scene.rows:
        groups.setdefault(tuple(row[name] for name in varied), []).append(row)
    names = [_label(scene.grid, dict(zip(varied, values, strict=True))) for values in groups]
    if "n" in scene.grid.varied:
        _draw_maps(scene, dict(zip(names, groups.values(), strict=True)))
    else:
        _draw_lines(scene, dict(zip(names, groups.values(), strict=True)))


def _label(grid: PanelGrid, values: Mapping[str, Any]) -> str:
    """A group of rows by what is not the same for all; the model in any case where it is all there is."""
    shown = values or {"model": grid.values.get("model", "minilm")}
    return ", ".join(_model(value) if name == "model" else _plain(name, value) for name, value in shown.items())


def _model(value: Any) -> str:
    base, redraw = split_name(value[0] if isinstance(value, list | tuple) else str(value))
    name = Path(base).name
    return name if redraw is None else f"{name}, {_DRAWN[redraw.kind]}" + (f" @{redraw.seed}" if redraw.seed else "")


def _plain(name: str, value: Any) -> str:
    if name == "data":
        return {"imdb": "reviews"}.get(value, Path(str(value)).name)
    if name == "kind":
        return "first special token" if value == "special" else str(value)
    return str(value) if isinstance(value, str) else f"{name}={value}"


def _draw_maps(scene: Scene, groups: Mapping[str, Sequence[Row]]) -> None:
    """A heat map for each group, each with its layers' exponents beside it."""
    grid: Any = scene.place.subplots(1, 2 * len(groups), squeeze=False, width_ratios=[3.0, 1.7] * len(groups))
    for k, (name, rows) in enumerate(groups.items()):
        heat, beside = grid[0][2 * k], grid[0][2 * k + 1]
        _draw_heat(heat, rows)
        heat.set_title(plain(name), loc="left", fontsize=9)
        if k == 0:
            heat.set_ylabel("layer (0 is the input)")
        _draw_exponents(beside, _exponents(rows), heat.get_ylim())
    scene.place.suptitle(f"{scene.title}: largest relative change found", x=0.02, ha="left", fontsize=10)


def _means(rows: Sequence[Row]) -> dict[tuple[int, int], Estimate]:
    found: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        found.setdefault((row["layer"], row["n"]), []).append(row["searched"])
    return {place: mean_interval(values) for place, values in found.items()}


def _exponents(rows: Sequence[Row]) -> dict[int, Estimate]:
    """For each layer, the mean over trials of the slope of log S against log n, with its interval."""
    found: dict[int, Estimate] = {}
    for layer in sorted({row["layer"] for row in rows}):
        mine = [row for row in rows if row["layer"] == layer]
        slopes = []
        for trial in sorted({row["trial"] for row in mine}):
            points = [(row["n"], row["searched"]) for row in mine if row["trial"] == trial]
            slope = fit_exponent([n for n, _ in points], [value for _, value in points])[0]
            slopes += [] if slope is None else [slope]
        if slopes:
            found[layer] = mean_interval(slopes)
    return found


def _draw_heat(axes: "Axes", rows: Sequence[Row]) -> None:
    means = _means(rows)
    layers, lengths = (sorted({place[k] for place in means}) for k in (0, 1))
    shown = [
        [math.log10(means[layer, n].value) if (layer, n) in means else math.nan for n in lengths] for layer in layers
    ]
    axes.imshow(shown, cmap="cividis", vmin=_DARK, vmax=_BRIGHT, origin="lower", aspect="auto")
    for y, layer in enumerate(layers):
        for x, n in enumerate(lengths):
            if (layer, n) in means:
                dark = shown[y][x] < (_DARK + _BRIGHT) / 2
                axes.text(x, y, f"{means[layer, n].value:.2f}", ha="center", va="center",
                          fontsize=8, color="white" if dark else "black")  # fmt: skip
    axes.set_xticks(range(len(lengths)), [str(n) for n in lengths])
    axes.set_yticks(range(len(layers)), [str(layer) for layer in layers])
    axes.set_xlabel("tokens n")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_exponents(axes: "Axes", exponents: Mapping[int, Estimate], rows: tuple[float, float]) -> None:
    for value, style in ((-0.5, (0, (4, 2))), (0.0, "-")):
        axes.axvline(value, color="#bbbbbb", linewidth=1, linestyle=style, zorder=0)
    for y, each in enumerate(exponents.values()):
        if each.low is not None and each.high is not None:
            axes.plot([each.low, each.high], [y, y], color=COLOURS[1], linewidth=1.6, solid_capstyle="butt")
            for beyond, edge, marker in ((each.low < _LEFT, _LEFT, "<"), (each.high > _RIGHT, _RIGHT, ">")):
                if beyond:
                    axes.plot([edge], [y], color=COLOURS[1], marker=marker, markersize=5, clip_on=False)
        axes.plot([each.value], [y], color=COLOURS[1], marker="o", markersize=4.5)
    axes.set_ylim(*rows)
    axes.set_xlim(_LEFT, _RIGHT)
    axes.set_yticks([])
    axes.set_xticks([-0.5, 0], ["-1/2", "0"])
    axes.set_xlabel("exponent in n")
    axes.spines[["top", "right", "left"]].set_visible(False)


def _draw_lines(scene: Scene, groups: Mapping[str, Sequence[Row]]) -> None:
    """S over the layers, a line for each group with the 95% interval of each mean; noise dotted, in its colour."""
    axes = scene.place.subplots()
    width = 0.5 / max(1, len(groups))
    for k, (name, rows) in enumerate(groups.items()):
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        layers = sorted({row["layer"] for row in rows})
        means = [mean_interval([row["searched"] for row in rows if row["layer"] == layer]) for layer in layers]
        noise = [mean_interval([row["noise"] for row in rows if row["layer"] == layer]).value for layer in layers]
        places = [layer + (k - (len(groups) - 1) / 2) * width for layer in layers]
        axes.plot(places, noise, color=colour, linestyle=(0, (1, 2)), linewidth=1.2)
        axes.plot(
            places, [mean.value for mean in means], color=colour, marker=marker, markersize=4.5, label=plain(name)
        )
        for x, mean in zip(places, means, strict=True):
            if mean.low is not None and mean.high is not None:
                axes.plot([x, x], [max(mean.low, 0.2 * mean.value), mean.high], color=colour, linewidth=1.2, alpha=0.7)
    axes.plot([], [], color=GREY, linestyle=(0, (1, 2)), linewidth=1.2, label="noise of the same size")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [t for t in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5) if low <= t <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_xticks(sorted({row["layer"] for row in scene.rows}))
    axes.set_xlabel("layer (0 is the input)")
    axes.set_ylabel("relative change S")
    lengths = sorted({row["n"] for row in scene.rows})
    axes.set_title(f"{scene.title}, n={lengths[0]}", loc="left", fontsize=10)
    axes.grid(True, axis="y", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    scene.place.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _count(grid: PanelGrid) -> int:
    return math.prod(len(values) for name, values in grid.varied.items() if name != "n")


def _width(grid: PanelGrid) -> float:
    lengths = len(grid.varied.get("n", ()))
    return _count(grid) * (2.2 + 0.42 * lengths) + 0.3 if lengths else 5.4


PICTURE = Picture(
    _draw,
    "Word sensitivity of the layers of an encoder, trained and with weights drawn anew.",
    _width,
    lambda grid: 3.6,
)
