"""`wordsway compare`: two results or two runs side by side."""

from pathlib import Path
from typing import Annotated

from wordsway.cli.command import app, one_line_errors
from wordsway.cli.help_pages import OUTPUT, RUN, PanelCommand
from wordsway.cli.options import Debug, Json, Out, Own, argument, option
from wordsway.cli.output import finish
from wordsway.cli.saving import check_files
from wordsway.support.errors import InputError


@app.command(cls=PanelCommand)
def compare(
    first: Annotated[Path, argument(RUN, "FIRST", "A result (.json), or the folder of a run.")],
    second: Annotated[Path, argument(RUN, "SECOND", "Another of the same kind.")],
    of: Annotated[
        str | None, option(OUTPUT, "COLUMN", "The column that is compared.", "--of", show_default="lower, err, ...")
    ] = None,
    own: Own = None,
    out: Out = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two results word by word, or the cells that two runs share: what differs beyond the noise, with 95%
    intervals over draws and trials."""
    with one_line_errors(debug):
        for path in (first, second):
            if not path.exists():
                raise InputError(
                    f"there is no file or folder {str(path)!r}; give two results (.json) or the folders of two runs"
                )
        check_files(out)
        if first.is_file() and second.is_file():
            return _compare_files(first, second, of, out, as_json)
        if first.is_file() or second.is_file():
            raise InputError("compare takes two results (.json) or the folders of two runs, not one of each")
        from wordsway.cli.show_runs import show_differences
        from wordsway.studies.compare_runs import compare_tables
        from wordsway.studies.run.store import Store
        from wordsway.studies.run.tables import read_table

        tables = []
        for folder in (first, second):
            with Store.read(folder) as store:
                tables.append(read_table(store))
        finish(compare_tables(tables[0], tables[1], of), as_json, out, show_differences)


def _compare_files(first: Path, second: Path, of: str | None, out: list[Path] | None, as_json: bool) -> None:
    """Compare two results that were saved."""
    from wordsway.cli.show_comparison import show_comparison
    from wordsway.measures.compare_results import compare_results

    if first.resolve() == second.resolve():
        raise InputError(f"both are the same file, {str(first)!r}: name two results")
    finish(compare_results(first, second, column=of), as_json, out, show_comparison)
