"""`wordsway curve`: word sensitivity against context length."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordsway.cli import completion
from wordsway.cli.options import (
    DataEncoder,
    Debug,
    Depth,
    Engine,
    Json,
    Maps,
    Own,
    Seed,
    Workers,
    app,
    number,
    one_line_errors,
    whole_numbers,
)

if TYPE_CHECKING:
    from wordsway.studies.curve import Curve


@app.command()
def curve(
    map: Maps = "rf,raf,relu-raf",
    own: Own = None,
    n: Annotated[str, typer.Option("--n", help="Context lengths, by commas.")] = "10,20,50,100,150,200,250",
    d: Annotated[str, typer.Option("--d", help="Embedding sizes, by commas.")] = "384",
    depth: Depth = None,
    trials: Annotated[int, typer.Option(min=1, help="Texts and weights to average over.")] = 5,
    token: Annotated[
        int | None, typer.Option(min=0, help="The token that moves; unless given, the first that is not special.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Real texts: imdb, sentences, sample, a file, an aclImdb folder or a hub id. Else Gaussian.",
            autocompletion=completion.data,
        ),
    ] = None,
    encoder: DataEncoder = "minilm",
    layer: Annotated[int, typer.Option(min=0, help="With --data: the hidden state to embed with.")] = 0,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and pictures; a run that was stopped goes on from there."),
    ] = None,
    engine: Engine = "processes",
    workers: Workers = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Word sensitivity against context length, with fitted exponents and the prediction."""
    with one_line_errors(debug, out):
        from wordsway.maps.named import split_names
        from wordsway.studies.curve import CurvePlan
        from wordsway.studies.curve import curve as measure_curve
        from wordsway.support.progress import progress_bar

        lengths, sizes = whole_numbers(n, "--n"), whole_numbers(d, "--d")
        plan = CurvePlan(
            split_names(map), tuple(lengths), tuple(sizes), trials, seed, depth, token, data, encoder, layer
        )
        with progress_bar(not as_json) as update:
            result = measure_curve(plan, out, update, engine, workers)
        if out is not None:
            from wordsway.studies.figures.draw import save_figure
            from wordsway.studies.figures.pictures import plot_curve

            paths = save_figure(plot_curve(result), out, "curve")
            paths += [out / name for name in ("curve.csv", "cells.csv", "fits.json")]
        else:
            paths = []
        if as_json:
            print(json.dumps(result.to_dict(), allow_nan=False))
        else:
            _show_curve(result)
            if paths:
                print("written: " + ", ".join(str(path) for path in paths))


def _show_curve(result: "Curve") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, padding=(0, 1))
    for heading in ("map", "d", "n", "S at least", "sd", "at most", "random", "predicted"):
        name = heading == "map"  # which may have options
        table.add_column(heading, no_wrap=not name, overflow="fold", justify="left" if name else "right")
    for p in result.points:
        numbers = [number(value) for value in (p.mean, p.sd, p.upper, p.random, p.theory)]
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
