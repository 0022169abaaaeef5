"""`wordsway curve`: word sensitivity against context length."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wordsway.cli.command import app
from wordsway.cli.grids import run_grid
from wordsway.cli.help_pages import SEARCH, TEXT, PanelCommand
from wordsway.cli.option_values import whole_numbers
from wordsway.cli.options import GridOptions, data_option, option, with_options
from wordsway.support.digits import three

if TYPE_CHECKING:
    from wordsway.studies.curve import Curve, CurvePlan


@app.command(cls=PanelCommand)
@with_options(GridOptions, "own")
def curve(
    common: GridOptions,
    n: Annotated[str, option(TEXT, "NUMBERS", "Context lengths, by commas.", "--n")] = "10,20,50,100,150,200,250",
    d: Annotated[str, option(TEXT, "NUMBERS", "Embedding sizes, by commas.", "--d")] = "384",
    trials: Annotated[int, option(SEARCH, "N", "Texts and weights to average over.", min=1)] = 5,
    data: Annotated[str | None, data_option("none: Gaussian texts")] = None,
) -> None:
    """Measure word sensitivity against context length, with fitted exponents and the prediction."""

    def plan() -> "CurvePlan":
        from wordsway.maps.map_names import split_names
        from wordsway.studies.curve import CurvePlan

        lengths, sizes = whole_numbers(n, "--n"), whole_numbers(d, "--d")
        grid = split_names(common.map), tuple(lengths), tuple(sizes), trials, common.seed, common.depth
        return CurvePlan(*grid, common.token, data, common.encoder, common.layer)

    def measure(*arguments: Any, **options: Any) -> "Curve":
        from wordsway.studies.curve import curve as measure_curve

        return measure_curve(*arguments, **options)

    run_grid(common, plan, lambda made: made.study(), measure, _draw, _show_curve)


def _draw(result: "Curve", folder: Path) -> list[Path]:
    """Draw the curve, and list the files of the folder."""
    from wordsway.studies.figures.draw import save_figure

    paths = save_figure(result.plot().figure, folder, "curve")
    return paths + [folder / name for name in ("curve.csv", "cells.csv", "fits.json")]


def _show_curve(result: "Curve") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, padding=(0, 1))
    for heading in ("map", "d", "n", "S at least", "sd", "at most", "random", "predicted"):
        name = heading == "map"  # which may have options
        table.add_column(heading, no_wrap=not name, overflow="fold", justify="left" if name else "right")
    for p in result.points:
        numbers = [three(value) for value in (p.mean, p.sd, p.upper, p.random, p.theory)]
        table.add_row(p.map, str(p.d), str(p.n), *numbers)
    console.print(table)
    for fit in result.fits:
        if fit.exponent is None:
            continue
        interval = "" if fit.low is None else f"  95% interval [{fit.low:.3f}, {fit.high:.3f}]"
        beside = "" if fit.against_theory is None else f"  (S / predicted ~ n^{fit.against_theory:.3f})"
        console.print(
            f"{fit.map}, d={fit.d}: S ~ n^{fit.exponent:.3f}{interval}{beside}", soft_wrap=True, highlight=False
        )
