"""Options that commands share. One that occurs in several commands has one meaning and one help text.

`ModelOptions` are those of every command about a model and a text, `GridOptions` those of every command that measures a
grid of maps; `with_options` gives them to a command.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from wordsway.cli import completion
from wordsway.cli.command import one_line_errors
from wordsway.cli.help_pages import MODEL, OUTPUT, RUN, SEARCH, TEXT, WORDS
from wordsway.cli.option_values import the_text
from wordsway.cli.saving import FORMATS, check_files
from wordsway.support import names
from wordsway.support.names import Budget, either
from wordsway.support.public_gate import LARGEST


class At(StrEnum):
    embeddings = "embeddings"
    word_embeddings = "word-embeddings"


def _allow(modules: list[str] | None) -> list[str] | None:
    """Allow modules of one's own: they are code, which only the command line may ask for."""
    if modules:
        from wordsway.support.own_code import allow_maps

        with one_line_errors(debug=False):
            allow_maps(*modules)
    return modules


def option(panel: str, takes: str | None, help: str, *decls: str, **more: Any) -> Any:
    """Describe an option: its panel in the help, what it takes (None for a flag), and its help."""
    return typer.Option(*decls, metavar=takes, help=help, rich_help_panel=panel, **more)


def argument(panel: str, takes: str, help: str, **more: Any) -> Any:
    """Describe an argument, in the way of `option`."""
    return typer.Argument(metavar=takes, help=help, rich_help_panel=panel, show_default=False, **more)


RADIUS = "Size of the change, relative to the word's own embedding."
BUDGET = f"Search effort: {either(names.BUDGETS)}."
_BUDGETS = completion.one_of(*names.BUDGETS)


def word_option(unless_given: str) -> Any:
    """Describe --word, with what happens without it."""
    return option(WORDS, "WORD", "The word: itself, or its number, as #3.", show_default=unless_given)


def of_option(unless_given: str) -> Any:
    """Describe --of, the output of a model that is measured."""
    help = f"Measured of the model: {either(names.OUTPUTS)}."
    offered = completion.one_of(*names.SIMPLE_OUTPUTS)
    return option(MODEL, "OUTPUT", help, "--of", show_default=unless_given, autocompletion=offered)


def model_option(unless_given: str | bool = True, *names: str, more: str = "") -> Any:
    """Describe --model, with what happens without it; `more` is added to its help."""
    help = "sentiment or minilm (bundled), mpnet, a folder, .gguf file or hub id; reinit:NAME has random weights."
    return option(MODEL, "NAME", help + more, *names, autocompletion=completion.models, show_default=unless_given)


def predictor_option(kinds: str) -> Any:
    """Describe --model of a command about a prediction; `kinds` are the models that it takes beside the bundled one."""
    return option(MODEL, "NAME", f"sentiment (bundled), or {kinds}.", autocompletion=completion.predictors)


def seed_option(unless_given: str | bool = True) -> Any:
    """Describe --seed, with what happens without it."""
    return option(SEARCH, "N", "Root of all randomness.", min=0, max=LARGEST, show_default=unless_given)


def folder_option(unless_given: str) -> Any:
    """Describe --out of a command that makes a run."""
    help = "Folder of the run (no file): tables, pictures, report. One that was stopped goes on from there."
    return option(OUTPUT, "FOLDER", help, "--out", "-o", show_default=unless_given)


def data_option(unless_given: str | bool) -> Any:
    """Describe --data, with what happens without it."""
    help = f"Labelled texts: {', '.join(names.DATA)}, a file, an aclImdb folder or a hub id."
    return option(TEXT, "NAME", help, autocompletion=completion.data, show_default=unless_given)


# Text
TextArgument = Annotated[str | None, argument(TEXT, "TEXT", "The text; - reads stdin. Put -- before a leading dash.")]
TextFile = Annotated[Path | None, option(TEXT, "FILE", "Read the text from this file (UTF-8).", "--file")]
MaxTokens = Annotated[int | None, option(TEXT, "N", "Crop a text that is longer than this.")]
Data = Annotated[str | None, data_option("the study's")]
DataEncoder = Annotated[
    str, option(TEXT, "NAME", "With --data: minilm, a hub id or a folder.", autocompletion=completion.models)
]
DataLayer = Annotated[int, option(TEXT, "K", "With --data: the hidden state to embed with.", min=0)]

# Model or map
Model = Annotated[str, model_option()]
AtOption = Annotated[
    At | None,
    option(
        MODEL,
        "PLACE",
        "Where a word is changed: embeddings, or the earlier word-embeddings.",
        show_default="embeddings",
    ),
]
Maps = Annotated[
    str, option(MODEL, "NAMES", "Maps, by commas.", "--map", autocompletion=completion.list_of(*names.MAPS))
]
Depth = Annotated[int | None, option(MODEL, "N", "Layers of drf.", min=1, show_default="2")]
Own = Annotated[
    list[str] | None,
    option(MODEL, "MODULE", "Allow code of yours, named as MODULE:FUNCTION.", "--own", callback=_allow),
]

