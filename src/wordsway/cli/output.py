"""The output of commands: a result is completed, saved, drawn, made into a page, printed."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import command_line, short_name
from wordsway.cli.saving import PAGE, check_files, has_page, save_result
from wordsway.support.digits import three
from wordsway.support.errors import InputError
from wordsway.support.files import is_stdout, write_text
from wordsway.support.names import either

if TYPE_CHECKING:
    from wordsway.measures.compare_word import Substitution
    from wordsway.measures.results import Sensitivity, TokenSensitivity
    from wordsway.models.running.model import Transformer


@dataclass(frozen=True)
class ResultOutput:
    """The output that `wordsway measure` was asked for. `explained` is how many words to analyse in detail; unless
    given, some for a page and none else. `stretch` lets colours begin at the smallest value."""

    as_json: bool
    out: Sequence[Path] | None
    explained: int | None
    seed: int
    device: str
    stretch: bool = False

    def complete(self, phi: Any, X: Any, result: "Sensitivity", encoder: Any = None) -> "Sensitivity":
        """The result with what its moves do, and how it was made."""
        from wordsway.measures.explain import explain
        from wordsway.support.progress import progress_bar
        from wordsway.support.provenance import made

        count = self.explained if self.explained is not None else 10 if has_page(self.out) else 0
        if self.explained and not result.words:
            raise InputError("--explain looks into words: it needs a text, and tokens that move alone")
        if count and result.words:
            with progress_bar("word explained", "--explain 0") as update:
                result = explain(
                    phi,
                    X,
                    result,
                    count,
                    encoder=encoder,
                    seed=self.seed,
                    device=self.device,
                    progress=update,
                )
        return replace(result, made=made(command_line()))

    def compared(self, result: "Substitution") -> "Substitution":
        """Complete a substitution: add to its worst case how it was made."""
        from wordsway.support.provenance import made

        return replace(result, worst=replace(result.worst, made=made(command_line())))


def open_quietly(model: str, device: str) -> "Transformer":
    """Load a model while a line says so, as that takes some seconds."""
    from wordsway.models.loading.load import open_model
    from wordsway.support.progress import waiting

    with waiting(f"loading {short_name(model)}"):
        return open_model(model, device=device)


def ways(options: Mapping[str, bool]) -> str:
    """Write the options that are still open to a user as "a, b or c"."""
    still = [option for option, use in options.items() if use]
    return either(still) if still else ""


def said(entry: "TokenSensitivity") -> None:
    """One line on stderr for what was just measured."""
    upper = "" if entry.upper is None else f", at most {three(entry.upper)}"
    print(f"token {', '.join(map(str, entry.tokens))}: at least {three(entry.lower)}{upper}", file=sys.stderr)


def finish(
    result: Any,
    as_json: bool,
    out: Sequence[Path] | None,
    show: Callable[[Any], None],
    written: Sequence[Path] = (),
) -> None:
    """Save a result to the files that were asked for, and print it. `written` are files that were made before."""
    for file in out or ():
        save_result(result, file)
    if as_json:
        return print(json.dumps(result.to_dict(), allow_nan=False))
    if any(is_stdout(file) for file in out or ()):
        return  # it has the result, and nothing else
    show(result)
    if files := [*(out or ()), *written]:
        print("wrote " + ", ".join(str(file) for file in files))


def write_report(source: Any, out: Path, quiet: bool = False) -> None:
    """Make the page of a result or a path, and say where it is."""
    from wordsway.report.page import report_html
    from wordsway.support.memory import show_bytes
    from wordsway.support.progress import waiting

    check_files([out], (PAGE,))
    with waiting("making the report"):
        page = report_html(source)
    write_text(out, page)
    if not quiet and not is_stdout(out):
        print(f"wrote {out} ({show_bytes(len(page.encode()))})")
