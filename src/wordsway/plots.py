"""Pictures of results, with matplotlib loaded on demand and no global state changed."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.curves import Curve, Fit, Point
from wordsway.flips import FlipPoint, Flips

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which stay apart for colour-blind readers; each map also has a marker of its own.
_STYLES = {
    "rf": ("#0072B2", "o"),
    "drf": ("#56B4E9", "v"),
    "raf": ("#D55E00", "s"),
    "relu-raf": ("#009E73", "^"),
}
_NAMES = {"rf": "RF", "drf": "deep RF", "raf": "RAF (softmax)", "relu-raf": "ReLU-RAF"}
_LINES = ("-", "--", ":", "-.")
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = {"align": "o", "error": "x", "penalized": "sD^vP*"}
_TOP = 5.0  # of the axis of Err
_TRAININGS = {"finetune": "fine-tuned", "retrain": "re-trained"}


def plot_curve(curve: Curve) -> "Figure":
    """S against n on logarithmic axes: mean of the search with a band of one sd, certificates as a thin line above, the
    prediction dotted in grey, and the average over random deltas faint below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    widths = list(curve.plan.d)
    for fit in curve.fits:
        points = [point for point in curve.points if (point.map, point.d) == (fit.map, fit.d)]
        _draw(axes, points, fit, _LINES[widths.index(fit.d) % len(_LINES)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    lengths = sorted(curve.plan.n)
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= t <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xlabel("context length n (tokens)")
    axes.set_ylabel("word sensitivity S")
    axes.set_title("How far one token can move the features", loc="left", fontweight="bold")
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.plot([], [], color="#555555", linewidth=0.9, label="certificate (no token can do more)")
    axes.plot([], [], color="#555555", linestyle=(0, (1, 2)), linewidth=1.4, label="prediction")
    axes.plot([], [], color="#999999", linestyle="", marker="_", markersize=9, label="average over random moves")
    figure.legend(loc="outside right upper", frameon=False, fontsize=8.5)
    return figure


def _draw(axes: "Axes", points: list[Point], fit: Fit, line: str) -> None:
    points = sorted(points, key=lambda point: point.n)
    colour, marker = _STYLES.get(fit.map, ("#444444", "o"))
    n, mean = [p.n for p in points], [p.mean for p in points]
    label = f"{_NAMES.get(fit.map, fit.map)}, d={fit.d}"
    if fit.exponent is not None:
        label += f":  S ~ n^{fit.exponent:.2f}"
        if fit.low is not None and fit.high is not None:
            label += f"  [{fit.low:.2f}, {fit.high:.2f}]"
    axes.fill_between(n, [max(p.mean - p.sd, 1e-6) for p in points], [p.mean + p.sd for p in points],
                      color=colour, alpha=0.2, linewidth=0)  # fmt: skip
    axes.plot(n, mean, color=colour, marker=marker, markersize=5, linestyle=line, linewidth=1.6, label=label)
    certified = [(p.n, p.upper) for p in points if p.upper is not None]
    if certified:
        axes.plot(*zip(*certified, strict=True), color=colour, linewidth=0.9, linestyle=line, alpha=0.8)
    predicted = [(p.n, p.theory) for p in points if p.theory is not None]
    if predicted:
        axes.plot(*zip(*predicted, strict=True), color="#333333", linestyle=(0, (1, 2)), linewidth=1.4, zorder=3)
    axes.plot(n, [p.random for p in points], color=colour, linestyle="", marker="_", markersize=9, alpha=0.55)


def plot_flips(flips: Flips, map: str) -> "Figure":
    """Err against gamma for one map: a row for each way of training, a column for each n (and d). What lies on the
    black curve cannot follow the flip; the grey area is below half of it. Points above the frame are drawn at its edge
    with an arrow."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plan = flips.plan
    points = [point for point in flips.points if point.map == map]
    columns = sorted({(p.n, p.d) for p in points})
    figure = Figure(figsize=(2.6 + 3.6 * len(columns), 0.9 + 2.8 * len(plan.trainings)), layout="constrained")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(len(plan.trainings), len(columns), sharex=True, sharey=True, squeeze=False)
    by_size = len(plan.train_sizes) > 1 or "penalized" not in plan.objectives
    shades = list(plan.train_sizes) if by_size else [None, *plan.penalties]
    kinds = [(objective, penalty) for _, objective, penalty in plan.questions()] if by_size else []
    kinds = list(dict.fromkeys(kinds or [(objective, None) for objective in plan.objectives]))
    right = max(2.1, 1.05 * max(p.gamma for p in points))
    for training, row in zip(plan.trainings, grid, strict=True):
        for (n, d), axes in zip(columns, row, strict=True):
            _draw_bound(axes, right)
            panel = [p for p in points if (p.training, p.n, p.d) == (training, n, d)]
            for k, shade in enumerate(shades):
                for kind in kinds:
                    chosen = [p for p in panel if (_size(p) if by_size else p.penalty) == shade
                              and p.objective == kind[0] and (not by_size or p.penalty == kind[1])]  # fmt: skip
                    label = _describe(kind[0], kind[1] if by_size else shade, shade if by_size else None)
                    _scatter(axes, chosen, _COLOURS[k % len(_COLOURS)], _marker(kind, kinds), label)
            title = f"n={n}, d={d}" if len(plan.d) > 1 else f"n={n}"
            axes.set_title(f"{_TRAININGS[training]}, {title}", loc="left", fontsize=10, pad=14)
            axes.set(xlim=(-0.03 * right, right), ylim=(-0.03 * _TOP, 1.04 * _TOP))
            axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("gamma: told apart before training")
    for row in grid:
        row[0].set_ylabel("Err after training")
    sizes = "" if len(plan.train_sizes) > 1 else f", N={min(plan.train_sizes)}"
    space = " " if len(columns) > 1 else "\n"
    title = f"{_NAMES.get(map, map)}{sizes}:{space}can it learn that one word flipped the label?"
    if any(p.err > _TOP for p in points):
        grid[0][0].scatter([], [], marker="$\u2191$", color="#555555", label="above the frame")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    entries = {}
    for axes in grid.flat:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False, fontsize=8.5)
    return figure


def _draw_bound(axes: "Axes", right: float) -> None:
    gamma = [right * k / 200 for k in range(201)]
    bound = [max(0.0, 2 - g) ** 2 for g in gamma]
    half = [value / 2 for value in bound]
    axes.plot(gamma, bound, color="black", linewidth=1.2, label="(2 - gamma)\u00b2", zorder=1)
    axes.fill_between(gamma, 0, half, color="#e8e8e8", linewidth=0, zorder=0, label="below half of it")


def _size(point: FlipPoint) -> float:
    return point.train_size


def _describe(objective: str, penalty: float | None, size: float | None) -> str:
    what = objective if penalty is None else f"{objective} {penalty:g}"
    return what if size is None else f"{what}, N={size:g}"


def _marker(kind: tuple[str, float | None], kinds: list[tuple[str, float | None]]) -> str:
    alike = [other for other in kinds if other[0] == kind[0]]
    return _MARKERS[kind[0]][alike.index(kind) % len(_MARKERS[kind[0]])]


def _scatter(axes: "Axes", points: list[FlipPoint], colour: str, marker: str, label: str) -> None:
    if not points:
        return
    style: dict[str, Any] = {"color": colour} if marker == "x" else {"facecolors": "none", "edgecolors": colour}
    heights = [min(p.err, _TOP) for p in points]
    axes.scatter([p.gamma for p in points], heights, s=30, marker=marker, linewidths=1.3, label=label, zorder=3,
                 clip_on=False, **style)  # fmt: skip
    for p in points:
        if p.err > _TOP:
            axes.annotate("\u2191", (p.gamma, _TOP), xytext=(0, 4), textcoords="offset points", ha="center",
                          fontsize=9, color=colour)  # fmt: skip


def save_figure(figure: "Figure", folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write a figure as PNG and PDF; returns the paths."""
    paths = [Path(folder) / f"{name}.png", Path(folder) / f"{name}.pdf"]
    for path in paths:
        figure.savefig(path, dpi=160)
    return paths
