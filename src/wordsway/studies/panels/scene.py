"""Shared parts of all panels: colours, names, and the description of how a kind of cell is drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

Row = Mapping[str, Any]
Arrays = Callable[[str], dict[str, Any]]  # a result's arrays, by the name in its row
# Okabe and Ito's colours, which stay apart for colour-blind readers; lines also have markers of their own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "os^vDP*"


@dataclass(frozen=True)
class PanelGrid:
    """The grid of a panel: its values by field, and the fields that have several of them (its axes)."""

    values: Mapping[str, Any]
    varied: Mapping[str, list[Any]]
    title: str = ""


@dataclass(frozen=True)
class Scene:
    """A panel with its results, and where it is to be drawn. `study_rows` are the rows of all panels of its figure, for
    scales that they share."""

    place: "SubFigure"
    grid: PanelGrid
    title: str
    rows: Sequence[Row]
    study_rows: Sequence[Row]
    arrays: Arrays


@dataclass(frozen=True)
class Picture:
    """The way a kind of cell is drawn: the drawing, what to see in it (a caption of the report), its size
    in inches, and a note for the figure's last line where there are several trials. `slope` is the column whose
    exponent in n the report lists."""

    draw: Callable[[Scene], None]
    see: str = ""
    width: Callable[[PanelGrid], float] = lambda grid: 5.2
    height: Callable[[PanelGrid], float] = lambda grid: 3.9
    note: Callable[[PanelGrid], str] = lambda grid: ""
    slope: str | None = None


def short_maps(names: Sequence[str]) -> dict[str, str]:
    """Shorten maps' names: leave out what all of them have in common."""
    parts = {name: name.partition(":")[2].split(",") for name in names}
    shared = set.intersection(*(set(each) for each in parts.values())) if len(parts) > 1 else set()
    one_base = len({name.partition(":")[0] for name in names}) == 1 and len(parts) > 1
    found = {}
    for name, options in parts.items():
        left = ",".join(option for option in options if option not in shared)
        found[name] = left if one_base and left else name.partition(":")[0] + (f":{left}" if left else "")
    return found if len(set(found.values())) == len(found) else {name: name for name in names}


def short(name: str) -> str:
    """Shorten the name of a field for a legend."""
    return {"depth": "L"}.get(name, name)


def clip(text: str, length: int = 30) -> str:
    """Cut a long text."""
    return text if len(text) <= length else text[: length - 3] + "..."
