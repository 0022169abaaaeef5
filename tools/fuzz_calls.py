"""Random calls for tools/fuzz.py: of every command that the application has, and every public function and class.

Neither is listed here. A call is drawn from its number alone, so that it can be repeated.
"""

import inspect
import reprlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from fuzz_files import ODD_TEXT, Place
from fuzz_nasty import NAMES, TYPED_NUMBERS, mixed, nasty, nasty_path
from fuzz_samples import STUDY_FILE, TEXT, concrete, parameters_of
from fuzz_sane import ALWAYS, Sane, one_of, sane

OPTIONAL = 0.2  # how likely an argument that may be left out is given
_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 90


@dataclass
class Call:
    """A call that was drawn: its text for people, and either words of a command line or a function that makes it."""

    shown: str
    words: tuple[str, ...] = ()
    make: Callable[[], Any] | None = None
    gives: bool = False  # whether it is meant to return something
    stdin: bytes = b""


def commands() -> dict[str, Any]:
    """Find the commands of the application."""
    import typer

    from wordsway.cli.main import app

    return dict(typer.main.get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]


def functions() -> dict[str, Any]:
    """Find the public functions and classes."""
    import wordsway

    return {name: getattr(wordsway, name) for name in wordsway.__all__}


# A copy of the run is made for each call, as a command may write to it.
def _a_run(place: Place) -> str:
    import shutil

    path = place.new("-run")
    shutil.copytree(place.samples.run_folder, path)
    return str(path)


def _saved(place: Place) -> str:
    return place.write(".json", place.chance.choice(place.samples.saved))


def _result_or_run(place: Place) -> str:
    return place.chance.choice([_saved, _a_run])(place)


def _file_to_write(place: Place) -> str:
    chosen = place.chance.choice(
        [".json", ".csv", ".html", ".svg", ".png", ".parquet", "-", "/dev/stdout", "/dev/null"]
    )
    return str(place.new(chosen)) if chosen.startswith(".") else chosen


def _folder_to_write(place: Place) -> str:
    return str(place.new("-out"))


# What is sane for a parameter of a command, by its name; `COMMAND.name` counts more.
SANE_TYPED: dict[str, Sane] = {
    "text": one_of(TEXT, "Yes", "The film was good"),
    "file": lambda place: place.write(".txt", TEXT),
    "n": one_of("3", "4"),
    "d": one_of("8"),
    "trials": one_of("1", "2"),
    "weights": one_of("2"),
    "budget": one_of("quick"),
    "measure.budget": one_of("quick", "8", "40"),
    "model": lambda place: str(
        place.chance.choice(
            [place.samples.model_folder, place.samples.model_folder, place.samples.causal_folder, "sentiment"]
        )
    ),
    "map": one_of("raf", "rf,raf", "drf"),
    "maps": one_of("raf", "rf", "relu-raf", "raf:heads=2"),
    "engine": one_of(*["inline"] * 30, "processes"),
    "encoder": lambda place: str(place.samples.model_folder),
    "out": _file_to_write,
    "run.out": _folder_to_write,
    "reproduce.out": _folder_to_write,
    "report.out": lambda place: str(place.new(".html")),
    "study": lambda place: place.write(".toml", STUDY_FILE),
    "folder": _a_run,
    "source": _result_or_run,
    "first": _saved,
    "second": _saved,
    "names": one_of("fig2"),
    "scale": one_of("smoke"),
    "train_size": one_of("4", "4,6"),
    "max_tokens": one_of("4", "8"),
    "limit": one_of("1"),
    "answer": one_of("1"),
    "against": one_of("I love her face"),
    "word": one_of("smile", "#1", "love"),
    "candidates": lambda place: place.write(".txt", "face\nsmile\nhate\n"),
    "of": one_of("last", "pooled", "logits"),
    "draws": one_of("0", "4"),
    "port": one_of("0"),
    "radius": one_of("0.5", "1", "0.1,1"),
    "seed": one_of("0", "3"),
    "token": one_of("1", "0", "2"),
    "layer": one_of("0", "1"),
    "depth": one_of("1", "2"),
    "temperature": one_of("1", "0.5"),
    "device": one_of("cpu"),
    "workers": one_of("1"),
    "top": one_of("2"),
    "data": one_of("sample"),
    "text_column": one_of("text"),
    "own": one_of("wordsway_user_maps"),
    "at": one_of("embeddings", "word-embeddings"),
    "explained": one_of("0", "1"),
    "objective": one_of("align"),
    "penalty": one_of("0.1"),
    "training": one_of("finetune"),
    "activation": one_of("relu", "tanh"),
    "noise": one_of("2"),
    "models": lambda place: str(
        place.chance.choice([place.samples.model_folder, place.samples.model_folder, "sentiment"])
    ),
    "app.models": lambda place: str(place.samples.folder),
    "compare.of": one_of("lower"),
    "search": one_of("auto", "guided"),
    "head": one_of("0", "mean"),
}
# Arguments that a command is always given, in one of several ways: what it does without them takes longer than a call
# may. A command that is not named here is given those of `_USUAL` that it has.
GIVEN: dict[str, Sequence[str]] = {
    "measure": (
        "text models budget draws",
        "text maps encoder weights budget draws",
        "n d maps weights budget draws",
        "file models budget lines",
        "file maps encoder budget lines",
    ),
    "curve": ("map n d trials engine",),
    "generalize": ("map n d train_size trials objective engine",),
    "run": ("study engine out",),
    "reproduce": ("names scale trials engine out encoder",),
    "app": ("no_open port",),
    "substitute": ("text model budget candidates", "text model against answer"),
}
_USUAL = "text model budget trials engine"
RARE = {
    "reproduce": 0.1,
    "app": 0.3,
    "doctor": 0.2,
    "studies": 0.2,
}  # times as often as others: they take long, or nothing


