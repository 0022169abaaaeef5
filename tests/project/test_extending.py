"""The examples of docs/extending.md, tried as a reader would: their own tests, a study in a process, a report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs_blocks import ROOT, all_blocks
from wordsway.cli.main import app
from wordsway.support.own_code import VARIABLE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page."""
    place = tmp_path_factory.mktemp("extending")
    for block in all_blocks():
        if block.page == "docs/extending.md" and block.file:
            (place / block.file).write_text(block.text, encoding="utf-8")
    return place


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(folder)])
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**{k: v for k, v in os.environ.items() if k != VARIABLE}, "PYTHONPATH": path},
    )


@pytest.mark.parametrize("kind", ["scores", "outputs", "bag"])
def test_the_examples_pass_the_kit(kind: str, folder: Path) -> None:
    done = call(folder, "pytest", "-q", "-p", "no:cacheprovider", f"test_my_{kind}.py")
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-3000:]


def test_a_score_in_a_study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs leave; then worker processes have it too, the report shows it, and other code is measured again."""
    run = ("wordsway", "run", "arctan.toml", "--out", "out", "--workers", "1")
    refused = call(folder, *run)
    assert refused.returncode == 2 and "--own my_scores" in refused.stderr, refused.stderr
    done = call(folder, *run, "--own", "my_scores")
    assert done.returncode == 0 and "my_scores:Arctan" in done.stdout, done.stderr
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    commands = CliRunner()
    report = commands.invoke(app, ["report", "out", "--out", "out.html"])
    assert report.exit_code == 0, report.stderr
    assert "my_scores:Arctan" in (folder / "out.html").read_text(encoding="utf-8")
    assert "8 of 8" in commands.invoke(app, ["status", "out"]).stdout
    (folder / "my_scores.py").write_text((folder / "my_scores.py").read_text() + "\n# changed\n")
    assert "4 of 8" in commands.invoke(app, ["status", "out"]).stdout
