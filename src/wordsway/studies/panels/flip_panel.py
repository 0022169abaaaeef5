"""Err against gamma: can the model follow a flipped label?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordsway.studies.estimates import mean_interval
from wordsway.studies.panels.scene import COLOURS, MARKERS, PanelGrid, Picture, Row, Scene, short
from wordsway.support.plotting import GREY, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AIMS = {"align": "o", "error": "x", "penalized": "s"}
_TRAININGS = {"finetune": "fine-tuned", "retrain": "re-trained"}
TOP, FAR = 5.0, 3.0  # where the axes of Err and gamma end at the latest


@dataclass(frozen=True)
class Frame:
    """The end of the axis of gamma, and whether points lie beyond the frame: one for all panels of a figure."""

    right: float = 2.1
    beyond: bool = False

    @staticmethod
    def of(rows: Sequence[Row]) -> "Frame":
        """Choose the frame of some rows; those of other kinds of cells have no gamma."""
        points = [(row["gamma"], row["err"]) for row in rows if "gamma" in row and row.get("err") is not None]
        right = min(FAR, max([2.1, *(1.05 * gamma for gamma, _ in points)]))
        return Frame(right, any(gamma > FAR or err > TOP for gamma, err in points))


def _draw(scene: Scene) -> None:
    if scene.grid.values.get("sensitivity"):
        _draw_knob(scene)
    else:
        _draw_scatter(scene)


def _draw_knob(scene: Scene) -> None:
    """Err against word sensitivity: a point for every map, the mean over trials with its 95% interval."""
    rows = [row for row in scene.rows if row["err"] is not None]
    trainings = list(dict.fromkeys(row["training"] for row in rows))
    maps = list(dict.fromkeys(row["map"] for row in rows))
    grid: Any = scene.place.subplots(1, len(trainings), sharex=True, sharey=True, squeeze=False)
    for axes, training in zip(grid[0], trainings, strict=True):
        texts = []
        for k, name in enumerate(maps):
            mine = [row for row in rows if row["map"] == name and row["training"] == training]
            trials: dict[int, list[Row]] = {}
            for row in mine:
                trials.setdefault(row["trial"], []).append(row)
            x, y, bound = (
                mean_interval([math.fsum(row[column] for row in part) / len(part) for part in trials.values()])
                for column in ("lower", "err", "bound")
            )
            axes.plot(x.value, bound.value, marker="_", markersize=11, color=GREY, zorder=2)
            bars = [[e.value - (e.value if e.low is None else e.low), (e.value if e.high is None else e.high) - e.value]
                    for e in (x, y)]  # fmt: skip
            colour, marker = _style(name)
            axes.errorbar(x.value, y.value, [[b] for b in bars[1]], [[b] for b in bars[0]], color=colour, marker=marker,
                          elinewidth=0.8, markersize=6, zorder=3)  # fmt: skip
            texts.append((x.value, y.value, str(k + 1)))
        for px, py, text in texts:
            axes.annotate(text, (px, py), xytext=(4, 4), textcoords="offset points", fontsize=8)
        axes.set_title(plain(f"{scene.title}, {_TRAININGS[training]}"), loc="left", fontsize=10)
        axes.set_xlabel("word sensitivity S (at least)")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0][0].set_ylabel("Err that was reached; grey: (2 - gamma)\u00b2")
    legend = [f"{k + 1} {name}" for k, name in enumerate(maps)]
    handles = [grid[0][0].scatter([], [], color=colour, marker=marker) for colour, marker in map(_style, maps)]
    scene.place.legend(handles, [plain(text) for text in legend], loc="outside right center", frameon=False, fontsize=8)


def _style(name: str) -> tuple[str, str]:
    """Variants of one kind share colour and marker: random features, temperatures, scores, sight, heads."""
    kinds = ("temperature", "score", "causal", "window", "heads", "rank")
    found = next((kind for kind in kinds if kind in name), name.split(":")[0])
    order = {"rf": 0, "drf": 0, "raf": 1, "temperature": 1, "score": 2, "relu-raf": 2, "causal": 3, "window": 3}
    kind = order.get(found, 4)
    return COLOURS[kind], MARKERS[kind]


def _draw_scatter(scene: Scene) -> None:
    """Err against gamma: a row of axes for each training, a column for each map, d and n."""
    place, asked = scene.place, scene.grid
    rows = [row for row in scene.rows if row["err"] is not None]
    trainings = list(dict.fromkeys(row["training"] for row in rows))
    names = [name for name in ("map", "d", "depth") if name in asked.varied]
    columns = list({tuple(row[name] for name in (*names, "n")): None for row in rows})
    grid: Any = place.subplots(len(trainings), len(columns), sharex=True, sharey=True, squeeze=False)
    wanted = [dict(zip((*names, "n"), column, strict=True)) for column in columns]
    draw_flips(grid, rows, trainings, wanted, Frame.of(scene.study_rows))
    for axes, column in zip(grid[0], wanted, strict=True):
        parts = [str(value) if name == "map" else f"{short(name)}={value}" for name, value in column.items()]
        title = [asked.title] if asked.title else []
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


def _columns(grid: PanelGrid) -> int:
    if grid.values.get("sensitivity"):
        return 4
    return math.prod(len(values) for name, values in grid.varied.items() if name in ("map", "d", "depth", "n"))


SEE = (
    "Can the model learn that one word flipped the label? Each point is a text: gamma is how far the two versions were "
    "told apart before, Err the error on the flipped one afterwards. Points on the black curve cannot follow the flip; "
    "points in the grey area below half of it can."
)
PICTURE = Picture(
    _draw,
    SEE,
    lambda grid: 3.7 * _columns(grid),
    lambda grid: 1.0 + 2.7 * (1.5 if grid.values.get("sensitivity") else len(grid.values.get("trainings", (1, 2)))),
    note=lambda grid: "crosses: 95% intervals" if grid.values.get("sensitivity") else "",
)
