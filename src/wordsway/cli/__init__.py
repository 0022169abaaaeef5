"""The command line: thin over the library. Heavy modules are imported inside the commands."""

from wordsway.cli.common import app
from wordsway.cli.curve import curve
from wordsway.cli.generalize import generalize
from wordsway.cli.measure import measure

__all__ = ["app", "curve", "generalize", "main", "measure"]


def main() -> None:
    app()
