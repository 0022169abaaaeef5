"""Whole figures of `curve` and `generalize`, from their results; matplotlib is loaded on demand."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from wordsway.studies.cells.kinds import kind_of
from wordsway.studies.curve import Curve, Fit, Point
from wordsway.studies.generalize import Flips
from wordsway.studies.panels.flip_panel import draw_flips
from wordsway.support.plotting import new_axes, plain

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
_MOST_NAMED = 12  # lines of a picture that are named beside it
_LINES = ("-", "--", ":", "-.")


def plot_curve(curve: Curve, ax: Any = None) -> Any:
    """Draw S against n on logarithmic axes: mean of the search with a band of one sd, certificates as a thin line
    above, the prediction dotted in grey, and the average over random deltas faint below. Returns the axes."""
    axes = ax or new_axes(8.6, 5.2)
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
    if ax is None:
        axes.figure.legend(loc="outside right upper", frameon=False, fontsize=8.5)
    else:
        axes.legend(frameon=False, fontsize=8.5)
    return axes


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


def plot_rows(rows: Sequence[Mapping[str, Any]], ax: Any = None) -> Any:
    """Draw the first panel of a table of runs: the first number of its kind of cell against the axis with most values,
    as means over trials, a line for every other combination. Returns the axes."""
    axes = ax or new_axes(8.6, 4.6)
    if not rows:
        axes.set_title("Nothing is measured yet", loc="left", fontsize=10, fontweight="bold")
        return axes
    first = rows[0]
    kind = kind_of(first["measure"])
    mine = [row for row in rows if (row["study"], row["panel"]) == (first["study"], first["panel"])]
    mine = [row for row in mine if isinstance(row.get(kind.first), int | float)]
    names = [name for name in (*kind.__dataclass_fields__, *kind.within) if name not in ("trial", "seed")]
    values = {name: list(dict.fromkeys(repr(row.get(name)) for row in mine)) for name in names}
    varied = [name for name in names if len(values[name]) > 1]
    numeric = [name for name in varied if all(isinstance(row.get(name), int | float) for row in mine)]
    x = "n" if "n" in numeric else max(numeric, key=lambda name: len(values[name]), default=None)
    groups: dict[str, dict[float, list[float]]] = {}
    for row in mine:
        label = ", ".join(f"{name}={row.get(name)}"[:40] for name in varied if name != x)
        groups.setdefault(label, {}).setdefault(0.0 if x is None else row[x], []).append(row[kind.first])
    for k, (label, by_x) in enumerate(groups.items()):
        places = sorted(by_x)
        means = [statistics.fmean(by_x[place]) for place in places]
        named = plain(label) if k < _MOST_NAMED else None
        axes.plot(places, means, marker="o", markersize=4, linewidth=1.4, label=named)
    axes.set_xlabel(x or "all cells")
    axes.set_ylabel(plain(f"{kind.first} (mean over trials)"))
    axes.set_title(plain(f"{first['study']}, panel {first['panel']}"), loc="left", fontsize=10, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    if varied and len(groups) > 1:
        axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return axes


def plot_all_flips(flips: Flips, ax: Any = None) -> Any:
    """Draw Err against gamma of all flips, a colour a map and a mark a way of training. Returns the axes."""
    axes = ax or new_axes(7.4, 4.8)
    marks = {"finetune": "o", "retrain": "s"}
    others = [name for name in flips.plan.maps if name not in _STYLES]
    styles = {**_STYLES, **{name: _OTHERS[k % len(_OTHERS)] for k, name in enumerate(others)}}
    right = max([2.0, *(point.gamma for point in flips.points)])
    gammas = [right * k / 200 for k in range(201)]
    axes.plot(gammas, [max(0.0, 2 - gamma) ** 2 for gamma in gammas], color="#000000", linewidth=1.2,
              label="cannot learn the flip: (2 - gamma)^2")  # fmt: skip
    for map in flips.plan.maps:
        for training in flips.plan.trainings:
            points = [p for p in flips.points if (p.map, p.training) == (map, training)]
            if points:
                axes.scatter([p.gamma for p in points], [p.err for p in points], s=22, alpha=0.75,
                             color=styles[map][0], marker=marks[training],
                             label=plain(f"{_NAMES.get(map, map)}, {training}"))  # fmt: skip
    axes.set_xlabel("gamma (score difference before training)")
    axes.set_ylabel("Err (log scale above 0.01)")
    axes.set_yscale("symlog", linthresh=0.01)
    axes.set_title("Can it learn that one word flipped the label?", loc="left", fontsize=10, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return axes


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
