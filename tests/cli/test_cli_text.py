"""`wordsway measure TEXT` as people use it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app


def process(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A process of its own, as a user starts it."""
    command = [sys.executable, "-m", "wordsway", "measure", *arguments]
    return subprocess.run(command, capture_output=True, timeout=300, env={**os.environ, **environment})


def run(*arguments: str, stdin: bytes | None = None, **environment: str) -> Any:
    """The same in this process, where the encoder is loaded already."""
    env = {"COLUMNS": "100", **environment}
    return CliRunner().invoke(app, ["measure", *arguments], input=stdin, env=env)


LITTLE = ("--weights", "2", "--budget", "quick", "--draws", "0")  # where only what is shown of a text matters


def notes(stderr: str) -> list[str]:
    """What is said on stderr beside progress, which depends on how busy the machine is."""
    progress = re.compile(r"wordsway: (about .+ in all|map \d+ of \d+, |.+ s so far$)")
    return [line for line in stderr.splitlines() if not progress.match(line)]


def fails(message: str, *arguments: str, stdin: bytes | None = None, **environment: str) -> None:
    done = run(*arguments, stdin=stdin, **environment)
    lines = done.stderr.splitlines()
    assert done.exit_code == 2 and len(lines) == 1, done.output
    assert lines[0].startswith("wordsway: ") and message in lines[0], lines
    assert not done.stdout


@pytest.mark.slow
def test_a_sentence() -> None:
    done = process("I love her smile", HF_HUB_OFFLINE="1", COLUMNS="100")
    shown = done.stdout.decode()
    assert done.returncode == 0 and not notes(done.stderr.decode()), done.stderr
    assert "I love her smile" in shown and "encoder minilm layer 0" in shown
    assert "matters most" not in shown and "raf: no two words are separated (means must differ by more than" in shown
    assert "One word can move raf 5.2 times as far as rf." in shown and "not the word's importance" in shown
    r = ws.compare_draws("I love her smile")
    for each in r.maps:
        assert each.typical and f"{each.typical:.3g}" in shown
        for word in each.words:
            assert f"{word.mean:#.3g}" in shown and f"{word.sd:#.3g}" in shown


def test_a_single_map() -> None:
    shown = run("I love her smile", "--weights", "1").stdout
    r = ws.word_sensitivity(ws.named_map("raf", 6, 384), ws.encode("I love her smile"))
    for word in r.words or ():
        assert f"{word.lower:#.3g}" in shown and f"{word.upper:#.3g}" in shown
    assert "4 words tie (smile, love, I, her): their bounds overlap" in shown
    fails("leave it out with --model", "a", "--model", "minilm", "--weights", "2")
    fails("--token asks about one map: use --weights 1", "a b", "--token", "0", "--weights", "3")
    fails("it needs a text: use --weights 1", "--n", "5", "--d", "8", "--weights", "3")


def test_colours_on_a_terminal() -> None:
    dark, pale = "48;2;8;69;148m", "48;2;247;251;255m"
    colours: Any = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "COLUMNS": "200"}
    common = ("I love her smile", "--weights", "1", "--budget", "quick", "--draws", "0")

    def words(*more: str) -> str:
        return run(*common, *more, **colours).stdout.split("\n\n")[1].splitlines()[0]

    assert words().count(dark) == 4 and pale not in words()  # from 0, and words that tie share a shade
    stretched = words("--stretch")
    assert stretched.count(dark) == 1 and stretched.count(pale) == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", ["text", "file", "stdin"])
def test_json_from_every_source_is_the_library(tmp_path: Path, how: str) -> None:
    text = "The café was fine.\nWe stayed."
    (tmp_path / "review.txt").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\n")
    arguments = {"text": [text], "file": ["--file", str(tmp_path / "review.txt")], "stdin": ["-"]}[how]
    done = run(
        *arguments, "--json", "--seed", "3", "--weights", "1", "--out", str(tmp_path / "r.json"), stdin=text.encode()
    )
    assert done.exit_code == 0, done.stderr
    shown = json.loads(done.stdout)
    tokens = ws.encode(text)
    r = ws.word_sensitivity(ws.named_map("raf", len(tokens), 384, seed=3), tokens, seed=3)
    assert [word["text"] for word in shown["words"]] == list(tokens.words)
    assert shown["lower"] == pytest.approx(r.lower, rel=1e-6) and shown["text"]["text"] == text
    assert ws.load_result(tmp_path / "r.json").lower == shown["lower"]


def test_against(tmp_path: Path) -> None:
    done = run("I love her much", "--against", "I love her smile", "--out", str(tmp_path / "s.json"))
    shown = done.stdout
    assert "much -> smile" in shown and "random words there" in shown and "share of the worst case" in shown
    saved = json.loads((tmp_path / "s.json").read_text())
    assert f"{saved['change']:#.3g}" in shown and f"{saved['random']['mean']:#.3g}" in shown
    assert saved["random"]["draws"] == 100
    again = json.loads(run("I love her much", "--against", "I love her smile", "--json").stdout)
    assert again["change"] == pytest.approx(saved["change"]) and again["share"] == pytest.approx(saved["share"])


