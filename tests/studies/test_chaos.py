"""The chaos harness: a few faults of a fixed seed, and that it sees what is wrong."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the harness reads /proc")


@pytest.mark.slow
def test_six_faults() -> None:
    words = [sys.executable, str(TOOLS / "chaos.py"), "--faults", "6", "--seed", "2"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 6 faults" in done.stdout and done.stdout.endswith("0 rows lost, 0 rows changed, 0 unexplained ends\n")


@pytest.mark.parametrize(
    ("code", "err", "sent", "explained"),
    [
        (0, "", 0, True),
        (0, "Traceback (most recent call last):", 0, False),
        (2, "wordsway: another run is at work on 'a'; wait for it (wordsway status a) or stop it first", 0, True),
        (2, "wordsway: something odd", 0, False),
        (1, "", 0, False),
        (-9, "", signal.SIGKILL, True),
        (-9, "", 0, False),
        (-15, "", signal.SIGTERM, False),
        (130, "wordsway: stopped; 3 of 4 cells measured and kept", signal.SIGTERM, True),
        (130, "wordsway: stopped\nThere appear to be 6 leaked semaphore objects", signal.SIGTERM, False),
    ],
)
def test_which_ends_are_explained(
    code: int, err: str, sent: int, explained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from chaos_commands import End  # pyright: ignore[reportMissingImports]

    assert (End(code, "", err).unexplained(sent) is None) == explained


def test_a_disk_is_filled_but_for_some_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from chaos_runs import can_mount, fill  # pyright: ignore[reportMissingImports]

    if not can_mount(tmp_path):
        pytest.skip("no small disk can be mounted here")
    place = tmp_path / "mount"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)], check=True)
    try:
        fill(place / "filler", 8192)
        assert os.statvfs(place).f_bavail * os.statvfs(place).f_bsize == 8192
        (place / "more").write_bytes(bytes(8192))
        with pytest.raises(OSError, match="No space left"):
            (place / "too much").write_bytes(bytes(4096))
    finally:
        subprocess.run(["umount", str(place)], check=True)
