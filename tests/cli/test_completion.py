"""Completion as shells ask for it: a process with some variables set, whose lines are what is offered."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest
from typer import Context

from wordsway.models.loading.installed import SENTIMENT
from wordsway.support import names


def offered(line: str, shell: str = "bash", **environment: str) -> list[str]:
    """What is offered at the end of a line; a line that ends in a space asks for another word."""
    words = line.split()
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) if line.endswith(" ") else len(words) - 1)}
    if shell != "bash":
        asked = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'wordsway'; from wordsway.cli.main import main; main()"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment, **asked, "_WORDSWAY_COMPLETE": f"complete_{shell}"},
    )
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("wordsway me", {"measure"}),
        ("wordsway doc", {"doctor"}),
        ("wordsway measure --ma", {"--map", "--max-tokens"}),
        ("wordsway measure --map r", {"rf", "raf", "relu-raf"}),
        ("wordsway measure --budget ", {"quick", "default", "thorough"}),
        ("wordsway layers --budget t", {"thorough"}),
        ("wordsway curve --map rf,r", {"rf,raf", "rf,relu-raf"}),
        ("wordsway curve --data s", {"sample", "sentences"}),
        ("wordsway reproduce --scale ", {"smoke", "laptop", "paper"}),
        ("wordsway reproduce fig", {"fig1", "fig2", "fig3", "fig4", "fig5"}),
        ("wordsway run k", {"knob"}),
        ("wordsway generalize --objective align,", {"align,error", "align,penalized"}),
        ("wordsway measure --model s", {"sentiment"}),
        ("wordsway flip --model ", {"sentiment"}),
        ("wordsway measure --encoder s", {"synthetic"}),
    ],
)
def test_what_bash_is_offered(line: str, names: set[str]) -> None:
    assert set(offered(line, WORDSWAY_DATA="/nowhere", WORDSWAY_MODELS="/nowhere", HF_HOME="/nowhere")) == names


def test_models_under_a_folder_and_in_the_hub_cache(tmp_path: Path) -> None:
    for place in ("own/mpnet", "own/mine/inner", "hf/hub/models--owner--name/snapshots/abc", "own/empty"):
        (tmp_path / place).mkdir(parents=True)
        if "empty" not in place:
            (tmp_path / place / "config.json").write_text("{}")
            (tmp_path / place / "model.safetensors").touch()
    (tmp_path / "own" / "small").mkdir()
    (tmp_path / "own" / "small" / "small.gguf").touch()
    (tmp_path / "hf" / "hub" / "models--half--loaded" / "snapshots" / "abc").mkdir(parents=True)
    found = offered(
        "wordsway layers --model ",
        WORDSWAY_MODELS=str(tmp_path / "own"),
        HF_HOME=str(tmp_path / "hf"),
        HF_HUB_CACHE="",
        HUGGINGFACE_HUB_CACHE="",
    )
    own = tmp_path / "own"
    others = {"mpnet", str(own / "mine" / "inner"), str(own / "small" / "small.gguf"), "owner/name"}
    assert set(found) - {"minilm", "sentiment"} == others


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell: str) -> None:
    assert "knob" in "".join(offered("wordsway run k", shell))


def test_completion_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from wordsway.cli import completion\n"
        "for ask in (completion.models, completion.encoders, completion.studies, completion.data):\n"
        "    ask('')\n"
        "heavy = {'torch', 'numpy', 'transformers', 'huggingface_hub', 'rich'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_names_are_those_of_the_library() -> None:
    """Names stand once, in `support/names.py`; what cannot read them there is compared with it."""
    from wordsway.cli.options import At
    from wordsway.maps.activations import ACTIVATIONS
    from wordsway.models.loading import sentiment
    from wordsway.models.running.model import At as Entry

    assert set(names.ACTIVATIONS) == {activation.name for activation in ACTIVATIONS}
    assert tuple(At) == get_args(Entry)
    assert tuple(names.BUDGETS) == tuple(names.Budget)
    assert sentiment.NAME == SENTIMENT


def test_every_name_can_be_used() -> None:
    """Registered things are there, and all other names are taken where users give them."""
    from wordsway.datasets.labelled_texts import check_source
    from wordsway.maps.named import named_recipe
    from wordsway.models.encoding.synthetic import SyntheticEncoder
    from wordsway.support.devices import find_device
    from wordsway.support.registry import load_home

    homes = [*names.SCORES.homes.values(), *names.OUTPUTS.homes.values()]
    homes += [*names.CERTIFICATES, *names.CERTIFICATES.values()]
    assert all(callable(load_home(home)) for home in homes)
    assert all(named_recipe(name) for name in names.MAPS)
    for data in names.DATA:
        check_source(data)
    assert str(find_device(names.DEVICES[0])) == "cpu" and SyntheticEncoder(8).d == 8


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("measure --of", names.OUTPUTS),
        ("measure --map", names.MAPS),
        ("measure --budget", names.BUDGETS),
        ("measure --activation", names.ACTIVATIONS),
        ("measure --device", names.DEVICES),
        ("substitute --of", names.OUTPUTS),
        ("generalize --objective", names.OBJECTIVES),
        ("generalize --training", names.TRAININGS),
        ("reproduce --scale", names.SCALES),
        ("reproduce --data", names.DATA),
        ("run --engine", names.ENGINES),
    ],
)
def test_help_and_completion_have_all_names(option: str, known: Iterable[str]) -> None:
    from typer.main import get_command

    from wordsway.cli.main import app

    command, name = option.split()
    commands: Any = get_command(app)
    (parameter,) = [each for each in commands.commands[command].params if name in each.opts]
    assert all(each in parameter.help for each in known)
    offered = {each.value for each in parameter.shell_complete(Context(commands.commands[command]), "")}
    assert {each for each in known if ":" not in each} <= offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_scripts_can_be_shown(shell: str) -> None:
    """By the variable, since --show-completion asks which shell started it, and none did here."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'wordsway'; from wordsway.cli.main import main; main()"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "_WORDSWAY_COMPLETE": f"source_{shell}"},
    )
    assert done.returncode == 0 and f"_WORDSWAY_COMPLETE=complete_{shell}" in done.stdout, done.stderr


def test_the_options_are_there() -> None:
    done = subprocess.run([sys.executable, "-m", "wordsway", "--help"], capture_output=True, text=True, timeout=60)
    assert "--install-completion" in done.stdout and "--show-completion" in done.stdout