@pytest.mark.slow
def test_options() -> None:
    def measured(*arguments: str) -> dict[str, Any]:
        done = run("She sings uncharacteristically loud", "--json", "--draws", "0", "--weights", "1", *arguments)
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    one = measured("--word", "Sings")
    assert [word["text"] for word in one["words"]] == ["sings"]
    for number in ("3", "#3"):
        assert [word["text"] for word in measured("--word", number)["words"]] == ["uncharacteristically"]
    joint = measured("--word", "3", "--joint", "--map", "relu-raf")
    assert joint["words"][0]["tokens"] == [3, 4, 5, 6, 7, 8]
    raw = measured("--raw", "--radius", "0.5", "--word", "sings")
    norm = float(ws.encode("She sings uncharacteristically loud", normalize=False).X[2].norm())
    assert raw["radius"] == pytest.approx(norm / 2) and raw["text"]["normalized"] is False
    small = measured("--n", "4", "--d", "100", "--layer", "2", "--map", "rf", "--special")
    assert (small["n"], small["d"], small["text"]["layer"]) == (4, 100, 2) and len(small["per_token"]) == 4
    gaussian = measured("--encoder", "correlated", "--correlation", "0.9", "--d", "64")
    assert (gaussian["n"], gaussian["d"], gaussian["text"]["correlation"]) == (4, 64, 0.9)


@pytest.mark.slow
def test_notes_are_one_line_on_stderr() -> None:
    done = run("word " * 600, "--max-tokens", "20", "--json", "--draws", "0", "--budget", "quick")
    assert done.exit_code == 0 and json.loads(done.stdout)["n"] == 20
    assert notes(done.stderr) == [
        "wordsway: note: kept only 20 of the text's 602 tokens, as asked for; the rest is ignored"
    ]
    assert "does not know '😀'" in run("good 😀 day", *LITTLE).stderr


def test_a_text_cannot_steer_the_terminal() -> None:
    done = run("[bold red]x[/] \x1b[31mred\x07 \u202eright to left", "--map", "rf", *LITTLE, FORCE_COLOR="1")
    shown = done.stdout
    assert done.exit_code == 0, done.stderr
    assert "\x1b[31m" not in shown and "\x07" not in shown and "\u202e" not in shown
    assert "\\x1b" in shown and "\\u202e" in shown


def test_special_tokens_are_shown_when_asked_for() -> None:
    shown = run("hi there", "--special", "--draws", "0", "--budget", "quick").stdout
    assert "[CLS]" in shown and "[SEP]" in shown and "token 3" in shown
    assert "[CLS]" not in run("hi there", "--draws", "0", "--budget", "quick").stdout


def test_what_is_cropped_is_not_shown_as_measured() -> None:
    shown = run("one two three four", "--n", "3", *LITTLE).stdout
    assert "one two [... 11 more characters, not measured]" in shown and "four" not in shown


def test_words_that_are_numbers() -> None:
    text = "in 2 or 3 days"
    chosen = [
        json.loads(run(text, "--word", w, "--json", "--draws", "0", "--weights", "1").stdout)["words"]
        for w in ("3", "#3")
    ]
    assert [words[0]["text"] for words in chosen] == ["3", "or"]


def test_a_long_review_shows_its_first_words() -> None:
    text = " ".join(f"word{k}" for k in range(40))
    shown = run(text, *LITTLE, "--no-certificate").stdout
    assert "... and 20 more words" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "the text is empty"),
        (["\x01\x02"], "has no words"),
        (["word " * 600], "--max-tokens 512"),
        (["a text", "--layer", "9"], "hidden states 0 to 6"),
        (["a text", "--encoder", "./nowhere"], "no model folder"),
        (["a text", "--encoder", "no-such-model"], "hub cannot be reached"),
        (["a text", "--file", "x"], "not both"),
        (["--file", "/no/such/file"], "No such file"),
        (["a text", "--word", "none"], "not in the text"),
        (
            ["a text", "--out", "/no/such/folder/x.json"],
            "There is no such folder; make it first (mkdir -p): '/no/such/folder'",
        ),
        (["a text", "--out", "/"], "This is a folder"),
        (["a text", "--encoder", ""], "no model folder"),
        (["a text", "--n", "1"], "--special"),
        (["a text", "--word", "a", "--token", "1"], "not both"),
        (["a text", "--radius", "0"], "positive"),
        (["a text", "--n", "50"], "more than the 4 tokens"),
        (["a text", "--d", "500"], "384 coordinates"),
        (["a text", "--correlation", "0.5"], "--encoder correlated"),
        (["a text", "--encoder", "correlated", "--correlation", "1"], "below 1"),
        (["a text", "--against", "another text here"], "as many pieces"),
        (["a text", "--against", "a book", "--joint"], "leave out"),
        (["--against", "a book"], "needs a text"),
        (["--raw"], "needs a text"),
        (["--encoder", "minilm"], "needs a text"),
    ],
)
def test_one_clear_line(arguments: list[str], message: str) -> None:
    fails(message, *arguments, HF_HUB_OFFLINE="1")


def test_broken_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    fails("not UTF-8 text: byte 0xe9 at position 3", "--file", str(tmp_path / "a.txt"))
    fails("stdin is not UTF-8", "-", stdin=b"\xff\xfe")
    done = process("--debug", "--file", str(tmp_path / "a.txt"))
    assert b"Traceback" in done.stderr
    done = process(b"caf\xe9")
    assert done.returncode == 2 and b"surrogate" in done.stderr
