"""Pictures of plain numbers, on axes that are given or new; matplotlib is loaded on demand, no global state changed.

What the results' own `plot` methods share.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from wordsway.support.digits import three

BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#777777"
_LABEL = 36  # characters of a line below one of several panels


def new_axes(width: float = 7.0, height: float = 4.5) -> Any:
    """Axes of a figure of their own."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def square_axes(names: Sequence[Sequence[str]], largest: float, title: str | None = None) -> list[Any]:
    """Axes side by side for squares with these names at their rows and columns; no name is cut off."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    side = min(largest, 2.4 + 0.2 * max(map(len, names)))
    labels = 0.35 + 0.085 * max((len(name) for part in names for name in part), default=0)  # inches, at 9 points
    figure = Figure(figsize=((side + labels) * len(names) + 1.2, side + labels + 0.6), layout="compressed")
    FigureCanvasAgg(figure)
    if title is not None:
        figure.suptitle(plain(title), x=0.01, ha="left", fontsize=10, fontweight="bold")
    return list(figure.subplots(1, len(names), squeeze=False)[0])


def plain(text: str) -> str:
    """Text as matplotlib shows it literally: a dollar sign does not begin a formula."""
    return text.replace("$", r"\$")


def bars(ax: Any, names: Sequence[str], values: Sequence[float], marked: Sequence[bool], label: str, title: str) -> Any:
    """Horizontal bars, the first at the top; marked ones are orange and hatched."""
    ax = ax or new_axes(7.0, 1.2 + 0.28 * len(names))
    places = list(range(len(names)))
    drawn = ax.barh(places, values, color=[ORANGE if mark else BLUE for mark in marked], height=0.7)
    for bar, mark, value in zip(drawn, marked, values, strict=True):
        bar.set_hatch("//" if mark else None)
        bar.set_edgecolor("white")
        ax.annotate(three(value), (value, bar.get_y() + bar.get_height() / 2), xytext=(3, 0), va="center",
                    textcoords="offset points", fontsize=8)  # fmt: skip
    ax.set_yticks(places, [plain(name) for name in names])
    ax.invert_yaxis()
    ax.margins(x=0.1)
    ax.set_xlabel(label)
    ax.set_title(plain(title), loc="left", fontsize=10, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    if any(marked):
        from matplotlib.patches import Patch

        flips = Patch(facecolor=ORANGE, hatch="//", edgecolor="white", label="flips the prediction")
        keeps = Patch(facecolor=BLUE, edgecolor="white", label="does not")
        handles = [flips, keeps][: 2 if not all(marked) else 1]
        ax.figure.legend(handles=handles, frameon=False, fontsize=8.5, loc="outside lower left", ncols=2)
    return ax


def lines(
    ax: Any,
    x: Sequence[int],
    series: Mapping[str, tuple[Sequence[float], str, str]],
    band: Mapping[str, Sequence[float]],
    labels: tuple[str, str],
    title: str,
) -> Any:
    """Named series, each (values, colour, marker), on a logarithmic axis; `band` is one sd around some of them."""
    ax = ax or new_axes(9.4, 4.4)
    for name, (values, colour, marker) in series.items():
        if name in band:
            low = [max(value - sd, 1e-6) for value, sd in zip(values, band[name], strict=True)]
            high = [value + sd for value, sd in zip(values, band[name], strict=True)]
            ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(x, values, color=colour, marker=marker, markersize=5, linewidth=1.6, label=plain(name))
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
    ticks = [t for t in steps if low <= t <= high]
    if len(ticks) < 4:
        ticks = [t * k for t in (0.001, 0.01, 0.1, 1, 10) for k in (1, 1.5, 2, 3, 4, 5, 7) if low <= t * k <= high]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_xticks(list(x) if len(x) <= 16 else list(x)[:: (len(x) + 15) // 16])
    ax.set_xlabel(labels[0])
    ax.set_ylabel(f"{labels[1]} (log scale)")
    ax.set_title(plain(title), loc="left", fontsize=10, fontweight="bold")
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return ax


def heat(ax: Any, values: Any, names: Sequence[str], title: str, most: float, marked: Sequence[int] = ()) -> Any:
    """A square of attention weights, dark where large, with a token's name at each row and column (few enough)."""
    ax = ax or new_axes(5.0, 5.0)
    image = ax.imshow(values.numpy(), cmap="Blues", vmin=0.0, vmax=most, aspect="equal", interpolation="nearest")
    shown = [plain(name) for name in names]
    size = 9 if len(names) <= 16 else 7 if len(names) <= 40 else 4
    if len(names) <= 80:
        ax.set_xticks(range(len(shown)), shown, rotation=90, fontsize=size)
        ax.set_yticks(range(len(shown)), shown, fontsize=size)
        for k in marked:
            for tick in (ax.get_xticklabels()[k], ax.get_yticklabels()[k]):
                tick.set_color(ORANGE)
                tick.set_fontweight("bold")
    ax.set_title(plain(title), loc="left", fontsize=10)
    return image


