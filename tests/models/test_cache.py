"""Embeddings on disk: right, shared, and safe when things go wrong."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

import wordsway as ws
from wordsway.models.encoding import encode as module
from wordsway.models.encoding.cache import _checksum
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.support import cache_files

TEXTS = ["I love her smile", "The soup was cold.", "I love her smile", "A café, and more"]


def same(left: list[ws.Tokens], right: list[ws.Tokens]) -> bool:
    parts = ("tokens", "word_ids", "offsets", "ids", "text", "normalized", "source")
    return all(
        torch.equal(a.X, b.X)
        and torch.equal(a.special, b.special)
        and all(getattr(a, name) == getattr(b, name) for name in parts)
        for a, b in zip(left, right, strict=True)
    )


def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PretrainedEncoder, "embed", lambda *_: pytest.fail("the model ran"))


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


@pytest.mark.parametrize("layer", [0, 2])
def test_a_second_run_comes_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: int) -> None:
    first = ws.encode(TEXTS, layer=layer, cache=tmp_path)
    assert same(first, ws.encode(TEXTS, layer=layer, cache=False))
    assert len(files(tmp_path)) == 3  # one of the texts comes twice
    no_model(monkeypatch)
    assert same(first, ws.encode(TEXTS, layer=layer, cache=tmp_path))
    raw = ws.encode(TEXTS, layer=layer, cache=tmp_path, normalize=False)  # the same rows, prepared otherwise
    assert torch.allclose(ws.normalize_rows(raw[0].X), first[0].X)


def test_lists_are_cached_by_themselves_and_single_texts_are_not(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("WORDSWAY_CACHE", str(tmp_path))
    ws.encode(TEXTS[0])
    assert not files(tmp_path)
    ws.encode(TEXTS)
    assert len(files(tmp_path)) == 3
    ws.encode(TEXTS, "synthetic")
    assert len(files(tmp_path)) == 3


def test_notes_about_texts_come_from_the_cache_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["one two three four five", "a good 😀 day"]
    for turn in range(2):
        if turn:
            no_model(monkeypatch)
        with pytest.warns(ws.TextWarning) as caught:
            ws.encode(texts, cache=tmp_path, max_tokens=6)
        notes = [str(warning.message) for warning in caught]
        assert len(notes) == 2, notes
        assert notes[0].startswith("cropped 1 of 2 texts to 6 tokens") and "had 7" in notes[0]
        assert "does not know '😀'" in notes[1]


def test_what_rows_depend_on_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.encode(TEXTS[:2], cache=tmp_path)
    ws.encode(TEXTS[:2], cache=tmp_path, layer=1)
    ws.encode(TEXTS[:2], cache=tmp_path, max_tokens=100)
    assert len(files(tmp_path)) == 6
    real = module._resolve

    def other_revision(*arguments: Any) -> Any:
        find, recipe = real(*arguments)
        assert recipe is not None
        return find, {**recipe, "revision": "another"}

    monkeypatch.setattr(module, "_resolve", other_revision)
    ws.encode(TEXTS[:2], cache=tmp_path)
    assert len(files(tmp_path)) == 8


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ",
        lambda content: b"x" * 500,
        lambda content: content[: len(content) // 2],
        lambda content: content[:-50] + bytes([content[-50] ^ 0x40]) + content[-49:],
        lambda content: content.replace(b"love", b"hate").replace(b"soup", b"meal"),
    ],
    ids=["empty", "no metadata", "junk", "half", "one bit", "another token"],
)
def test_damaged_files_are_made_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    first = ws.encode(TEXTS[:2], cache=tmp_path)
    for file in files(tmp_path):
        file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(ws.TextWarning, match="made again.*damaged") as caught:
        assert same(first, ws.encode(TEXTS[:2], cache=tmp_path))
    assert len(caught) == 1  # of two files
    assert same(first, ws.encode(TEXTS[:2], cache=tmp_path))
    assert all(file.stat().st_size > 1000 for file in files(tmp_path))


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_files, "_told", set())


def chown(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, -1)


@pytest.mark.skipif(os.name != "posix", reason="about users and modes")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda file: file.chmod(0o620), "others may write"),
        (lambda file: file.chmod(0o602), "others may write"),
        (lambda file: file.parent.chmod(0o770), "others may write"),
        (chown, "another user"),
        (
            lambda file: file.rename(file.with_suffix(".x")) and file.symlink_to(file.with_suffix(".x")),
            "neither a file",
        ),
    ],
    ids=["group", "world", "folder", "another user", "symlink"],
)
def test_files_that_others_may_have_written(tmp_path: Path, change: Callable[[Path], Any], reason: str) -> None:
    first = ws.encode(TEXTS[:1], cache=tmp_path)
    (file,) = files(tmp_path)
    change(file)
    with pytest.warns(ws.TextWarning, match=reason):
        assert same(first, ws.encode(TEXTS[:1], cache=tmp_path))
    file.parent.chmod(0o700)
    assert same(first, ws.encode(TEXTS[:1], cache=tmp_path))
    assert not file.is_symlink() and (reason == "others may write" or file.stat().st_uid == os.getuid())


@pytest.mark.parametrize(
    "change",
    [{"tokens": "abcdef"}, {"word_ids": [0.5] * 6}, {"ids": None}, {"special": ["no"] * 6}, {"offsets": [1] * 6}],
)
def test_wrong_types_under_our_own_key(tmp_path: Path, change: dict[str, Any]) -> None:
    first = ws.encode(TEXTS[:1], cache=tmp_path)
    (file,) = files(tmp_path)
    with safe_open(file, framework="pt") as content:
        X, kept = content.get_tensor("X"), json.dumps({**json.loads(content.metadata()["tokens"]), **change})
    file.write_bytes(save({"X": X}, {"tokens": kept, "sum": _checksum(X, kept)}))
    with pytest.warns(ws.TextWarning, match="made again"):
        assert same(first, ws.encode(TEXTS[:1], cache=tmp_path))


def test_only_the_users_key_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDSWAY_CACHE", str(tmp_path / "home"))
    first = ws.encode(TEXTS[:1], cache=True)
    key = tmp_path / "home" / "key"
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in (key.parent, files(tmp_path)[0].parent))
    assert key.stat().st_mode & 0o777 == 0o600 and files(tmp_path)[0].stat().st_mode & 0o777 == 0o600
    signed = files(tmp_path)[0].read_bytes()
    key.write_bytes(b"x" * 32)  # as if the file came from elsewhere
    with pytest.warns(ws.TextWarning, match="made again"):
        assert same(first, ws.encode(TEXTS[:1], cache=True))
    assert files(tmp_path)[0].read_bytes() != signed
    key.chmod(0o666)
    ws.encode(TEXTS[:1], cache=True)
    assert key.read_bytes() != b"x" * 32  # a key that others may have put there is replaced


def test_a_full_disk_costs_the_cache_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wordsway.models.encoding.cache.write_cached", full)
    with pytest.warns(ws.TextWarning, match="not cached.*No space left") as caught:
        found = ws.encode(TEXTS, cache=tmp_path)
    assert len([w for w in caught if "No space" in str(w.message)]) == 1
    assert same(found, ws.encode(TEXTS, cache=False))


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A limit on the size of files makes the system refuse to write, as a full disk does."""
    code = (
        "import sys, resource, warnings, wordsway as ws; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "warnings.simplefilter('always'); print(len(ws.encode(['some text', 'more text'], cache=sys.argv[1])))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "2\n" and "not cached" in done.stderr, done
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]  # and no half of a file


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(ws.TextWarning, match="not cached"):
        ws.encode(TEXTS[:1], cache=tmp_path / "file")


