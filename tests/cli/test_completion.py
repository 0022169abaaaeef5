"""Completion as shells ask for it: a process with some variables set, whose lines are what is offered."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wordsway.cli import completion
from wordsway.models.loading.installed import SENTIMENT


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
    from wordsway.learning.generalization import TRAININGS
    from wordsway.maps.activations import ACTIVATIONS
    from wordsway.models.loading import sentiment
    from wordsway.search.ascent import BUDGETS
    from wordsway.studies import toml_files
    from wordsway.studies.run.engines import ENGINES
    from wordsway.support.names import MAPS

    assert completion.MAPS == tuple(MAPS)
    assert completion.SCALES == toml_files.SCALES
    assert completion.studies("") == toml_files.bundled_studies()
    assert tuple(completion.figures("")) == toml_files.PAPER
    assert set(completion.ACTIVATIONS) == {activation.name for activation in ACTIVATIONS}
    assert completion.BUDGETS == tuple(BUDGETS) and completion.ENGINES == ENGINES
    assert completion.TRAININGS == (*TRAININGS, "both")
    assert sentiment.NAME == SENTIMENT


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
