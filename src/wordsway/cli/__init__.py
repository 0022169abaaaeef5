"""The command line: thin over the library. Heavy modules are imported inside the commands."""

from wordsway.cli.common import app
from wordsway.cli.curve import curve
from wordsway.cli.measure import measure

__all__ = ["app", "curve", "main", "measure"]


def main() -> None:
    app()
