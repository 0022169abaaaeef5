"""The help of commands: options in panels, commands in groups, and descriptions wide enough to be read.

Typer's own help gives every option's name, type and description a column, so that of 80 characters 20 are left to read.
"""

import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

PANELS = TEXT, MODEL, WORDS, SEARCH, RUN, OUTPUT = "Text", "Model or map", "Words", "Search", "Run", "Output"
GROUPS = {
    "Try": ("measure", "flip", "substitute", "app"),
    "Inspect": ("layers", "attention", "ranges", "report", "compare"),
    "Reproduce": ("reproduce", "curve", "generalize", "run", "studies"),
    "Manage": ("resume", "status", "verify", "export", "doctor"),
}
_UsageError: Any = typer.BadParameter.__mro__[1]  # has no public name in every version
_CallError: Any = _UsageError.__mro__[1]
_NAMES = 20  # characters for names; a longer one has a line of its own. At 80 columns this leaves 54 for descriptions


class PanelCommand(TyperCommand):
    """A command that shows its options in panels. An option that takes one value and is given twice is an error: one of
    the two would be dropped."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        try:
            return super().make_context(info_name, args, parent=parent, **extra)
        except _UsageError as error:
            error.command = info_name
            raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
            for parameter in order:
                single = parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag)
                if single and order.count(parameter) > 1:
                    raise _UsageError(
                        f"{parameter.opts[0]} takes one value here; it was given {order.count(parameter)} times"
                    )
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        parameters = self.get_params(ctx)
        arguments = [_name(parameter) for parameter in parameters if parameter.param_type_name == "argument"]
        formatter.write_usage(ctx.command_path, " ".join([*arguments, "[OPTIONS]"]))
        self.format_help_text(ctx, formatter)
        for panel, rows in _panels(parameters):
            _write(formatter, panel, rows)


@dataclass(frozen=True)
class Asked:
    """The options of a command that runs: values by their names in Python, and those that were `given`, with what a
    user calls them."""

    values: dict[str, Any]
    given: dict[str, str]


class TextCommand(PanelCommand):
    """A command whose argument is a text: one without quotes comes as several arguments. While it runs, `asked` has its
    options, and which of them were given."""

    asked: ClassVar[ContextVar[Any]] = ContextVar("asked")

    def invoke(self, ctx: Any) -> Any:
        given = {name for name in ctx.params if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"}
        options = {parameter.name: parameter.opts[0] for parameter in self.params}
        token = self.asked.set(Asked(dict(ctx.params), {name: options[name] for name in ctx.params if name in given}))
        try:
            return super().invoke(ctx)
        finally:
            self.asked.reset(token)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            if "unexpected extra argument" in str(error):
                error.message += f'. Put the text in quotes: wordsway {ctx.info_name} "I love her smile"'
            raise


class CommandGroups(TyperGroup):
    """All commands, shown in groups. A call that cannot be read is one line on stderr and exit code 2, as every other
    error that a user can mend."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            print(ctx.get_help(), file=sys.stderr)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except _CallError as error:
            print(f"wordsway: {_one_line(error)}", file=sys.stderr)
            sys.exit(error.exit_code)
        except typer.Abort:
            print("wordsway: stopped", file=sys.stderr)
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        for group, names in GROUPS.items():
            _write(formatter, group, [(name, _first_sentence(self.commands[name].help)) for name in names])
        _write(formatter, "Options", [_row(parameter) for parameter in self.get_params(ctx)])


def _one_line(error: Any) -> str:
    """Say what is wrong with a call, the closest option where one is unknown, and where all are listed."""
    near = getattr(error, "possibilities", None)
    said = f"{error.message}; did you mean {near[0]}?" if near else error.format_message().rstrip(".")
    command = getattr(error, "command", None)
    help_page = f"wordsway {'' if command is None else command + ' '}--help"
    return f"{said}{' See' if said.endswith('?') else '; see'} {help_page}".replace("\n", " ")


def _panels(parameters: Sequence[Any]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Sort parameters into panels, with that of the arguments first; those without a panel, such as --help, belong to
    the last."""
    sorted_rows: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
    for parameter in parameters:
        sorted_rows[getattr(parameter, "rich_help_panel", None) or OUTPUT].append(_row(parameter))
    arguments = {getattr(each, "rich_help_panel", None) for each in parameters if each.param_type_name == "argument"}
    order = sorted(sorted_rows, key=lambda panel: panel not in arguments)
    return ((panel, sorted_rows[panel]) for panel in order if sorted_rows[panel])


def _row(parameter: Any) -> tuple[str, str]:
    """Describe a parameter: its names with what it takes, its help with its default."""
    default = _default(parameter)
    return _name(parameter), (parameter.help or "") + ("" if default is None else f" [{default}]")


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"{parameter.metavar}..." if parameter.nargs != 1 else str(parameter.metavar)
        return name if parameter.required else f"[{name}]"
    names = ", ".join(sorted(parameter.opts, key=len))
    both = "/".join([names, *parameter.secondary_opts])
    return both if parameter.is_flag else f"{both} {parameter.metavar}"


def _default(parameter: Any) -> str | None:
    """The default as it is shown: in the words of the option, or its value."""
    shown, value = parameter.show_default, parameter.default
    if isinstance(shown, str):
        return shown
    if not shown or value is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(getattr(value, "value", value))


def _first_sentence(text: str | None) -> str:
    return (text or "").split("\n\n")[0].replace("\n", " ").strip()


def _write(formatter: Any, heading: str, rows: Sequence[tuple[str, str]]) -> None:
    with formatter.section(heading):
        formatter.write_dl([(name.ljust(_NAMES), text) for name, text in rows], col_max=_NAMES)
