"""The help of every command: panels and groups, descriptions that can be read, one text for one option."""

import re
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from wordsway.cli.help_pages import GROUPS, PANELS, PanelCommand
from wordsway.cli.main import app

COMMANDS: dict[str, Any] = dict(get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]
SHARED = ("--json", "--quiet", "--seed", "--device", "--word", "--debug", "--engine", "--at", "--own")
EXTENDED = ("--model", "--radius", "--budget")  # measure's say one thing more


def shown(*arguments: str, columns: int = 80) -> list[str]:
    done = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": str(columns)}, terminal_width=columns)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def options_of(command: str) -> dict[str, Any]:
    return {name: each for each in COMMANDS[command].params for name in each.opts}


def test_every_command_is_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    page = "\n".join(shown())
    places = [page.index(f"\n{group}:") for group in GROUPS]
    assert places == sorted(places)
    assert all(re.search(rf"^  {name} ", page, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_options_stand_in_panels_and_say_what_they_take(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, PanelCommand)
    options: list[Any] = command.params
    for option in options:
        assert option.help and option.rich_help_panel in PANELS, option.name
        assert option.param_type_name == "argument" or option.is_flag or option.metavar, option.name
    page = shown(name)
    headings = [line[:-1] for line in page if re.fullmatch(r"[A-Z].*:", line)]
    first = [option.rich_help_panel for option in options if option.param_type_name == "argument"][:1]
    rest = [panel for panel in PANELS if panel in headings and panel not in first]
    assert headings == [*first, *rest] and "Output" in headings


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_descriptions_are_wide_at_80_columns(name: str) -> None:
    """A line of a description that goes on has at least 40 characters, or a word more would not have fit."""
    page = shown(name)
    assert max(map(len, page)) <= 80
    first = next(index for index, line in enumerate(page) if line.endswith(":"))
    for line, after in zip(page[first:], page[first + 1 :], strict=False):
        if after.startswith(" " * 10):  # a description goes on
            start = len(after) - len(after.lstrip())
            assert 80 - start >= 40, line
            if line[:start].endswith("  "):  # else a long name, alone on its line
                assert len(line[start:]) >= 40 or len(line) + len(after.split()[0]) >= 78, line


def test_measure_fits_on_75_lines() -> None:
    assert len(shown("measure")) <= 75


def test_the_budget_step_is_explained() -> None:
    assert "step: one gradient step a word" in " ".join(" ".join(shown("measure")).split())


@pytest.mark.parametrize("option", SHARED + EXTENDED)
def test_one_option_has_one_text(option: str) -> None:
    texts = {name: options_of(name)[option].help for name in COMMANDS if option in options_of(name)}
    assert len(texts) > 1
    if option == "--model":  # of commands about a prediction: only models that have one
        assert all(texts.pop(name).startswith("sentiment (bundled), or the folder") for name in ("flip", "ranges"))
    if option in EXTENDED:
        others = [text for name, text in texts.items() if name != "measure"]
        texts["measure"] = texts["measure"][: len(others[0])]
    assert len(set(texts.values())) == 1, texts


def test_results_go_out_by_one_option() -> None:
    gone = {"--output", "--html", "--plot", "--csv", "--format"}
    for name in COMMANDS:
        options = options_of(name)
        assert not gone & set(options), name
        assert ("--out" in options) == ("-o" in options), name
        if "--out" in options:
            assert options["-o"] is options["--out"] and options["-o"].metavar in ("FILE", "FOLDER", "PATH")
