"""A training: word sensitivity and accuracy over its steps, or at its end for several ways of pushing it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wordsway.studies.estimates import mean_interval
from wordsway.studies.panels.scene import COLOURS, PanelGrid, Picture, Row, Scene
from wordsway.support.plotting import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_REGIMES = {  # name: colour, marker, where its strengths are written (points from the marker)
    "plain": ("#222222", "*", (0, 0)),
    "penalty": (COLOURS[0], "v", (5, -11)),
    "bonus": (COLOURS[1], "^", (5, 5)),
    "noise": (COLOURS[2], "s", (-13, 6)),
}
_ACCURACIES = {  # column: label, colour, marker
    "review_accuracy": ("other texts", COLOURS[2], "s"),
    "pair_accuracy": ("minimal pairs: in the right order", COLOURS[3], "^"),
    "side_accuracy": ("minimal pairs: each side", COLOURS[0], "o"),
}


def _draw(scene: Scene) -> None:
    pushed = len({row["regime"] for row in scene.rows}) > 1 or "strength" in scene.grid.varied
    (_draw_control if pushed else _draw_steps)(scene)


def _draw_steps(scene: Scene) -> None:
    """Two axes over one another that share the steps: changes of the features above, accuracies below."""
    above, below = scene.place.subplots(2, 1, sharex=True)
    _line(above, scene.rows, "word_sensitivity", "one word, searched", COLOURS[1], "o")
    _line(above, scene.rows, "random_change", "one word, random move", GREY, "x")
    for column, style in _ACCURACIES.items():
        _line(below, scene.rows, column, *style)
    above.set_ylabel("word sensitivity")
    above.set_ylim(bottom=0)
    below.set_ylabel("accuracy, held out")
    below.set_ylim(0.35, 1.03)
    below.axhline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    below.set_xlabel("training steps")
    above.set_title(scene.title, loc="left", fontsize=10)
    for axes, place in ((above, "upper left"), (below, "lower right")):
        _plain_frame(axes)
        axes.legend(frameon=False, fontsize=8, loc=place)


def _line(axes: "Axes", rows: Sequence[Row], column: str, label: str, colour: str, marker: str) -> None:
    """The mean over trials with its 95% interval."""
    steps = sorted({row["step"] for row in rows if row.get(column) is not None})
    found = [mean_interval([row[column] for row in rows if row["step"] == step]) for step in steps]
    low = [part.value if part.low is None else part.low for part in found]
    high = [part.value if part.high is None else part.high for part in found]
    axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    means = [part.value for part in found]
    axes.plot(steps, means, color=colour, marker=marker, markersize=4.5, linewidth=1.6, label=label)


def _draw_control(scene: Scene) -> None:
    """Accuracy against word sensitivity at the end: a point for every regime and strength, trials as faint dots."""
    rows = [row for row in scene.rows if row["phase"] == "end"]
    left, right = scene.place.subplots(1, 2, sharey=True)
    shown: list[tuple[Any, str, str]] = [
        (left, "side_accuracy", "minimal pairs: each side"),
        (right, "review_accuracy", "other texts"),
    ]
    for axes, column, title in shown:
        for regime in [name for name in _REGIMES if any(row["regime"] == name for row in rows)]:
            _points(axes, [row for row in rows if row["regime"] == regime and row.get(column) is not None], column)
        axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set_xlabel("word sensitivity at the end")
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_ylim(0.35, 1.05)
        axes.set_xlim(left=-0.07 * axes.get_xlim()[1])
        _plain_frame(axes)
    left.set_ylabel("accuracy, held out")
    right.legend(frameon=False, fontsize=8, loc="center", title="mean, 95% interval; strength", title_fontsize=8)
    scene.place.suptitle(scene.title, x=0.02, ha="left", fontsize=10)


def _points(axes: "Axes", rows: Sequence[Row], column: str) -> None:
    """One regime: its strengths in order, joined by a thin line, each named."""
    if not rows:
        return
    colour, marker, away = _REGIMES[rows[0]["regime"]]
    strengths = sorted({row["strength"] for row in rows})
    means = []
    for strength in strengths:
        part = [row for row in rows if row["strength"] == strength]
        axes.scatter([r["word_sensitivity"] for r in part], [r[column] for r in part], s=9, color=colour, alpha=0.3,
                     marker=marker, linewidths=0)  # fmt: skip
        x, y = (mean_interval([row[name] for row in part]) for name in ("word_sensitivity", column))
        means.append((x.value, y.value))
        if x.low is not None and x.high is not None and y.low is not None and y.high is not None:
            axes.plot([x.low, x.high], [y.value] * 2, color=colour, linewidth=0.9, alpha=0.7)
            axes.plot([x.value] * 2, [y.low, y.high], color=colour, linewidth=0.9, alpha=0.7)
        if strength:
            axes.annotate(f"{strength:g}", means[-1], xytext=away, textcoords="offset points", fontsize=7.5,
                          color=colour)  # fmt: skip
    axes.plot(*zip(*means, strict=True), color=colour, marker=marker, markersize=10 if marker == "*" else 6,
              linewidth=0.8, linestyle=(0, (4, 2)), label=rows[0]["regime"],
              zorder=5 if marker == "*" else 3)  # fmt: skip


def _plain_frame(axes: "Axes") -> None:
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _width(grid: PanelGrid) -> float:
    regimes = grid.values.get("regime", "plain")
    return 5.2 if isinstance(regimes, str) and "strength" not in grid.varied else 7.6


_height: Callable[[PanelGrid], float] = lambda grid: 4.6  # noqa: E731
PICTURE = Picture(
    _draw,
    "Word sensitivity while models are trained, beside what they learn of the word that decides.",
    _width,
    _height,
)
