"""The command line: thin over the library. Heavy modules are imported inside the commands."""

from wordsway.cli.app_command import page
from wordsway.cli.attention_command import attention
from wordsway.cli.curve_command import curve
from wordsway.cli.doctor_command import doctor
from wordsway.cli.generalize_command import generalize
from wordsway.cli.layers_command import layers
from wordsway.cli.measure_command import measure
from wordsway.cli.options import app
from wordsway.cli.report_command import report
from wordsway.cli.run_commands import compare, export, reproduce, resume, run, status, studies
from wordsway.cli.substitute_command import substitute

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
