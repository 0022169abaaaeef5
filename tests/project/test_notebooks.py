"""The notebooks, run as a reader would from a fresh kernel: no error, and the same numbers as those that are stored."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from docs_blocks import differences
from searched import Searched

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
TIME = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s)\b")
# In a process of its own: the client's libraries warn about things that are no concern of ours.
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
for cell in notebook.cells:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
NotebookClient(notebook, kernel_name="python3", timeout=300, resources={"metadata": {"path": sys.argv[3]}}).execute()
nbformat.write(notebook, sys.argv[2])
"""


def read(path: Path) -> Any:
    return nbformat.read(path, 4)  # pyright: ignore[reportUnknownMemberType]


def printed(cell: Any) -> str:
    """What a code cell printed or showed as text, but for how long things took."""
    parts = [
        out.text if out.output_type == "stream" else out.get("data", {}).get("text/plain", "") for out in cell.outputs
    ]
    return TIME.sub("some time", "".join(parts))


def searched_in(cell: Any) -> Searched | None:
    """What a tag "searched NAMES above NAMES" says, as the notes of docs_blocks do."""
    tags = [tag.removeprefix("searched ") for tag in cell.metadata.get("tags", []) if tag.startswith("searched ")]
    return Searched.of(tags[0]) if tags else None


def pictures(cell: Any) -> int:
    return sum("image/png" in out.get("data", {}) for out in cell.outputs)


def agree(stored: str, fresh: str, tolerance: float, searched: Searched | None = None) -> None:
    """The same words and numbers; what was searched for is at least what is stored, less the search's spread."""
    if searched is not None:
        assert not differences(stored.splitlines(), fresh.splitlines(), tolerance, searched)
        return
    assert NUMBER.sub("#", stored) == NUMBER.sub("#", fresh)
    for old, new in zip(NUMBER.findall(stored), NUMBER.findall(fresh), strict=True):
        assert float(new) == pytest.approx(float(old), rel=tolerance, abs=tolerance), (stored, fresh)


def test_there_are_two() -> None:
    assert NAMES == ["one-word-away.ipynb", "the-paper-in-ten-minutes.ipynb"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored(name: str) -> None:
    assert (FOLDER / name).stat().st_size < 600_000
    notebook = read(FOLDER / name)
    nbformat.validate(notebook)  # pyright: ignore[reportUnknownMemberType]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))  # run from top to bottom, once
    outputs = [out for cell in code for out in cell.outputs]
    assert all(out.output_type in ("stream", "display_data", "execute_result") for out in outputs)
    assert not [out.text for out in outputs if out.get("name") == "stderr"]
    assert sum(map(pictures, code)) >= 3
    assert not re.search(r"(/home/|/root|/work|/tmp|site-packages)", (FOLDER / name).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_fresh_run_gives_the_same(name: str, tmp_path: Path) -> None:
    threads = {name: os.environ.get(name, "1") for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    quiet = {"JUPYTER_PLATFORM_DIRS": "1", **threads}
    places = {key: str(tmp_path / key.lower()) for key in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    kernels = {"JUPYTER_PATH": str(Path(sys.prefix) / "share" / "jupyter")}  # of this interpreter, not of another
    script = [sys.executable, "-c", RUN, str(FOLDER / name), str(tmp_path / name), str(tmp_path)]
    done = subprocess.run(
        script, capture_output=True, text=True, timeout=400, env={**os.environ, **quiet, **places, **kernels}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    stored, fresh = read(FOLDER / name), read(tmp_path / name)
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        if old.cell_type == "code":
            agree(printed(old), printed(new), 1e-2, searched_in(old))
            assert pictures(old) == pictures(new)


@pytest.mark.parametrize(
    ("stored", "fresh", "tolerance"),
    [("S is 1.00", "S is 1.03", 1e-2), ("S is 1.00", "T is 1.00", 1e-2), ("a 1.0 b 2.0", "a 1.0", 1e-2)],
)
def test_a_difference_is_seen(stored: str, fresh: str, tolerance: float) -> None:
    with pytest.raises(AssertionError):
        agree(stored, fresh, tolerance)
    agree("S is 1.00", "S is 1.005", 1e-2)


def test_what_was_searched_for_may_only_be_higher() -> None:
    searched = Searched.of("at least above on average")
    stored = "all 14 words by at least 2.20\non average 0.06"
    for fresh in ("2.10", "9.00"):
        agree(stored, stored.replace("2.20", fresh), 1e-2, searched)
    for old, new in {"2.20": "1.95", "0.06": "0.08", "14": "13", "words": "pieces"}.items():
        with pytest.raises(AssertionError):
            agree(stored, stored.replace(old, new), 1e-2, searched)
