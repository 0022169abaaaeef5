"""A study's results as one figure in the paper's layout: every panel in its place, drawn by what it measures."""

import math
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.cells.sensitivity import SYNTHETIC
from wordsway.drawing import BLUE, GREY, ORANGE, heat, lines, plain
from wordsway.estimates import mean_sd
from wordsway.study import Panel, Study
from wordsway.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Row = Mapping[str, Any]
Arrays = Callable[[str], dict[str, Any]]  # a result's arrays, by the name in its row
# Okabe and Ito's colours, which stay apart for colour-blind readers; lines also have markers of their own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = "os^vDP*"
_AIMS = {"align": "o", "error": "x", "penalized": "s"}
_NAMES = {"n": "context length n (tokens)", "radius": "radius (in sqrt(d))", "depth": "depth L"}
_TRAININGS = {"finetune": "fine-tuned", "retrain": "re-trained"}
TOP, FAR = 5.0, 3.0  # where the axes of Err and gamma end at the latest


def draw_study(study: Study, table: Table, arrays: Arrays) -> "Figure":
    """The figure of a study. A panel without results says so in its place."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = {panel.id: panel for panel in study.panels}
    widths = [sum(_width(panels[each]) for each in row) for row in study.layout]
    heights = [max(_height(panels[each]) for each in row) for row in study.layout]
    figure = Figure(figsize=(max(widths), sum(heights) + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(plain(study.title or study.name), x=0.01, ha="left", fontweight="bold", fontsize=12)
    figure.supxlabel(plain(_settings(study)), x=0.995, ha="right", fontsize=7.5, color=GREY)
    bands: Any = figure.subfigures(len(study.layout), 1, squeeze=False, height_ratios=heights)[:, 0]
    frame = Frame.of(table.of(study.name))
    for band, row in zip(bands, study.layout, strict=True):
        places: Any = band.subfigures(1, len(row), squeeze=False, width_ratios=[_width(panels[each]) for each in row])
        for place, each in zip(places[0], row, strict=True):
            _draw_panel(place, panels[each], table.of(study.name, each), arrays, frame)
    return figure


@dataclass(frozen=True)
class Frame:
    """Where the axis of gamma ends, and whether points lie beyond the frame: the same for all panels of a figure."""

    right: float = 2.1
    beyond: bool = False

    @staticmethod
    def of(rows: Sequence[Row]) -> "Frame":
        points = [(row["gamma"], row["err"]) for row in rows if row.get("err") is not None]
        right = min(FAR, max([2.1, *(1.05 * gamma for gamma, _ in points)]))
        return Frame(right, any(gamma > FAR or err > TOP for gamma, err in points))


def _settings(study: Study) -> str:
    """With what the panels that were run were made, in a line: models, data, padding, trials."""
    parts = []
    panels = [panel for panel in study.panels if panel.skip is None]
    for names in (("encoder", "model"), ("data",), ("padding",)):
        real = [p for p in panels if "encoder" in names or p.values.get("encoder") != SYNTHETIC]
        values = dict.fromkeys(Path(str(p.values[name])).name for p in real for name in names if name in p.values)
        parts += [f"{names[0]} {', '.join(values)}"] if values else []
    trials = {panel.id: panel.trials for panel in panels if panel.trials > 1}
    if len(set(trials.values())) == 1:
        parts.append(f"{next(iter(trials.values()))} trials")
    elif trials:
        parts.append("trials: " + ", ".join(f"{name} {count}" for name, count in trials.items()))
    if trials and any(panel.measure == "sensitivity" for panel in panels):
        parts.append("bands: one standard deviation")
    return "; ".join(parts)


def _width(panel: Panel) -> float:
    several = [values for name, values in panel.axes().items() if name in ("map", "d", "depth", "n")]
    columns = math.prod(map(len, several)) if panel.measure == "flips" else 1
    return {"flips": 3.7, "attention": 8.0, "layers": 7.0}.get(panel.measure, 5.2) * columns


def _height(panel: Panel) -> float:
    if panel.measure == "flips":
        return 1.0 + 2.7 * len(panel.values.get("trainings", (1, 2)))
    return 4.3 if panel.measure == "attention" else 3.9


def _draw_panel(place: "SubFigure", panel: Panel, rows: Sequence[Row], arrays: Arrays, frame: Frame) -> None:
    title = plain(panel.title or panel.id)
    if not rows:
        axes = place.subplots()
        axes.axis("off")
        why = panel.skip or "nothing was measured"
        axes.text(0.5, 0.5, plain(textwrap.fill(f"not run: {why}", 40)), ha="center", va="center", color=GREY)
        axes.set_title(title, loc="left", fontsize=10)
    elif panel.measure == "flips":
        _draw_flips(place, panel, rows, frame)
    elif panel.measure == "attention":
        _draw_attention(place, title, rows[0], arrays)
    elif panel.measure == "prompts":
        _draw_answers(place, title, panel, rows[0])
    elif panel.measure == "layers":
        _draw_layers(place.subplots(), title, rows)
    else:
        _draw_curves(place.subplots(), panel, rows)


def save_figure(figure: "Figure", folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write a figure as PNG, PDF and SVG; returns the paths."""
    paths = [Path(folder) / f"{name}.{kind}" for kind in ("png", "pdf", "svg")]
    for path in paths:
        figure.savefig(path, dpi=160)
    return paths


