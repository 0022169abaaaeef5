"""The common way of commands that measure maps on a grid of lengths: `curve` and `generalize`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import one_line_errors
from wordsway.cli.options import GridOptions
from wordsway.cli.output import finish
from wordsway.cli.run_studies import expected_seconds
from wordsway.cli.saving import split_out

if TYPE_CHECKING:
    from wordsway.studies.study import Study


def run_grid(
    common: GridOptions,
    make_plan: Callable[[], Any],
    study_of: Callable[[Any], "Study"],
    measure: Callable[..., Any],
    draw: Callable[[Any, Path], list[Path]],
    show: Callable[[Any], None],
) -> None:
    """Check the options, say how long it takes, measure, save and show. `make_plan` checks the grid, `measure` takes
    the plan and the options of a run, `draw` adds pictures to the folder and returns all files that it then has."""
    with one_line_errors(common.debug):
        folder, files = split_out(common.out)
    with one_line_errors(common.debug, common.quiet, folder):
        from wordsway.support.progress import progress_bar

        plan = make_plan()
        expected = expected_seconds(study_of(plan), folder, common.engine, common.workers)
        with progress_bar("cell", "fewer --trials, --n or --map", expected) as update:
            result = measure(plan, folder, update, engine=common.engine, workers=common.workers)
        written = [] if folder is None else draw(result, folder)
        finish(result, common.as_json, files, show, written)
