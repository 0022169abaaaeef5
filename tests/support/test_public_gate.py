"""The gate of public calls, and files that are written where a path points."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from wordsway.support.errors import shortened
from wordsway.support.files import read_stdin, write_bytes
from wordsway.support.public_gate import public, read_whole

X = torch.ones(3, 4)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("word_sensitivity", ["raf", "a b c"], {"radius": 10**400}, "radius"),
        ("word_sensitivity", [None, "a b c"], {}, "must be"),
        ("named_map", [None, 3, 4], {}, "must be a str"),
        ("named_map", ["raf", 10**30, 4], {}, "bits"),
        ("named_map", ["raf", 3, 4], {"seed": 2**63}, "bits"),
        ("normalize_rows", [X.to_sparse()], {}, "to_dense"),
        ("normalize_rows", [torch.ones(3, 4, device="meta")], {}, "no values"),
        ("normalize_rows", [torch.ones(1).expand(10**6, 10**6)], {}, "memory"),
        ("substitution", ["raf", object(), "I love her face"], {}, "array of numbers"),
        ("Study", ["mine", {"map": [["raf"]], "n": [4], "d": 8}], {}, "map must be a string"),
        ("Study", ["mine", {"map": "raf", "n": [4], "d": 8, "trials": 10**6}], {}, "are the most"),
        ("load_result", [None], {}, "must be"),
        ("load_result", ["a\0b.json"], {}, "NUL"),
        ("load_result", ["a" * 5000], {}, "long"),
        ("load_study", ["\0"], {}, "NUL"),
        ("encode", [None], {}, "must be"),
        ("compare_results", [range(10**30)], {}, "10,000,000 numbers"),
        ("compare_draws", ["a b"], {"weights": 10**9}, "10,000 draws"),
        ("layer_profile", ["minilm", "a b c"], {"word": 1, "noise_draws": 10**9}, "memory"),
    ],
)
def test_odd_arguments(name: str, arguments: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises((ws.InputError, OSError), match=message) as caught:
        getattr(ws, name)(*arguments, **options)
    assert type(caught.value).__module__.startswith("wordsway")


def test_lists_and_further_arguments() -> None:
    @public
    def called(names: "list[str] | None" = None, *rest: int, **options: float) -> int:
        return len(rest) + len(options)

    assert called(["a"], 1, 2, x=0.5) == 3 and called(None) == 0
    wrong: Any
    for wrong in ([torch.tensor(1.0)], [range(4)], [["a", 3]], [None, 1, "b"], [["a"], 2**70]):
        with pytest.raises(ws.InputError):
            called(*wrong)
    with pytest.raises(ws.InputError, match="options must be a number, got 'b'"):
        called(x="b")  # pyright: ignore[reportArgumentType]


def test_digits_that_no_number_has() -> None:
    assert read_whole("17", "n") == 17
    with pytest.raises(ws.InputError, match="n has a whole number of 5,000 digits"):
        read_whole("9" * 5000, "n")
    with pytest.raises(ws.InputError, match="bits"):
        read_whole("9" * 19, "n")


def test_what_was_given_is_shown_in_short() -> None:
    error = ws.InputError(f"--token takes whole numbers, got '{'9' * 5000}'; give some")
    assert len(str(error)) < 130 and str(error).endswith("9'; give some")
    assert shortened("a" * 300) == "a" * 300 and len(shortened("a b " * 10_000)) < 2010


def test_a_result_is_saved_behind_the_gate() -> None:
    result = ws.word_sensitivity("raf", "a b", budget="quick", certificate=False, random_draws=0)
    with pytest.raises(ws.InputError, match="NUL"):
        result.save("a\0b.json")


def test_standard_input_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/zero", "rb") as endless:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": endless}))
        monkeypatch.setattr("wordsway.support.files._MOST_OF_STDIN", 1000)
        with pytest.raises(ws.InputError, match="more than 1,000 bytes"):
            read_stdin()


def test_a_link_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    write_bytes(link, b"new")
    assert link.is_symlink() and target.read_text() == "new" and sorted(p.name for p in tmp_path.iterdir()) == [
        "link.json", "target.json"]  # fmt: skip
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="itself"):
        write_bytes(tmp_path / "loop", b"x")
    (tmp_path / "null").symlink_to("/dev/null")
    write_bytes(tmp_path / "null", b"x")
    assert (tmp_path / "null").is_symlink() and Path("/dev/null").is_char_device()


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="Nothing reads"):
        write_bytes(pipe, b"x")
    found: list[bytes] = []
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    thread = threading.Thread(target=write_bytes, args=[pipe, b"through"])
    thread.start()
    thread.join(10)
    found.append(os.read(reader, 100))
    os.close(reader)
    assert found == [b"through"] and pipe.is_fifo()
