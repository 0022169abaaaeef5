"""The doctor: finds what is missing or too old, says how to mend it, and tells no secrets."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wordsway.cli import doctor, doctor_checks
from wordsway.cli.main import app
from wordsway.models.loading.installed import hub_cache, models_at_hand

WORDSWAY = """Metadata-Version: 2.4
Name: wordsway
Version: {version}
Requires-Dist: numpy>=2.0
Provides-Extra: all
Requires-Dist: wordsway[text,later]; extra == 'all'
Provides-Extra: dev
Requires-Dist: wordsway-needs-this; extra == 'dev'
Provides-Extra: later
Requires-Dist: not-there-yet>=3; extra == 'later'
Provides-Extra: text
Requires-Dist: safetensors>=0.5; extra == 'text'
Requires-Dist: wordsway[later]; extra == 'text'
Requires-Dist: never-needed; sys_platform == 'nowhere' and extra == 'text'
"""


def distribution(home: Path, name: str, version: str, content: str | None = None) -> None:
    folder = home / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    text = content or "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (folder / "METADATA").write_text(text.format(name=name, version=version))


def packages(first: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, doctor.Finding]:
    monkeypatch.syspath_prepend(str(first))
    return {finding.name: finding for finding in doctor._packages()}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wordsway", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


class TestPackages:
    def test_extras_are_read_from_the_metadata(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        distribution(tmp_path, "wordsway", doctor.__version__, WORDSWAY)
        found = packages(tmp_path, monkeypatch)
        assert set(found) == {"core", "later", "text"}  # neither all nor what developers need
        assert found["core"].state == "ok" and found["core"].detail.startswith("numpy 2")
        assert found["later"].detail == "not installed: not-there-yet"
        assert found["later"].fix == "pip install 'wordsway[later]'"
        assert found["text"].state == "absent" and "never-needed" not in found["text"].detail  # by another extra

    def test_what_is_too_old_is_broken(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        distribution(tmp_path, "wordsway", doctor.__version__, WORDSWAY)
        distribution(tmp_path, "not-there-yet", "2.9")
        distribution(tmp_path, "numpy", "1.26.4")
        found = packages(tmp_path, monkeypatch)
        assert found["later"].state == "broken" and "not-there-yet 2.9 (needs >=3)" in found["later"].detail
        assert found["later"].fix == "pip install --upgrade 'wordsway[later]'"
        assert found["core"].state == "broken" and "numpy 1.26.4 (needs >=2.0)" in found["core"].detail
        assert not doctor.Diagnosis(tuple(found.values()), 0.0).healthy

    def test_metadata_of_another_version(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        distribution(tmp_path, "wordsway", "0.0.1", WORDSWAY)
        assert "0.0.1" in packages(tmp_path, monkeypatch)["wordsway"].detail

    def test_every_extra_has_a_purpose(self) -> None:
        import tomllib

        project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
        assert set(project["optional-dependencies"]) - set(doctor._FOR_DEVELOPERS) == set(doctor.PURPOSES)


class TestFolders:
    def test_one_that_cannot_be_written_to(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        found = doctor._folder("cache", tmp_path / "file" / "below", "what", "set WORDSWAY_CACHE")
        assert found.state == "note" and found.fix == "set WORDSWAY_CACHE"

    def test_one_that_is_not_there_is_not_made(self, tmp_path: Path) -> None:
        found = doctor._folder("cache", tmp_path / "a" / "b", "what", "fix")
        assert found.state == "ok" and "made when needed" in found.detail and not list(tmp_path.iterdir())

    def test_the_hub_cache_is_where_its_client_looks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        script = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
        for given in ({}, {"HF_HOME": "/one/place"}, {"HF_HUB_CACHE": "/another"}, {"XDG_CACHE_HOME": "/a/third"}):
            for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
                monkeypatch.setenv(name, given[name]) if name in given else monkeypatch.delenv(name, raising=False)
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
            assert Path(done.stdout.strip()) == hub_cache(), given

    def test_damaged_folders_of_models_are_left_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "half").mkdir()
        (tmp_path / "half" / "config.json").write_text("{}")
        monkeypatch.setenv("WORDSWAY_MODELS", str(tmp_path))
        assert all(model.source != "WORDSWAY_MODELS" for model in models_at_hand())


@pytest.mark.slow
class TestCommand:
    def test_a_sound_installation(self) -> None:
        secret = "hf_" + "x" * 30
        done = run(
            "--check", "--json", HF_TOKEN=secret, HUGGING_FACE_HUB_TOKEN=secret, HF_ENDPOINT=f"https://{secret}@host"
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["healthy"] and found["format"] == "wordsway.doctor/1"
        by_name = {(each["section"], each["name"]): each for each in found["findings"]}
        assert by_name["check", "measure"]["state"] == "ok" and by_name["check", "encode"]["state"] == "ok"
        assert by_name["models", "minilm"]["state"] == by_name["models", "sentiment"]["state"] == "ok"
        assert "384" in by_name["check", "encode"]["detail"]
        assert "cpu" in {each["name"] for each in found["findings"] if each["section"] == "device"}
        assert secret not in done.stdout + done.stderr

    def test_something_too_old_is_exit_code_1(self, tmp_path: Path) -> None:
        distribution(tmp_path, "transformers", "4.2.0")
        paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        done = run(PYTHONPATH=paths, COLUMNS="200", HF_HUB_OFFLINE="1")
        assert done.returncode == 1, done.stderr
        assert "BROKEN" in done.stdout and "transformers 4.2.0 (needs >=5.0)" in done.stdout
        assert "pip install --upgrade 'wordsway[text]'" in done.stdout and "unset HF_HUB_OFFLINE" in done.stdout

    def test_a_module_that_cannot_be_loaded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "scipy.optimize", None)
        monkeypatch.setattr(doctor_checks, "_measure", lambda: __import__("scipy.optimize"))
        done = CliRunner().invoke(app, ["doctor", "--check"], env={"COLUMNS": "200"})
        assert done.exit_code == 1 and "ModuleNotFoundError" in done.stdout, done.output
        assert "pip install --force-reinstall wordsway" in done.stdout
