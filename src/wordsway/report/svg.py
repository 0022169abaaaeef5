"""Figures as vector graphics inside a page, in the page's own colours, so that they suit light and dark alike."""

import io
import re
import warnings
from itertools import count
from typing import TYPE_CHECKING, Any

from wordsway.report.parts import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import BboxBase

_MANY = 1500  # points of one scatter above which they are drawn as an image inside the figure
_COLOURS = {
    "#000000": "currentColor", "#333333": "currentColor", "#262626": "currentColor", "#222222": "currentColor",
    "#ffffff": "var(--paper)", "#dddddd": "var(--grid)", "#e8e8e8": "var(--shade)",
    "#777777": "var(--quiet)", "#555555": "var(--quiet)",
}  # fmt: skip
_numbers = count(1)


def picture(figure: "Figure", title: str, caption: list[str], part: "BboxBase | None" = None) -> Picture:
    """Show a figure, or the part of it that lies in a box (in inches), with a title and a caption."""
    return Picture(title, as_svg(figure, part), caption)


def as_svg(figure: "Figure", part: "BboxBase | None" = None) -> str:
    """Markup for the middle of a page. Names inside it are its own, whatever other figures the page has."""
    from matplotlib import rc_context

    _lighten(figure)
    content = io.StringIO()
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "wordsway"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*missing from font.*")
        options: dict[str, Any] = {"metadata": {"Date": None, "Creator": None}, "dpi": 150, "bbox_inches": part}
        figure.savefig(content, format="svg", transparent=True, **options)
    text = content.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)  # it would reach the whole page; our own has it
    text = re.sub(r'\bstyle="([^"]*)"', _attributes, text)  # a page may forbid styles of elements
    mark = f"p{next(_numbers)}-"
    text = re.sub(r'\bid="', f'id="{mark}', text)
    text = re.sub(r'(xlink:href|href)="#', rf'\1="#{mark}', text)
    text = re.sub(r"url\(#", f"url(#{mark}", text)
    text = re.sub("|".join(_COLOURS), lambda found: _COLOURS[found.group()], text)
    # Beside text of the page, a figure is one picture: its caption tells what it shows.
    return re.sub(r"<svg ", '<svg aria-hidden="true" focusable="false" ', text, count=1)


def _attributes(style: re.Match[str]) -> str:
    """Write a style as attributes of the element."""
    pairs = [part.split(":", 1) for part in style.group(1).split(";") if part.strip()]
    return " ".join(f'{name.strip()}="{value.strip()}"' for name, value in pairs)


def _lighten(figure: "Figure") -> None:
    """Scatters of very many points become images, which stay quick; axes and text stay lines."""
    import numpy as np
    from matplotlib.collections import Collection

    for artist in figure.findobj(Collection):
        if isinstance(artist, Collection) and len(np.asarray(artist.get_offsets())) > _MANY:
            artist.set_rasterized(True)
