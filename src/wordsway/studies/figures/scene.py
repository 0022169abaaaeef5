"""What all pictures of studies share: colours, names, and what a kind of panel has to say about its picture."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordsway.studies.study import Panel

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

Row = Mapping[str, Any]
Arrays = Callable[[str], dict[str, Any]]  # a result's arrays, by the name in its row
# Okabe and Ito's colours, which stay apart for colour-blind readers; lines also have markers of their own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "os^vDP*"
TOP, FAR = 5.0, 3.0  # where the axes of Err and gamma end at the latest


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


@dataclass(frozen=True)
class Scene:
    """A panel with its results, and where it is to be drawn."""

    place: "SubFigure"
    panel: Panel
    title: str
    rows: Sequence[Row]
    arrays: Arrays
    frame: Frame


@dataclass(frozen=True)
class Picture:
    """How a kind of panel is drawn, what to see in it, and how many inches it takes."""

    draw: Callable[[Scene], None]
    see: str
    width: Callable[[Panel], float] = lambda panel: 5.2
    height: Callable[[Panel], float] = lambda panel: 3.9


def short_maps(names: Sequence[str]) -> dict[str, str]:
    """Maps' names without what all of them have in common."""
    parts = {name: name.partition(":")[2].split(",") for name in names}
    shared = set.intersection(*(set(each) for each in parts.values())) if len(parts) > 1 else set()
    one_base = len({name.partition(":")[0] for name in names}) == 1 and len(parts) > 1
    found = {}
    for name, options in parts.items():
        left = ",".join(option for option in options if option not in shared)
        found[name] = left if one_base and left else name.partition(":")[0] + (f":{left}" if left else "")
    return found if len(set(found.values())) == len(found) else {name: name for name in names}


def short(name: str) -> str:
    return {"depth": "L"}.get(name, name)


def clip(text: str, length: int = 30) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
