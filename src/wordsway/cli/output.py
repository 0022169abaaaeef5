"""What `wordsway measure` does with a result: look into its words, save it, make a page of it, print it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.cli.options import command_line
from wordsway.support.errors import InputError

if TYPE_CHECKING:
    from wordsway.measures.compare_word import Substitution
    from wordsway.measures.results import Sensitivity


@dataclass(frozen=True)
class Ending:
    """What was asked for. `explained` is how many words to look into; unless given, some for a page and none else."""

    as_json: bool
    out: Path | None
    html: Path | None
    explained: int | None
    seed: int
    device: str

    def complete(self, phi: Any, X: Any, result: "Sensitivity", encoder: Any = None) -> "Sensitivity":
        """The result with what its moves do, and how it was made."""
        from wordsway.measures.explain import explain
        from wordsway.support.progress import progress_bar
        from wordsway.support.provenance import made

        count = self.explained if self.explained is not None else 10 if self.html is not None else 0
        if self.explained and not result.words:
            raise InputError("--explain looks into words: it needs a text, and tokens that move alone")
        if count and result.words:
            with progress_bar(not self.as_json) as update:
                result = explain(
                    phi,
                    X,
                    result,
                    count,
                    encoder=encoder,
                    seed=self.seed,
                    device=self.device,
                    progress=lambda done, total: update(done, total, "word explained"),
                )
        return replace(result, made=made(command_line()))

    def compared(self, result: "Substitution") -> "Substitution":
        """The same for a substitution, whose worst case says how it was made."""
        from wordsway.support.provenance import made

        return replace(result, worst=replace(result.worst, made=made(command_line())))

    def write(self, result: Any, show: Callable[[Any], None]) -> None:
        from wordsway.cli.report_command import write_report

        if self.out is not None:
            result.save(self.out)
        if self.as_json:
            print(json.dumps(result.to_dict(), allow_nan=False))
        else:
            show(result)
        if self.html is not None:
            write_report(result, self.html, quiet=self.as_json)