def draw(place: Place, only: str | None = None) -> Call:
    """Draw a call: of a command as often as of a function."""
    chance = place.chance
    is_command = only in commands() if only is not None else chance.random() < 0.5  # of two of a name, the command
    found = commands() if is_command else functions()
    rates = [RARE.get(name, 0.4 if isinstance(target, type) else 1.0) for name, target in found.items()]
    name = only or chance.choices(list(found), rates)[0]
    return _of_command(place, name, found[name]) if is_command else _of_function(place, name, found[name])


def _of_command(place: Place, name: str, command: Any) -> Call:
    chance = place.chance
    usual = chance.choice(GIVEN.get(name, (_USUAL,))).split()
    chosen = [each for each in command.params if each.required or each.name in usual or chance.random() < OPTIONAL / 2]
    chosen = [each for each in chosen if each.name != "help" and not getattr(each, "hidden", False)]
    odd = mixed(chance, len(chosen))
    words: list[str] = []
    stdin = chance.choice([b"", b"", TEXT.encode(), b"\xff\0\n", b"a" * 3_000_000, ODD_TEXT.encode("utf-8", "replace")])
    for number, parameter in enumerate(chosen):
        if getattr(parameter, "is_flag", False):
            words.append(chance.choice([*parameter.opts, *parameter.secondary_opts]))
            continue
        value = _typed_odd(place, parameter) if number in odd else _typed_sane(place, name, parameter)
        if parameter.param_type_name == "argument":
            words += [value] if not value.startswith("-") or value == "-" else ["--", value]
        else:
            words += [chance.choice(parameter.opts), value]
            if number in odd and chance.random() < 0.05:
                words += [parameter.opts[0], value]
    words = [
        word.replace("\0", "").encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") for word in words
    ]
    line = " ".join(
        shlex.quote(word if len(word) < 200 else f"{word[:60]}...({len(word)} characters)") for word in words
    )
    return Call(f"wordsway {name} {line}", (name, *words), stdin=stdin)


def _typed_sane(place: Place, command: str, parameter: Any) -> str:
    maker = SANE_TYPED.get(f"{command}.{parameter.name}") or SANE_TYPED.get(parameter.name)
    if maker is not None:
        return str(maker(place))
    takes = str(parameter.metavar)
    if takes in ("FILE", "FOLDER", "PATH"):
        return _saved(place) if takes == "FILE" else _a_run(place)
    default = parameter.default
    return str(default) if isinstance(default, str | int | float) else "1"


def _typed_odd(place: Place, parameter: Any) -> str:
    """Draw what nobody should type there: mostly of the kind that the option takes."""
    chance, name, takes = place.chance, str(parameter.name), str(parameter.metavar)
    pool = chance.choice([TYPED_NUMBERS, NAMES, None])
    if chance.random() < 0.6:
        paths = name in (
            "model",
            "models",
            "encoder",
            "data",
            "first",
            "second",
            "source",
            "study",
            "folder",
            "out",
            "file",
            "candidates",
        )
        pool = (
            None
            if paths
            else NAMES
            if takes in ("TEXT", "NAME", "NAMES", "WORD", "OUTPUT", "HOW", "MODULE", "PLACE")
            else TYPED_NUMBERS
        )
    return nasty_path(place, name) if pool is None else chance.choice(pool)


def _of_function(place: Place, name: str, target: Any) -> Call:
    chance = place.chance
    called = concrete(target) if isinstance(target, type) else target
    function = inspect.unwrap(called.__init__) if isinstance(called, type) else inspect.unwrap(called)
    try:
        hints = get_type_hints(function)
    except (TypeError, NameError):
        hints = {}
    found = {key: each for key, each in parameters_of(called).items() if each.kind is not each.VAR_KEYWORD}
    always = ALWAYS if not isinstance(target, type) else set[str]()
    chosen = [
        each
        for each in found.values()
        if each.default is each.empty or each.name in always or chance.random() < OPTIONAL
    ]
    odd = mixed(chance, len(chosen))
    given: list[Any] = []
    options: dict[str, Any] = {}
    for number, parameter in enumerate(chosen):
        draw_one = nasty if number in odd else sane
        value = draw_one(place, hints.get(parameter.name, Any), parameter.name, name)
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            given.append(value)
        else:
            options[parameter.name] = value
    shown = ", ".join([*map(_show, given), *(f"{key}={_show(value)}" for key, value in options.items())])
    gives = isinstance(target, type) or hints.get("return", Any) not in (None, type(None))
    return Call(f"{name}({shown})", make=lambda: called(*given, **options), gives=gives)


def _show(value: Any) -> str:
    try:
        text = _repr.repr(value)
    except Exception as error:  # what cannot even be shown is a value like another
        return f"<{type(value).__name__} that has no text: {type(error).__name__}>"
    text = text.encode("unicode_escape").decode()
    return text if len(text) <= 200 else f"{text[:120]}..."
