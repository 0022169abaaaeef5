"""A study's results as one figure: every panel in its place, drawn by what it measures."""

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.studies.cells.sensitivity_cell import SYNTHETIC
from wordsway.studies.figures import (
    curve_panel,
    flip_panel,
    model_panels,
    pairs_panel,
    states_panel,
    training_panel,
)
from wordsway.studies.figures.flip_panel import draw_flips
from wordsway.studies.figures.scene import Arrays, Frame, Picture, Scene
from wordsway.studies.run.tables import Table
from wordsway.studies.study import Panel, Study
from wordsway.support.plotting import GREY, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_flips", "draw_panel", "draw_study", "save_figure"]

PICTURES: dict[str, Picture] = {
    "sensitivity": curve_panel.PICTURE,
    "flips": flip_panel.PICTURE,
    "layers": model_panels.LAYERS,
    "attention": model_panels.ATTENTION,
    "prompts": model_panels.ANSWERS,
    "states": states_panel.PICTURE,
    "training": training_panel.PICTURE,
    "pairs": pairs_panel.PICTURE,
}


def draw_study(study: Study, table: Table, arrays: Arrays) -> "Figure":
    """The figure of a study. A panel without results says so in its place."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = {panel.id: panel for panel in study.panels}
    widths = [sum(PICTURES[panels[each].measure].width(panels[each]) for each in row) for row in study.layout]
    heights = [max(PICTURES[panels[each].measure].height(panels[each]) for each in row) for row in study.layout]
    figure = Figure(figsize=(max(widths), sum(heights) + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(plain(study.title or study.name), x=0.01, ha="left", fontweight="bold", fontsize=12)
    figure.supxlabel(plain(_settings(study)), x=0.995, ha="right", fontsize=7.5, color=GREY)
    bands: Any = figure.subfigures(len(study.layout), 1, squeeze=False, height_ratios=heights)[:, 0]
    frame = Frame.of(table.of(study.name))
    for band, row in zip(bands, study.layout, strict=True):
        places: Any = band.subfigures(
            1,
            len(row),
            squeeze=False,
            width_ratios=[PICTURES[panels[each].measure].width(panels[each]) for each in row],
        )
        for place, each in zip(places[0], row, strict=True):
            panel = panels[each]
            title = plain(panel.title or panel.id)
            _draw_panel(Scene(place, panel, title, table.of(study.name, each), arrays, frame))
    return figure


def draw_panel(study: Study, panel: Panel, table: Table, arrays: Arrays) -> "Figure":
    """One panel of a study as a figure of its own."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kind = PICTURES[panel.measure]
    figure = Figure(figsize=(kind.width(panel), kind.height(panel)), layout="constrained")
    FigureCanvasAgg(figure)
    place: Any = figure.subfigures(1, 1)
    title = plain(panel.title or panel.id)
    frame = Frame.of(table.of(study.name))
    _draw_panel(Scene(place, panel, title, table.of(study.name, panel.id), arrays, frame))
    return figure


def _settings(study: Study) -> str:
    """With what the panels that were run were made, in a line: models, data, padding, trials."""
    parts = []
    panels = [panel for panel in study.panels if panel.skip is None]
    for names in (("encoder", "model"), ("data",), ("padding",)):
        real = [p for p in panels if "encoder" in names or p.values.get("encoder") != SYNTHETIC]
        asked = [p.values[name] for p in real for name in names if name in p.values]
        listed = [item for value in asked for item in (value if isinstance(value, list | tuple) else [value])]
        values = dict.fromkeys(Path(str(item)).name for item in listed)
        parts += [f"{names[0]} {', '.join(values)}"] if values else []
    trials = {panel.id: panel.trials for panel in panels if panel.trials > 1}
    if len(set(trials.values())) == 1:
        parts.append(f"{next(iter(trials.values()))} trials")
    elif trials:
        parts.append("trials: " + ", ".join(f"{name} {count}" for name, count in trials.items()))
    if trials and any(panel.values.get("sensitivity") for panel in panels):
        parts.append("crosses: 95% intervals")
    if trials and any(panel.measure == "sensitivity" for panel in panels):
        parts.append("bands: one standard deviation")
    if trials and any(panel.measure == "pairs" for panel in panels):
        parts.append("bars: 95% intervals over trials")
    return "; ".join(parts)


def _draw_panel(scene: Scene) -> None:
    if scene.rows:
        PICTURES[scene.panel.measure].draw(scene)
        return
    axes = scene.place.subplots()
    axes.axis("off")
    why = scene.panel.skip or "nothing was measured"
    axes.text(0.5, 0.5, plain(textwrap.fill(f"not run: {why}", 40)), ha="center", va="center", color=GREY)
    axes.set_title(scene.title, loc="left", fontsize=10)


def save_figure(figure: "Figure", folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write a figure as PNG, PDF and SVG; returns the paths."""
    paths = [Path(folder) / f"{name}.{kind}" for kind in ("png", "pdf", "svg")]
    for path in paths:
        figure.savefig(path, dpi=160)
    return paths