@pytest.mark.slow
def test_two_writers_and_a_kill(tmp_path: Path) -> None:
    texts = [f"This is review number {k}, and it is long enough to take a while. " * 3 for k in range(300)]
    code = "import sys, wordsway as ws\ntexts = sys.stdin.read().split('|')\nprint('ready', flush=True)\n"
    code += "ws.encode(texts, layer=2, cache=sys.argv[1])"

    def start() -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert child.stdin
        child.stdin.write("|".join(texts))
        child.stdin.close()
        return child

    first, second = start(), start()
    deadline = time.time() + 60
    while len(files(tmp_path)) < 20 and time.time() < deadline:
        time.sleep(0.01)
    first.kill()
    assert first.wait() != 0 and len(files(tmp_path)) >= 20
    assert second.wait(timeout=120) == 0
    for child in (first, second):
        assert child.stdout
        child.stdout.close()
    assert len(files(tmp_path)) == 300
    kept = ws.encode(texts, layer=2, cache=tmp_path)
    fresh = ws.encode(texts, layer=2, cache=False)
    assert all(torch.allclose(a.X, b.X, atol=1e-3) for a, b in zip(kept, fresh, strict=True))


def test_the_oldest_go_when_there_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.encode(TEXTS[:1], cache=tmp_path)
    (old,) = files(tmp_path)
    os.utime(old, (1, 1))
    (old.parent / "half.safetensors.part").write_bytes(b"x")
    os.utime(old.parent / "half.safetensors.part", (1, 1))
    monkeypatch.setenv("WORDSWAY_CACHE_GB", str(1.5 * old.stat().st_size / 1e9))
    ws.encode(["The soup was cold"], cache=tmp_path)
    assert len(files(tmp_path)) == 1 and not old.exists()
    assert not list(tmp_path.rglob("*.part"))
    for wrong in ("much", "-1", "nan"):
        monkeypatch.setenv("WORDSWAY_CACHE_GB", wrong)
        with pytest.raises(ws.InputError, match="WORDSWAY_CACHE_GB"):
            ws.encode([f"Another {wrong} soup"], cache=tmp_path)


def test_progress_is_reported(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    ws.encode(TEXTS, cache=tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