MOST_BARS = 40  # words of a picture; the table has all of them
_SERIES = (BLUE, ORANGE, GREEN, PINK, GREY)


def found_and_proven(
    ax: Any, entries: Sequence[tuple[str, float, float | None]], typical: float | None, title: str
) -> Any:
    """Horizontal bars from 0 to what was found, each with a line up to what is proven, if that is; the first on top."""
    shown = entries[:MOST_BARS]
    ax = ax or new_axes(7.4, 1.9 + 0.28 * len(shown))
    places = list(range(len(shown)))
    ax.barh(places, [found for _, found, _ in shown], color=BLUE, height=0.66, label="found by search")
    for k, (_, found, proven) in enumerate(shown):
        if proven is not None:
            ax.plot([found, proven], [k, k], color=ORANGE, linewidth=2.0, label="the true value lies here")
            ax.plot([proven], [k], "|", color=ORANGE, markersize=9, markeredgewidth=2.0)
        ax.annotate(f"{found:.3g}", (proven or found, k), xytext=(5, 0), textcoords="offset points", va="center",
                    fontsize=8)  # fmt: skip
    if typical is not None:
        ax.axvline(typical, color=GREY, linestyle=":", linewidth=1.2, label="typical (random) change, mean")
    ax.set_xlim(0, None)
    ax.margins(x=0.12)
    return _named(ax, [name for name, _, _ in entries], "relative change of the output", title)


def ranges(
    ax: Any,
    names: Sequence[str],
    series: Mapping[str, Sequence[tuple[float, float]]],
    marks: Sequence[float],
    label: str,
    title: str,
) -> Any:
    """Horizontal ranges, one for each name and series, with a dotted mark for each series; the first on top."""
    count = min(len(names), MOST_BARS)
    ax = ax or new_axes(7.4, 1.9 + 0.28 * count)
    for k, (name, spans) in enumerate(series.items()):
        colour, shift = _SERIES[k % len(_SERIES)], (k + 0.5) / len(series) - 0.5
        for row, (low, high) in enumerate(spans[:count]):
            ax.plot([low, high], [row + 0.7 * shift] * 2, color=colour, linewidth=2.4, label=plain(name))
        ax.axvline(marks[k], color=colour, linestyle=":", linewidth=1.2, label=plain(f"{name}, the text as it is"))
    return _named(ax, names, label, title)


def paired_bars(
    ax: Any, names: Sequence[str], series: Mapping[str, Sequence[float | None]], label: str, title: str
) -> Any:
    """Horizontal bars, one of each series for each name; the first on top."""
    count = min(len(names), MOST_BARS)
    ax = ax or new_axes(7.4, 1.9 + (0.14 + 0.16 * len(series)) * count)
    height = 0.8 / max(1, len(series))
    for k, (name, values) in enumerate(series.items()):
        places = [row + (k + 0.5 - len(series) / 2) * height for row in range(count)]
        widths = [0.0 if value is None else value for value in values[:count]]
        ax.barh(places, widths, color=_SERIES[k % len(_SERIES)], height=0.9 * height, label=plain(name))
    return _named(ax, names, label, title)


