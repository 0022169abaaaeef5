"""`wordsway generalize`: can a model learn that one word flipped the meaning?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wordsway.cli import completion
from wordsway.cli.command import app, printable
from wordsway.cli.grids import run_grid
from wordsway.cli.help_pages import MODEL, SEARCH, TEXT, PanelCommand
from wordsway.cli.option_values import names_of, numbers_of
from wordsway.cli.option_values import whole_numbers as whole
from wordsway.cli.options import Device, GridOptions, data_option, option, with_options
from wordsway.support import names
from wordsway.support.digits import ROUNDING, three
from wordsway.support.errors import InputError
from wordsway.support.names import either

if TYPE_CHECKING:
    from wordsway.studies.generalize import FlipPlan, Flips


@app.command(cls=PanelCommand)
@with_options(GridOptions, "own")
def generalize(
    common: GridOptions,
    n: Annotated[str, option(TEXT, "NUMBERS", "Context lengths, by commas.", "--n")] = "40",
    d: Annotated[
        str | None,
        option(TEXT, "NUMBERS", "Embedding sizes, by commas.", "--d", show_default="the encoder's; of Gaussian: 384"),
    ] = None,
    train_size: Annotated[str, option(TEXT, "NUMBERS", "Numbers of training texts, by commas.")] = "100,400",
    data: Annotated[str | None, data_option("none: Gaussian texts, labelled by a linear rule")] = None,
    shorter_than: Annotated[
        int | None, option(TEXT, "N", "With --data: only texts of fewer tokens (the paper: 240).", min=2)
    ] = None,
    training: Annotated[
        str,
        option(
            MODEL,
            "HOW",
            f"{either((*names.TRAININGS, 'both'))}.",
            autocompletion=completion.one_of(*names.TRAININGS, "both"),
        ),
    ] = "both",
    objective: Annotated[
        str,
        option(
            SEARCH,
            "NAMES",
            f"What the change minimises, by commas: {', '.join(names.OBJECTIVES)}.",
            autocompletion=completion.list_of(*names.OBJECTIVES),
        ),
    ] = "align,error",
    penalty: Annotated[
        str | None, option(SEARCH, "NUMBERS", "Of the objective penalized, by commas.", show_default="0.1")
    ] = None,
    trials: Annotated[int, option(SEARCH, "N", "Texts and weights to draw; each is a point.", min=1)] = 10,
    device: Device = "cpu",
) -> None:
    """Test whether a model can learn that one word flipped the meaning.

    Trains on labelled texts, shows the model one more, then asks for its error on that text with one word moved and the
    label flipped. Random features stay near (2 - gamma)^2, where gamma is how differently the model scored the
    two texts before training on the new one; attention gets far below.
    """

    def plan() -> "FlipPlan":
        if data is None and (common.encoder != "minilm" or common.layer or shorter_than is not None):
            raise InputError("--encoder, --layer and --shorter-than are about real texts; name some with --data")
        if penalty is not None and "penalized" not in objective:
            raise InputError("--penalty is for --objective penalized")
        if shorter_than is not None and shorter_than <= max(whole(n, "--n"), default=0):
            raise InputError(f"--shorter-than {shorter_than} leaves no texts of n={max(whole(n, '--n'))} tokens")
        if training != "both" and "both" in training:
            raise InputError("--training both is alone; else finetune, retrain or finetune,retrain")
        from wordsway.maps.map_names import split_names
        from wordsway.studies.generalize import FlipPlan

        return FlipPlan(
            maps=split_names(common.map),
            n=tuple(whole(n, "--n")),
            train_sizes=tuple(whole(train_size, "--train-size")),
            trainings=names.TRAININGS if training == "both" else names_of(training),
            objectives=names_of(objective),
            penalties=(0.1,) if penalty is None else tuple(numbers_of(penalty, "--penalty")),
            trials=trials,
            d=(None,) if d is None else tuple(whole(d, "--d")),
            seed=common.seed,
            depth=common.depth,
            token=common.token,
            data=data,
            encoder=common.encoder,
            layer=common.layer,
            shorter_than=shorter_than,
        )

    def measure(*arguments: Any, **options: Any) -> "Flips":
        from wordsway.studies.generalize import generalize as run

        return run(*arguments, **options, device=device)

    run_grid(common, plan, lambda made: made.study(device), measure, _draw, _show)


def _draw(result: "Flips", folder: Path) -> list[Path]:
    """Draw a picture for each map, and list the files of the folder."""
    from wordsway.studies.figures.draw import save_figure
    from wordsway.studies.figures.grid_figures import plot_flips

    paths: list[Path] = []
    for name in result.plan.maps:
        plain = "".join(c if c.isalnum() or c in "-_=." else "-" for c in name)
        paths += save_figure(plot_flips(result, name), folder, f"flips-{plain}")
    return [*paths, folder / "summary.csv", folder / "points.csv"]


def _show(result: "Flips") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(printable(_heading(result.plan, result.points[0].d)), soft_wrap=True, highlight=False, markup=False)
    table = Table(box=None, padding=(0, 1))
    several = len(result.plan.d) > 1
    headings = (
        "map",
        *(("d",) if several else ()),
        "n",
        "N",
        "training",
        "objective",
        "gamma",
        "Err",
        "F",
        "below half",
    )
    for heading in headings:
        left = heading in ("map", "training", "objective")
        table.add_column(heading, no_wrap=heading != "map", overflow="fold", justify="left" if left else "right")
    for g in result.groups:
        objective = g.objective if g.penalty is None else f"{g.objective} {g.penalty:g}"
        width = (str(g.d),) if several else ()
        row = (*width, str(g.n), str(g.train_size), g.training, objective)
        share = f"{g.below} of {g.close}" if g.close else "-"
        table.add_row(g.map, *row, *(three(value, ROUNDING) for value in (g.gamma, g.err, g.alignment)), share)
    console.print(table)
    console.print(
        "gamma, Err, F: medians over trials. below half: of the points with gamma < 0.5, those with Err under half of "
        "(2 - gamma)^2.",
        highlight=False,
    )
    if result.note:
        console.print(f"note: {result.note}", soft_wrap=True, highlight=False)
    short = [p for p in result.points if p.rank < p.train_size]
    if short:
        worst = max(short, key=lambda p: p.residual)
        console.print(
            f"note: {len(short)} of {len(result.points)} points are from training features that depend on each other "
            f"(rank {worst.rank} of {worst.train_size}; labels missed by up to {worst.residual:.2g})",
            soft_wrap=True,
            highlight=False,
        )


def _heading(plan: "FlipPlan", d: int) -> str:
    source = "Gaussian texts" if plan.data is None else f"{plan.data}, encoder {plan.encoder} layer {plan.layer}"
    first = 0 if plan.data is None else "first that is not special"
    token = first if plan.token is None else plan.token
    width = "" if len(plan.d) > 1 else f", d={d}"
    trials = f"{plan.trials} trial" + ("s" if plan.trials > 1 else "")
    return f"{source}{width}, token: {token}, {trials}, seed={plan.seed}"