def _draw_curves(axes: "Axes", panel: Panel, rows: Sequence[Row]) -> None:
    """S against n (or else the first axis that is a number): mean over trials with a band of one sd, a line for every
    combination of the other axes, the prediction dotted."""
    varied = panel.axes()
    numeric = [name for name, values in varied.items() if all(isinstance(v, int | float) for v in values)]
    x = "n" if "n" in numeric or not numeric else numeric[0]
    series = [name for name in varied if name != x]
    groups: dict[tuple[Any, ...], dict[Any, list[Row]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in series), {}).setdefault(row[x], []).append(row)
    predicted = False
    for k, (values, by_x) in enumerate(groups.items()):
        colour, marker = COLOURS[k % len(COLOURS)], _MARKERS[k % len(_MARKERS)]
        places = sorted(by_x)
        stats = [mean_sd([row["lower"] for row in by_x[place]]) for place in places]
        label = ", ".join(
            f"{_short(name)}={value}" for name, value in zip(series, values, strict=True) if value is not None
        )
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
    if len(ticks) <= 8:
        close = [a for a, b in pairwise(ticks) if b - a < 0.05 * (ticks[-1] - ticks[0])]
        axes.set_xticks([tick for tick in ticks if tick not in close])
    axes.set_xlabel(_NAMES.get(x, x))
    axes.set_ylabel("word sensitivity S")
    axes.set_title(plain(panel.title), loc="left", fontsize=10)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8.5)


def _short(name: str) -> str:
    return {"depth": "L"}.get(name, name)


def _draw_flips(place: "SubFigure", panel: Panel, rows: Sequence[Row], frame: Frame) -> None:
    """Err against gamma: a row of axes for each training, a column for each map, d and n."""
    rows = [row for row in rows if row["err"] is not None]
    trainings = list(dict.fromkeys(row["training"] for row in rows))
    names = [name for name in ("map", "d", "depth") if name in panel.axes()]
    columns = list({tuple(row[name] for name in (*names, "n")): None for row in rows})
    grid: Any = place.subplots(len(trainings), len(columns), sharex=True, sharey=True, squeeze=False)
    wanted = [dict(zip((*names, "n"), column, strict=True)) for column in columns]
    draw_flips(grid, rows, trainings, wanted, frame)
    for axes, column in zip(grid[0], wanted, strict=True):
        parts = [str(value) if name == "map" else f"{_short(name)}={value}" for name, value in column.items()]
        title = [panel.title] if panel.title else []
        axes.set_title(plain(", ".join([*title, *parts])), loc="left", fontsize=10, pad=14)
    handles, labels = grid[0][0].get_legend_handles_labels()
    place.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def draw_flips(
    grid: Any,
    rows: Sequence[Row],
    trainings: Sequence[str],
    columns: Sequence[Mapping[str, Any]],
    frame: Frame | None = None,
) -> None:
    """Points on a grid of axes. What lies on the black curve cannot follow the flip; the grey area is below half of it.
    Points beyond the frame are drawn at its edge with an arrow. Colours are training sizes or, where there is one size,
    penalties."""
    frame = frame or Frame.of(rows)
    sizes = sorted({row["train_size"] for row in rows})
    prices = [row["penalty"] for row in rows if row["penalty"] is not None]
    shade = "train_size" if len(sizes) > 1 or not prices else "penalty"
    shades: list[Any] = sizes if shade == "train_size" else [*dict.fromkeys(row["penalty"] for row in rows)]
    kinds = list(dict.fromkeys((row["objective"], None if shade == "penalty" else row["penalty"]) for row in rows))
    for training, line in zip(trainings, grid, strict=True):
        for column, axes in zip(columns, line, strict=True):
            _draw_bound(axes, frame.right)
            here = [r for r in rows if r["training"] == training and all(r[k] == v for k, v in column.items())]
            for k, value in enumerate(shades):
                for objective, price in kinds:
                    wanted = {"objective": objective, shade: value} | ({} if shade == "penalty" else {"penalty": price})
                    points = [r for r in here if all(r[name] == v for name, v in wanted.items())]
                    label = _describe(objective, value if shade == "penalty" else price, sizes, wanted)
                    _scatter(axes, points, COLOURS[k % len(COLOURS)], _AIMS[objective], label)
            axes.set(xlim=(-0.03 * frame.right, frame.right), ylim=(-0.03 * TOP, 1.04 * TOP))
            axes.spines[["top", "right"]].set_visible(False)
            if frame.beyond:
                axes.scatter([], [], marker="$\u2197$", color="#555555", label="beyond the frame")
        line[0].set_ylabel(f"Err, {_TRAININGS[training]}")
    for axes in grid[-1]:
        axes.set_xlabel("gamma: told apart before")


