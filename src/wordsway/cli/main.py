"""The command `wordsway`. Importing a command's module adds it to the application."""

# ruff: noqa: F401
from wordsway.cli import (
    app_command,
    attention_command,
    compare_command,
    curve_command,
    doctor_command,
    export_command,
    flip_command,
    generalize_command,
    layers_command,
    measure_command,
    ranges_command,
    report_command,
    reproduce_command,
    resume_command,
    run_command,
    status_command,
    studies_command,
    substitute_command,
    verify_command,
)
from wordsway.cli.command import app


def main() -> None:
    """Run the command line."""
    app()