# Words
Token = Annotated[
    int | None, option(WORDS, "INDEX", "The token that moves.", min=0, show_default="the first that is not special")
]

# Search
Radius = Annotated[float, option(SEARCH, "R", RADIUS)]
BudgetOption = Annotated[Budget, option(SEARCH, "EFFORT", BUDGET, autocompletion=_BUDGETS)]
Seed = Annotated[int, seed_option()]
RunSeed = Annotated[int | None, seed_option("the study's")]
Device = Annotated[
    str, option(SEARCH, "NAME", f"{either(names.DEVICES)}.", autocompletion=completion.one_of(*names.DEVICES))
]
Trials = Annotated[int | None, option(SEARCH, "N", "Texts and weights to average over.", min=1)]
Scale = Annotated[
    str,
    option(
        SEARCH,
        "NAME",
        "smoke (seconds), laptop (minutes) or paper (the published grid).",
        autocompletion=completion.one_of(*names.SCALES),
    ),
]

# Run
Engine = Annotated[
    str,
    option(
        RUN,
        "NAME",
        "inline, processes (one a core) or dask.",
        autocompletion=completion.one_of(*names.ENGINES),
    ),
]
Workers = Annotated[int | None, option(RUN, "N", "Processes, or Dask workers of this machine.", min=1)]
Scheduler = Annotated[str | None, option(RUN, "ADDRESS", "With --engine dask: a scheduler that runs, tcp://HOST:PORT.")]

# Output
Out = Annotated[
    list[Path] | None,
    option(OUTPUT, "FILE", f"Save, by suffix: {either(FORMATS)}. Repeatable.", "--out", "-o"),
]
GridOut = Annotated[
    list[Path] | None,
    option(
        OUTPUT,
        "PATH",
        f"Save, by suffix: {either(FORMATS)}; or a folder of a run, which keeps every cell and goes on if it was "
        "stopped. Repeatable.",
        "--out",
        "-o",
    ),
]
Json = Annotated[bool, option(OUTPUT, None, "Print JSON instead of a table.", "--json")]
Quiet = Annotated[bool, option(OUTPUT, None, "Show no progress and no estimates.", "--quiet")]
Debug = Annotated[bool, option(OUTPUT, None, "Show the traceback of an error.", "--debug")]
RunArgument = Annotated[Path, argument(RUN, "FOLDER", "The folder of a run.")]
SkipDamaged = Annotated[bool, option(RUN, None, "Leave out damaged rows of a run.", "--skip-damaged")]


@dataclass(frozen=True)
class ModelOptions:
    """Options of a command about a model and a text."""

    text: TextArgument = None
    file: TextFile = None
    model: Model = "minilm"
    budget: BudgetOption = Budget.default
    max_tokens: MaxTokens = None
    seed: Seed = 0
    device: Device = "cpu"
    out: Out = None
    as_json: Json = False
    quiet: Quiet = False
    debug: Debug = False

    def checked_text(self) -> str:
        """Read the text, and check that results can be written."""
        given = the_text(self.text, self.file)
        check_files(self.out)
        return given


@dataclass(frozen=True)
class GridOptions:
    """Options of a command that measures maps on a grid of lengths."""

    map: Maps = "rf,raf,relu-raf"
    own: Own = None
    depth: Depth = None
    token: Token = None
    encoder: DataEncoder = "minilm"
    layer: DataLayer = 0
    seed: Seed = 0
    out: GridOut = None
    engine: Engine = "processes"
    workers: Workers = None
    as_json: Json = False
    quiet: Quiet = False
    debug: Debug = False


@dataclass(frozen=True)
class StudyOptions:
    """Options of a command that runs studies, each into a folder."""

    data: Data = None
    trials: Trials = None
    seed: RunSeed = None
    engine: Engine = "processes"
    workers: Workers = None
    scheduler: Scheduler = None
    as_json: Json = False
    quiet: Quiet = False
    debug: Debug = False

    @property
    def way(self) -> dict[str, Any]:
        """The options that `run_and_show` takes."""
        names = ("engine", "workers", "scheduler", "as_json", "quiet")
        return {name: getattr(self, name) for name in names}


def with_options(shared: type[Any], first: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a dataclass. It takes them as its first argument, and its own ones after that.

    In the command's help, its own options stand behind the shared one that is named `first`, before the others.
    """
    hints = get_type_hints(shared, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    common = [inspect.Parameter(f.name, kind, default=f.default, annotation=hints[f.name]) for f in fields(shared)]
    place = [parameter.name for parameter in common].index(first) + 1

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [p.replace(kind=kind) for p in list(inspect.signature(command).parameters.values())[1:]]
        parameters = [*common[:place], *own, *common[place:]]

        def run(**values: Any) -> None:
            taken = {parameter.name: values.pop(parameter.name) for parameter in common}
            command(shared(**taken), **values)

        # typer reads these of a command.
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate
