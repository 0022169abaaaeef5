"""A study's results as one figure: every panel in its place, drawn as its kind of cell says."""

import io
import os
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.studies.cells.grid_hooks import SYNTHETIC
from wordsway.studies.panels.scene import Arrays, Scene
from wordsway.studies.run.tables import Table
from wordsway.studies.study import Panel, Study
from wordsway.support.files import write_bytes
from wordsway.support.plotting import GREY, plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.transforms import BboxBase


@dataclass(frozen=True)
class StudyFigure:
    """A study's figure with the place of each panel in it."""

    figure: "Figure"
    places: dict[str, "SubFigure"]
    around: "tuple[Artist, ...]"  # texts that belong to no panel

    @contextmanager
    def only(self, panel: str) -> "Iterator[BboxBase]":
        """Hide everything but one panel; yields where it is, in inches. So a panel is drawn once, for the figure and
        for wherever it is shown alone."""
        self.figure.draw_without_rendering()  # gives everything its place,
        self.figure.set_layout_engine("none")  # which it keeps while others are hidden
        hidden = [*self.around, *(place for name, place in self.places.items() if name != panel)]
        for artist in hidden:
            artist.set_visible(False)
        try:
            yield self.places[panel].bbox.transformed(self.figure.dpi_scale_trans.inverted())
        finally:
            for artist in hidden:
                artist.set_visible(True)


def draw_study(study: Study, table: Table, arrays: Arrays) -> StudyFigure:
    """Draw the figure of a study. A panel without results says so in its place."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = {panel.id: panel for panel in study.panels}
    sizes = {name: _size(panel) for name, panel in panels.items()}
    heights = [max(sizes[each][1] for each in row) for row in study.layout]
    width = max(sum(sizes[each][0] for each in row) for row in study.layout)
    figure = Figure(figsize=(width, sum(heights) + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    title = figure.suptitle(plain(study.title or study.name), x=0.01, ha="left", fontweight="bold", fontsize=12)
    below = figure.supxlabel(plain(_settings(study)), x=0.995, ha="right", fontsize=7.5, color=GREY)
    bands: Any = figure.subfigures(len(study.layout), 1, squeeze=False, height_ratios=heights)[:, 0]
    places: dict[str, SubFigure] = {}
    for band, row in zip(bands, study.layout, strict=True):
        parts: Any = band.subfigures(1, len(row), squeeze=False, width_ratios=[sizes[each][0] for each in row])
        places |= dict(zip(row, parts[0], strict=True))
    all_rows = table.of(study.name)
    for name, place in places.items():
        panel = panels[name]
        heading = plain(panel.title or panel.id)
        mine = [row for row in all_rows if row["panel"] == name]
        _draw_panel(panel, Scene(place, panel.grid(), heading, mine, all_rows, arrays))
    return StudyFigure(figure, places, (title, below))


def _size(panel: Panel) -> tuple[float, float]:
    """Return the width and height of a panel, in inches."""
    picture, grid = panel.kind.drawn_as(), panel.grid()
    return picture.width(grid), picture.height(grid)


def _settings(study: Study) -> str:
    """Describe in a line how the panels that were run were made: models, data, padding, trials."""
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
    notes = dict.fromkeys(panel.kind.drawn_as().note(panel.grid()) for panel in panels) if trials else {}
    return "; ".join([*parts, *(note for note in notes if note)])


def _draw_panel(panel: Panel, scene: Scene) -> None:
    if scene.rows:
        panel.kind.drawn_as().draw(scene)
        return
    axes = scene.place.subplots()
    axes.axis("off")
    why = panel.skip or "nothing was measured"
    axes.text(0.5, 0.5, plain(textwrap.fill(f"not run: {why}", 40)), ha="center", va="center", color=GREY)
    axes.set_title(scene.title, loc="left", fontsize=10)


def save_figure(figure: "Figure", folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write a figure as PNG, PDF and SVG; returns the paths."""
    paths = [Path(folder) / f"{name}.{kind}" for kind in ("png", "pdf", "svg")]
    for path in paths:
        content = io.BytesIO()
        figure.savefig(content, format=path.suffix[1:], dpi=160)
        write_bytes(path, content.getvalue())
    return paths
