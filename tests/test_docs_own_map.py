"""The guide "measure your own attention variant", run as it is written."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wordsway.cli import app
from wordsway.maps.own_maps import VARIABLE

GUIDE = (Path(__file__).parents[1] / "docs" / "own-map.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", GUIDE, re.S)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for _, block in BLOCKS:
        if name := re.match(r"# (\S+\.(?:py|toml))\n", block):
            (tmp_path / name[1]).write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    before = list(sys.path)
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path[:] = before
    sys.modules.pop("differential", None)
    os.environ.pop(VARIABLE, None)


def test_the_python_block(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = (block for kind, block in BLOCKS if kind == "python" and "import wordsway" in block)
    exec(compile(block, "own-map.md", "exec"), {})
    numbers, word = capsys.readouterr().out.splitlines()
    lower, random = map(float, numbers.split())
    promised = re.search(r"at least ([\d.]+) times its norm; a random move of that length: ([\d.]+)", block)
    assert promised is not None
    assert lower == pytest.approx(float(promised[1]), abs=0.06) and random == pytest.approx(
        float(promised[2]), abs=0.06
    )
    assert word in "The food was good, but the waiter was rude.".replace(",", " ").replace(".", " ").split()


@pytest.mark.slow
def test_the_commands(folder: Path) -> None:
    lines = [line for kind, block in BLOCKS if not kind for line in block.splitlines() if line.startswith("wordsway ")]
    assert len(lines) == 5
    for line in lines:
        words = re.findall(r'"[^"]*"|\S+', line)
        found = CliRunner().invoke(app, [word.strip('"') for word in words[1:]])
        assert found.exit_code == 0, (line, found.stderr)
        os.environ.pop(VARIABLE, None)
    assert (folder / "runs" / "mine" / "mine.png").stat().st_size > 10_000
