"""The command line: thin over the library. Heavy modules are imported inside the commands."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsway import __version__
from wordsway.errors import InputError

if TYPE_CHECKING:
    from wordsway.curve import Curve
    from wordsway.result import Sensitivity

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How far can one word move a model? Bounds from below (search) and from above (certificates).",
)


class MapName(StrEnum):
    rf = "rf"
    drf = "drf"
    raf = "raf"
    relu_raf = "relu-raf"


Seed = Annotated[int, typer.Option(min=0, help="Root of all randomness.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Depth = Annotated[int | None, typer.Option(min=1, help="Layers of drf (2 unless given).")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@contextmanager
def _errors(debug: bool) -> Iterator[None]:
    """One clear line and exit code 2 for what a user can mend."""
    try:
        yield
    except (InputError, OSError) as error:
        if debug:
            raise
        print(f"wordsway: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def _version(value: bool) -> bool:
    if value:
        print(f"wordsway {__version__}")
        raise typer.Exit
    return value


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """How far can one word move a model? Bounds from below (search) and from above (certificates)."""


@app.command()
def measure(
    map: Annotated[MapName, typer.Option("--map", help="Feature map.")] = MapName.raf,
    n: Annotated[int, typer.Option("--n", help="Tokens of the synthetic text.")] = 100,
    d: Annotated[int, typer.Option("--d", help="Coordinates of a token.")] = 768,
    depth: Depth = None,
    activation: Annotated[str, typer.Option(help="relu, tanh, gelu or identity, for rf and drf.")] = "relu",
    temperature: Annotated[float, typer.Option(help="Of the softmax, for raf.")] = 1.0,
    token: Annotated[str, typer.Option(help="An index, several (0,3,5), or all.")] = "0",
    radius: Annotated[float | None, typer.Option(help="Largest norm of the move, in units of sqrt(d).")] = None,
    budget: Annotated[int | None, typer.Option(help="Evaluations for the search of a token.")] = None,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or mps.")] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Also save the result to this JSON file.")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure one map at a synthetic text of N tokens: how far can one token move the features?"""
    with _errors(debug):
        import math

        from wordsway.maps.named import named_map
        from wordsway.sensitivity import word_sensitivity
        from wordsway.tokens import synthetic_tokens

        X = synthetic_tokens(n, d, seed)
        options: dict[str, Any] = {"activation": activation, "temperature": temperature, "device": device}
        phi = named_map(map.value, n, d, seed, depth=depth, **options)
        chosen: Any = token if token == "all" else _whole_numbers(token, "--token")
        with _progress(not as_json) as update:
            result = word_sensitivity(
                phi,
                X,
                chosen,
                seed=seed,
                radius=None if radius is None else radius * math.sqrt(d),
                budget=budget,
                device=device,
                progress=lambda done, total: update(done, total, "token"),
            )
        if out is not None:
            result.save(out)
        print(json.dumps(result.to_dict(), allow_nan=False)) if as_json else _show(result)


@app.command()
def curve(
    map: Annotated[str, typer.Option("--map", help="Maps, by commas.")] = "rf,raf,relu-raf",
    n: Annotated[str, typer.Option("--n", help="Context lengths, by commas.")] = "10,20,50,100,150,200,250",
    d: Annotated[str, typer.Option("--d", help="Embedding sizes, by commas.")] = "384",
    depth: Depth = None,
    trials: Annotated[int, typer.Option(min=1, help="Texts and weights to average over.")] = 5,
    token: Annotated[int, typer.Option(min=0, help="The token that moves.")] = 0,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for CSV, PNG and PDF; a run that was stopped goes on from there."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Word sensitivity against context length, with fitted exponents and the prediction."""
    with _errors(debug):
        from wordsway.curve import CurvePlan
        from wordsway.curve import curve as measure_curve

        names = tuple(name.strip() for name in map.split(",") if name.strip())
        lengths, sizes = _whole_numbers(n, "--n"), _whole_numbers(d, "--d")
        plan = CurvePlan(names, tuple(lengths), tuple(sizes), trials, seed, depth, token)
        with _progress(not as_json) as update:
            result = measure_curve(plan, out, update)
        if out is not None:
            from wordsway.plots import plot_curve, save_figure

            paths = [*save_figure(plot_curve(result), out, "curve"), out / "curve.csv", out / "cells.csv"]
        else:
            paths = []
        if as_json:
            print(json.dumps(result.to_dict(), allow_nan=False))
        else:
            _show_curve(result)
            if paths:
                print("written: " + ", ".join(str(path) for path in paths))


def _whole_numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"{option} takes whole numbers, by commas, got {text!r}") from None


@contextmanager
def _progress(shown: bool) -> Iterator[Any]:
    """A progress bar on stderr, where that is a terminal: update(done, total, what)."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total, what: progress.update(task, completed=done, total=total, description=what)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _show(result: "Sensitivity") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    settings = ", ".join(f"{key}={value}" for key, value in result.map.items() if key != "map")
    console.print(f"[bold]{result.map['map']}[/] ({settings}), n={result.n}, d={result.d}, radius={result.radius:.3f}")
    table = Table(box=None, padding=(0, 2), show_header=False)
    table.add_row(
        "word sensitivity, at least",
        f"[bold]{_number(result.lower)}[/]",
        f"token {result.token}, found by search",
    )
    if result.upper is None:
        table.add_row("at most", "-", result.upper_reason or "")
    else:
        surety = (
            "certain" if result.upper_failure == 0 else f"fails with probability {result.upper_failure:.0e} at most"
        )
        table.add_row("at most", _number(result.upper), f"{result.upper / result.lower:.2f} x the search; {surety}")
    if result.random is not None:
        spread = f"sd {_number(result.random.sd)}, 5-95% {_number(result.random.quantiles['0.05'])} to " + _number(
            result.random.quantiles["0.95"]
        )
        table.add_row("a random move", _number(result.random.mean), spread)
    table.add_row("evaluations", str(result.evaluations), f"{result.seconds:.2f} s; checked: {result.checked}")
    console.print(table)
    if len(result.per_token) > 1:
        ranking = Table("rank", "token", "at least", "at most", box=None, padding=(0, 2))
        ordered = sorted(result.per_token, key=lambda entry: -entry.lower)
        for rank, entry in enumerate(ordered[:10], start=1):
            ranking.add_row(str(rank), str(entry.token), _number(entry.lower), _number(entry.upper))
        console.print(ranking)
        if len(ordered) > 10:
            console.print(f"... and {len(ordered) - 10} more tokens (all of them with --json or --out)")


def _show_curve(result: "Curve") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, padding=(0, 1))
    for heading in ("map", "d", "n", "S at least", "sd", "at most", "random", "predicted"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "map" else "right")
    for p in result.points:
        numbers = [_number(value) for value in (p.mean, p.sd, p.upper, p.random, p.theory)]
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


def main() -> None:
    app()
