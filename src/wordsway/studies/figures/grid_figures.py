"""Whole figures of `curve` and `generalize`, from their results; matplotlib is loaded on demand."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from wordsway.studies.curve import Curve, Fit, Point
from wordsway.studies.generalize import Flips
from wordsway.studies.panels.flip_panel import draw_flips

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
_OTHERS = (("#CC79A7", "D"), ("#E69F00", "P"), ("#000000", "*"), ("#999999", "X"))  # in their order, for other maps
_NAMES = {"rf": "RF", "drf": "deep RF", "raf": "RAF (softmax)", "relu-raf": "ReLU-RAF"}
_LINES = ("-", "--", ":", "-.")


def plot_curve(curve: Curve) -> "Figure":
    """S against n on logarithmic axes: mean of the search with a band of one sd, certificates as a thin line above, the
    prediction dotted in grey, and the average over random deltas faint below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    widths = list(curve.plan.d)
    others = [name for name in curve.plan.maps if name not in _STYLES]
    styles = {**_STYLES, **{name: _OTHERS[k % len(_OTHERS)] for k, name in enumerate(others)}}
    for fit in curve.fits:
        points = [point for point in curve.points if (point.map, point.d) == (fit.map, fit.d)]
        _draw(axes, points, fit, styles[fit.map], _LINES[widths.index(fit.d) % len(_LINES)])
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
    axes.plot([], [], color="#555555", linewidth=0.9, label="certificate (no move of the token can do more)")
    axes.plot([], [], color="#555555", linestyle=(0, (1, 2)), linewidth=1.4, label="prediction")
    axes.plot([], [], color="#999999", linestyle="", marker="_", markersize=9, label="average over random moves")
    figure.legend(loc="outside right upper", frameon=False, fontsize=8.5)
    return figure


def _draw(axes: "Axes", points: list[Point], fit: Fit, style: tuple[str, str], line: str) -> None:
    points = sorted(points, key=lambda point: point.n)
    colour, marker = style
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
    """Err against gamma for one map: a row for each way of training, a column for each n (and d)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plan = flips.plan
    rows = [asdict(point) for point in flips.points if point.map == map]
    columns = sorted({(row["n"], row["d"]) for row in rows})
    figure = Figure(figsize=(2.6 + 3.6 * len(columns), 0.9 + 2.8 * len(plan.trainings)), layout="constrained")
    FigureCanvasAgg(figure)
    grid: Any = figure.subplots(len(plan.trainings), max(1, len(columns)), sharex=True, sharey=True, squeeze=False)
    if rows:
        draw_flips(grid, rows, plan.trainings, [{"n": n, "d": d} for n, d in columns])
    for (n, d), axes in zip(columns, grid[0], strict=False):
        axes.set_title(f"n={n}, d={d}" if len(plan.d) > 1 else f"n={n}", loc="left", fontsize=10, pad=14)
    sizes = "" if len(plan.train_sizes) > 1 else f", N={min(plan.train_sizes)}"
    space = " " if len(columns) > 1 else "\n"
    title = f"{_NAMES.get(map, map)}{sizes}:{space}can it learn that one word flipped the label?"
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8.5)
    return figure
