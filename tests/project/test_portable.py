"""The script behind `make portable`: settings arrive, every way is run, and one that fails is not forgotten."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "portable.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="instruction sets of another processor"),
]
# Fails for two threads, as a test that depends on their number would.
TEST = """
import os, torch
from wordsway.models.running.precision import half_is_faster

def test_settings():
    assert torch.backends.cpu.get_cpu_capability() == "DEFAULT"
    assert not half_is_faster(torch.device("cpu"))
    assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"]) == 1
"""


def test_every_way_is_run(tmp_path: Path) -> None:
    (tmp_path / "test_settings.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # so that ours is not looked for
    command = [sys.executable, str(SCRIPT), "--sets", "sse", "--threads", "2", "1", "-n", "0", "--tests", str(tmp_path)]
    env = {**os.environ, "WORDSWAY_HALF": "1"}  # what is set outside does not count
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=env)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "=== sse, threads: 2 (torch: DEFAULT)" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["FAILED  sse, threads: 2", "passed  sse, threads: 1"]


def test_a_set_that_torch_does_not_use_fails(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('broken')")
    command = [sys.executable, str(SCRIPT), "--sets", "avx2", "--threads", "1", "--tests", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == 1 and "torch does not use the instruction set avx2 here" in done.stdout
