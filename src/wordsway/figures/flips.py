"""Err against gamma: can the model follow a flipped label?"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wordsway.drawing import plain
from wordsway.figures.common import COLOURS, FAR, TOP, Frame, Picture, Row, Scene, short
from wordsway.study import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AIMS = {"align": "o", "error": "x", "penalized": "s"}
_TRAININGS = {"finetune": "fine-tuned", "retrain": "re-trained"}


def _draw(scene: Scene) -> None:
    """Err against gamma: a row of axes for each training, a column for each map, d and n."""
    place, panel = scene.place, scene.panel
    rows = [row for row in scene.rows if row["err"] is not None]
    trainings = list(dict.fromkeys(row["training"] for row in rows))
    names = [name for name in ("map", "d", "depth") if name in panel.axes()]
    columns = list({tuple(row[name] for name in (*names, "n")): None for row in rows})
    grid: Any = place.subplots(len(trainings), len(columns), sharex=True, sharey=True, squeeze=False)
    wanted = [dict(zip((*names, "n"), column, strict=True)) for column in columns]
    draw_flips(grid, rows, trainings, wanted, scene.frame)
    for axes, column in zip(grid[0], wanted, strict=True):
        parts = [str(value) if name == "map" else f"{short(name)}={value}" for name, value in column.items()]
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


def _columns(panel: Panel) -> int:
    return math.prod(len(values) for name, values in panel.axes().items() if name in ("map", "d", "depth", "n"))


PICTURE = Picture(
    _draw,
    lambda panel: 3.7 * _columns(panel),
    lambda panel: 1.0 + 2.7 * len(panel.values.get("trainings", (1, 2))),
)
