"""Commands that show what is there already do without torch, transformers and scipy, and so start in a moment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import wordsway as ws

OLD = Path(__file__).parents[1] / "support" / "earlier_results"
HEAVY = ("torch", "transformers", "scipy")
SCRIPT = f"""
import sys
from wordsway.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, and results of the kinds that `measure` gives; those of models were saved earlier."""
    folder = tmp_path_factory.mktemp("kept")
    grid = {"map": ["rf", "drf", "raf", "relu-raf"], "depth": 2, "n": [4, 6], "d": 8, "trials": 2}
    ws.run(ws.Study("small", grid), folder / "run", engine="inline")
    ws.compare_draws("I love her smile", weights=2).save(folder / "draws.json")
    ws.word_sensitivity(ws.RandomAttention().sample(d=8), ws.synthetic_tokens(4, 8)).save(folder / "one.json")
    for name in ("flip-radius-1", "radius-profile-1"):
        saved = json.loads((OLD / f"{name}.json").read_text())["result"]
        (folder / f"{name}.json").write_text(json.dumps(saved))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "doctor",
        "studies",
        "status run",
        "verify run",
        "export run --out table.csv",
        *(f"report {name}.json --out page.html" for name in ("draws", "one", "flip-radius-1", "radius-profile-1")),
    ],
)
def test_commands_that_load_no_torch(command: str, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command.split()], capture_output=True, text=True, cwd=home, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
    assert done.stdout


def test_panels_that_are_counted_by_their_grid() -> None:
    """The command `studies` counts panels whose maps have options without making their cells."""
    from wordsway.cli.studies_command import _count
    from wordsway.studies.toml_files import draft_studies
    from wordsway.support import names

    for name in names.studies():
        for scale in names.SCALES:
            for panel in draft_studies([name], scale)[0].panels:
                assert _count(panel) == sum(1 for _ in panel.cells()), (name, scale, panel.id)


def test_a_saved_move_is_a_tensor_when_it_is_asked_for(home: Path) -> None:
    result = ws.load_result(home / "one.json")
    assert isinstance(vars(result)["delta"], list)
    assert result.delta.shape == (1, 8) or result.delta.shape == (8,)
    assert isinstance(vars(result)["delta"], type(result.delta))
    again = ws.load_result(home / "one.json")
    assert again.to_dict() == result.to_dict()
