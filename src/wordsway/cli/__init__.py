"""The command line: thin over the library. Heavy modules are imported inside the commands."""

from wordsway.cli.app_command import page
from wordsway.cli.attention import attention
from wordsway.cli.common import app
from wordsway.cli.curve import curve
from wordsway.cli.doctor_command import doctor
from wordsway.cli.generalize import generalize
from wordsway.cli.layers import layers
from wordsway.cli.measure import measure
from wordsway.cli.report_command import report
from wordsway.cli.runs import compare, export, reproduce, resume, run, status, studies
from wordsway.cli.substitute import substitute

__all__ = [
    "app",
    "attention",
    "compare",
    "curve",
    "doctor",
    "export",
    "generalize",
    "layers",
    "main",
    "measure",
    "page",
    "report",
    "reproduce",
    "resume",
    "run",
    "status",
    "studies",
    "substitute",
]


def main() -> None:
    app()
