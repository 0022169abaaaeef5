"""What would be released: the contents of wheel and sdist, and the wheel in an empty environment, outside of the
repository, with the core's own dependencies and nothing else."""

import email
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OFFLINE = ("establish a new connection", "name resolution", "Max retries", "No matching distribution", "Read timed out")
pytestmark = pytest.mark.slow


def pip(python: str | Path, *arguments: str) -> None:
    """pip, or a skipped test where it has nothing to download from."""
    command = [str(python), "-m", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=clean(), timeout=900)
    if done.returncode and any(sign in done.stdout + done.stderr for sign in OFFLINE):
        pytest.skip(f"packages cannot be downloaded here: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def clean() -> dict[str, str]:
    """The environment without what would let code of the repository or of this environment in."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WORDSWAY", "HF_"))}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip(sys.executable, "build", "--outdir", str(folder), str(ROOT))
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def binaries(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an empty environment with the wheel in it. torch comes first, in the version that is used here,
    as any other would be a large download."""
    home = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(home, with_pip=True)
    places = home / ("Scripts" if os.name == "nt" else "bin")
    version = importlib.metadata.version("torch").split("+")[0]
    quiet = ("pip", "install", "--quiet", "--disable-pip-version-check")
    pip(places / "python", *quiet, f"torch=={version}")
    pip(places / "python", *quiet, str(wheel))
    return places


@pytest.fixture
def outside(binaries: Path, tmp_path: Path) -> Callable[..., str]:
    """Runs a command of that environment in a folder that has nothing to do with the repository."""

    def run(command: str, *arguments: str, fails: bool = False) -> str:
        path = str(binaries / command)
        more = {"WORDSWAY_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
        done = subprocess.run(
            [path, *arguments], capture_output=True, text=True, cwd=tmp_path, env={**clean(), **more}, timeout=300
        )
        assert done.returncode == (2 if fails else 0), done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if fails else done.stdout

    return run


class TestContents:
    def test_the_wheel_has_what_the_package_has(self, wheel: Path) -> None:
        """Every file that is not byte code: a page's templates and scripts as well as Python."""
        with zipfile.ZipFile(wheel) as file:
            names = {info.filename: info.file_size for info in file.infolist()}
        package = ROOT / "src" / "wordsway"
        files = {f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts}
        expected = {f"wordsway/{file.relative_to(package).as_posix()}" for file in files}
        inside = {name for name in names if ".dist-info/" not in name}
        assert inside == expected
        assert {
            "wordsway/py.typed",
            "wordsway/models/loading/sentiment.safetensors",
            "wordsway/studies/built_in/fig3.toml",
        } <= inside
        licences = {Path(name).name for name in names if ".dist-info/licenses/" in name}
        assert licences == {"LICENSE", "NOTICE"}
        assert max(names.values()) < 1_000_000 and wheel.stat().st_size < 3_000_000

    def test_the_sdist_can_be_built_and_tested(self, built: Path) -> None:
        (sdist,) = built.glob("*.tar.gz")
        with tarfile.open(sdist) as file:
            names = {name.partition("/")[2] for name in file.getnames()}
        needed = {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "Makefile", "PKG-INFO", "CHANGELOG.md"}
        needed |= {"docs/own-map.md", "tools/make_sample.py", "src/wordsway/py.typed", "tests/conftest.py"}
        assert needed <= names
        assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*.py")} <= names
        junk = (".venv", "runs/", "dist/", ".git/", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis")
        assert not [name for name in names if any(part in name for part in junk)]
        assert sdist.stat().st_size < 12_000_000

    def test_the_metadata_is_valid(self, wheel: Path) -> None:
        from packaging.metadata import Metadata

        with zipfile.ZipFile(wheel) as file:
            (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
            content = file.read(name)
        found = Metadata.from_email(content, validate=True)
        assert found.description_content_type is not None and found.description_content_type.startswith("text/markdown")
        assert found.description is not None and found.description.startswith("# wordsway")
        assert found.license_expression == "MIT" and found.requires_python is not None
        extras = set(email.message_from_bytes(content).get_all("Provides-Extra") or [])
        assert {"text", "models", "gguf", "data", "dask", "imdb", "app", "all"} <= extras
        assert "Typing :: Typed" in (found.classifiers or [])


class TestCore:
    """`pip install wordsway` alone."""

    def test_it_measures(self, outside: Callable[..., str]) -> None:
        import wordsway as ws

        assert outside("wordsway", "--version").strip() == f"wordsway {ws.__version__}"
        found = json.loads(outside("wordsway", "measure", "--map", "raf", "--n", "20", "--d", "32", "--json"))
        assert 0 < found["lower"] <= found["upper"]

    def test_a_text_names_the_extra(self, outside: Callable[..., str]) -> None:
        for command in (["measure", "hello"], ["layers", "hello"], ["curve", "--data", "sample", "--n", "4,8"]):
            assert "pip install 'wordsway[text]'" in outside("wordsway", *command, fails=True)

    def test_runs_tables_and_figures(self, outside: Callable[..., str], tmp_path: Path) -> None:
        outside("wordsway", "reproduce", "fig2", "--scale", "smoke", "--encoder", "synthetic", "--engine", "inline")
        assert (tmp_path / "runs" / "smoke" / "fig2.png").read_bytes().startswith(b"\x89PNG")
        outside("wordsway", "export", "runs/smoke", "--out", "table.csv")
        assert "pip install 'wordsway[data]'" in outside(
            "wordsway", "export", "runs/smoke", "--out", "table.parquet", fails=True
        )
        outside("wordsway", "generalize", "--n", "6", "--d", "16", "--train-size", "10", "--trials", "2", "--engine",
                "inline", "--map", "raf", "--out", "flips")  # fmt: skip
        assert (tmp_path / "flips" / "flips-raf.png").is_file()

    def test_the_doctor_is_content(self, outside: Callable[..., str]) -> None:
        found = json.loads(outside("wordsway", "doctor", "--check", "--json"))
        assert found["healthy"]
        fixes = {each["name"]: each["fix"] for each in found["findings"] if each["section"] == "extras"}
        assert fixes["text"] == "pip install 'wordsway[text]'" and fixes["app"] == "pip install 'wordsway[app]'"
        assert any(each["section"] == "check" and each["state"] == "ok" for each in found["findings"])

    def test_the_library_from_outside(self, outside: Callable[..., str]) -> None:
        script = (
            "import pathlib, wordsway as ws\n"
            "from importlib.resources import files\n"
            f"assert not pathlib.Path(ws.__file__).is_relative_to({str(ROOT)!r}), ws.__file__\n"
            "assert (files('wordsway') / 'py.typed').is_file()\n"
            "def tried(name):\n"
            "    try:\n"
            "        return getattr(ws, name)\n"
            "    except ws.InputError as error:\n"
            "        assert 'pip install' in str(error), name\n"
            "lacking = [name for name in ws.__all__ if tried(name) is None]\n"
            "assert lacking in ([], ['WordSensitivityCallback']), lacking\n"
            "r = ws.word_sensitivity(ws.named_map('rf', 8, 16), ws.synthetic_tokens(8, 16), [0])\n"
            "assert 0 < r.lower <= r.upper\n"
            "r.save('r.json')\n"
            "assert ws.load_result('r.json').lower == r.lower\n"
            "print(ws.find_study('fig3').title)\n"
        )
        assert "Attention" in outside("python", "-c", script)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("target", "asked"), [("run", "[clone]"), ("test", "[dev]")])
def test_a_clone_installs_what_its_command_needs(target: str, asked: str, tmp_path: Path) -> None:
    command = ["make", "--dry-run", target, f"VENV={tmp_path}/none"]
    steps = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=clean(), check=True).stdout
    assert (f'-e ".{asked}"' in steps) and ('".[dev]"' in steps) == (target == "test")