def _describe(objective: str, penalty: float | None, sizes: Sequence[int], wanted: Mapping[str, Any]) -> str:
    what = objective if penalty is None else f"{objective} {penalty:g}"
    return f"{what}, N={wanted['train_size']}" if len(sizes) > 1 and "train_size" in wanted else what


def _draw_bound(axes: "Axes", right: float) -> None:
    gamma = [right * k / 200 for k in range(201)]
    bound = [max(0.0, 2 - g) ** 2 for g in gamma]
    half = [value / 2 for value in bound]
    axes.plot(gamma, bound, color="black", linewidth=1.2, label="(2 - gamma)\u00b2", zorder=1)
    axes.fill_between(gamma, 0, half, color="#e8e8e8", linewidth=0, zorder=0, label="below half of it")


def _scatter(axes: "Axes", points: Sequence[Row], colour: str, marker: str, label: str) -> None:
    style: dict[str, Any] = {"color": colour} if marker == "x" else {"facecolors": "none", "edgecolors": colour}
    places = [(min(row["gamma"], FAR), min(row["err"], TOP)) for row in points]
    axes.scatter([x for x, _ in places], [y for _, y in places], s=26, marker=marker, linewidths=1.2, label=label,
                 zorder=3, clip_on=False, **style)  # fmt: skip
    for row, place in zip(points, places, strict=True):
        up, on = row["err"] > TOP, row["gamma"] > FAR
        if up or on:
            arrow = "\u2197" if up and on else "\u2191" if up else "\u2192"
            axes.annotate(arrow, place, xytext=(5 if on else 0, 4 if up else 0), textcoords="offset points",
                          ha="left" if on else "center", va="baseline" if up else "center", fontsize=9,
                          color=colour)  # fmt: skip


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
    titles = ("before", f"\u201c{moved}\u201d moved") if moved else (_clip(row["text"]), _clip(row["against"]))
    image = heat(left, found["before"], names[0], titles[0], most, marked)
    heat(right, found["after"], names[1], titles[1], most, marked)
    place.colorbar(image, ax=[left, right], shrink=0.7, label="weight")
    head = "mean over heads" if row["head"] == 0 else f"head {row['head']}"
    which = f"{title}: layer {row['layer']}, {head}" + (f", token {row['token'] + 1} moved" if moved else "")
    place.suptitle(which, x=0.02, ha="left", fontsize=10)


def _draw_answers(place: "SubFigure", title: str, panel: Panel, row: Row) -> None:
    axes = place.subplots()
    axes.axis("off")
    axes.set_title(title, loc="left", fontsize=10)
    parts = []
    for prompt, answer in (("before", "answer_before"), ("after", "answer_after")):
        parts += ["\u2014 " + row[prompt], "  \u2192 " + (row[answer] or "(nothing)"), ""]
    shown = "\n".join(textwrap.fill(part, 64) for part in parts)
    axes.text(0.0, 0.95, plain(shown), va="top", ha="left", fontsize=8, wrap=False, transform=axes.transAxes)


def _clip(text: str, length: int = 30) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