def bar_panels(
    axes: Sequence[Any] | None,
    names: Sequence[str],
    panels: Sequence[tuple[str, str, Sequence[tuple[float | None, str]]]],
    differences: Sequence[tuple[float, tuple[float, float] | None, bool | None] | None] | None,
    title: str,
) -> Any:
    """Panels side by side with the rows in one order, each with an axis of its own; one scale where there are
    differences. A panel is (title, label of its axis, a bar and what is written beside it for each row). `differences`
    get a panel too: a dot with its interval, grey where it is a tie. Returns the first axes."""
    count = min(len(names), MOST_BARS)
    wanted = len(panels) + (differences is not None)
    places = _panel_axes(wanted, count, max((len(name) for name in names[:count]), default=0), title, axes)
    colours = (BLUE, ORANGE, GREEN, PINK)
    for k, (heading, label, bars_of) in enumerate(panels):
        ax, colour = places[k], colours[k % len(colours)]
        for row, (value, written) in enumerate(bars_of[:count]):
            ax.barh(row, 0.0 if value is None else value, color=colour, height=0.66)
            ax.annotate(plain(written), (max(0.0, value or 0.0), row), xytext=(4, 0), textcoords="offset points",
                        va="center", fontsize=8)  # fmt: skip
        ax.margins(x=0.5)
        ax.set_xlabel(textwrap.fill(plain(label), _LABEL), fontsize=9)
        ax.set_title(plain(heading), loc="left", fontsize=9.5)
    if differences is not None:  # of one quantity, which one scale shows
        ends = [ax.get_xlim() for ax in places[: len(panels)]]
        for ax in places[: len(panels)]:
            ax.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
        _difference_panel(places[len(panels)], differences[:count])
    for k, ax in enumerate(places):
        _name_rows(ax, names[:count] if k == 0 else [""] * count)
        ax.spines[["top", "right"]].set_visible(False)
    if len(names) > count:
        places[0].set_ylabel(f"{count} of {len(names)} rows")
    return places[0]


def _panel_axes(wanted: int, rows: int, longest: int, title: str, axes: Sequence[Any] | None) -> list[Any]:
    """Take given axes, or make some on a figure of their own with a title."""
    if axes is not None:
        return list(axes)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.6 + 0.08 * longest + 2.7 * wanted, 1.5 + 0.3 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(plain(title), x=0.01, ha="left", fontsize=10, fontweight="bold")
    return list(figure.subplots(1, wanted, squeeze=False)[0])


def _difference_panel(
    ax: Any, differences: Sequence[tuple[float, tuple[float, float] | None, bool | None] | None]
) -> None:
    """Draw differences as dots around 0, grey where they are ties."""
    for row, each in enumerate(differences):
        if each is not None:
            value, span, tied = each
            colour = GREY if tied else "#333333"
            if span is not None:
                ax.plot(span, [row, row], color=colour, linewidth=1.4)
            ax.plot([value], [row], "o", color=colour, markersize=5, markerfacecolor="white" if tied else colour)
    ax.axvline(0.0, color=GREY, linestyle=":", linewidth=1.2)
    ax.margins(x=0.1)
    ax.locator_params(axis="x", nbins=4)
    ax.set_xlabel("second - first; hollow: a tie", fontsize=9)
    intervals = any(each is not None and each[1] is not None for each in differences)
    ax.set_title("difference" + (", 95% interval" if intervals else ""), loc="left", fontsize=9.5)


def dots(
    ax: Any,
    names: Sequence[str],
    values: Sequence[float],
    spans: Sequence[tuple[float, float] | None],
    mark: float,
    label: str,
    title: str,
) -> Any:
    """A dot for each name, with a line over its interval, if it has one; dotted: a value to compare with."""
    ax = ax or new_axes(7.4, 1.6 + 0.28 * len(names))
    for row, (value, span) in enumerate(zip(values, spans, strict=True)):
        if span is not None:
            ax.plot(span, [row, row], color=BLUE, linewidth=1.6, alpha=0.6)
        ax.plot([value], [row], "o", color=BLUE, markersize=6)
    ax.axvline(mark, color=GREY, linestyle=":", linewidth=1.2)
    if min([*values, *(span[0] for span in spans if span is not None)]) >= 0:
        ax.set_xlim(0, None)
    ax.grid(True, axis="x", color="#dddddd", linewidth=0.6)
    return _named(ax, names, label, title)


def _named(ax: Any, names: Sequence[str], label: str, title: str) -> Any:
    """Name the rows, the first on top, the axis and the picture; say so where not all names are shown."""
    count = min(len(names), MOST_BARS)
    _name_rows(ax, names[:count])
    ax.set_xlabel(label if count == len(names) else f"{label} ({count} of {len(names)} shown)")
    _finish(ax, title)
    return ax


def _name_rows(ax: Any, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), [plain(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)


def _finish(ax: Any, title: str) -> None:
    """Set the title, and a legend that names each kind of mark once, below the axes."""
    ax.set_title(plain(title), loc="left", fontsize=10, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        place = {"loc": "upper left", "bbox_to_anchor": (0.0, -60 / (ax.bbox.height or 300)), "ncols": 3}
        ax.legend(once.values(), once.keys(), frameon=False, fontsize=8.5, **place)
