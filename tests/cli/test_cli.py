"""The command line as people use it: output, exit codes, and some processes of their own."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import wordsway as ws
from wordsway.cli.main import app
from wordsway.support.digits import signed

SMALL = ["--n", "8", "--d", "16"]


def run(*arguments: str) -> Result:
    """A command in this process, where everything is loaded already."""
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, as a user starts it."""
    command = [sys.executable, "-m", "wordsway", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "COLUMNS": "120"})


def test_measure_prints_bounds() -> None:
    done = process("measure", "--map", "raf", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "at least" in done.stdout and "at most" in done.stdout and "proven; " in done.stdout


@pytest.mark.parametrize("name", ["rf", "drf", "raf", "relu-raf"])
def test_measure_json_is_the_library(name: str, tmp_path: Path) -> None:
    done = run(
        "measure",
        "--map",
        name,
        *SMALL,
        "--token",
        "0,3",
        "--seed",
        "2",
        "--json",
        "--out",
        str(tmp_path / "r.json"),
    )
    assert done.exit_code == 0, done.stderr
    shown = json.loads(done.stdout)
    r = ws.word_sensitivity(ws.named_map(name, 8, 16, seed=2), ws.synthetic_tokens(8, 16, seed=2), [0, 3], seed=2)
    assert shown["lower"] == pytest.approx(r.lower, rel=1e-6)
    assert ws.load_result(tmp_path / "r.json").lower == shown["lower"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure", "--n", "0"], "n must be"),
        (["measure", "--d", "-3"], "d must be"),
        (["measure", *SMALL, "--token", "8"], "out of range"),
        (["measure", *SMALL, "--token", "x"], "whole numbers"),
        (["measure", *SMALL, "--radius", "-1"], "radius"),
        (["measure", *SMALL, "--map", "raf", "--depth", "3"], "depth"),
        (["measure", *SMALL, "--map", "rf", "--activation", "swish"], "swish"),
        (["measure", *SMALL, "--device", "abacus"], "abacus"),
        (["measure", *SMALL, "--out", "/nowhere/at/all.json"], "nowhere"),
        (["curve", "--n", "5,x"], "whole numbers"),
        (["curve", "--map", "rnn"], "rnn"),
        (["curve", "--n", "5,5"], "twice"),
        (["curve", "--n", "5", "--token", "7"], "token 7"),
        (["curve", "--depth", "3"], "drf"),
    ],
)
def test_errors_are_one_line(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("wordsway: no text: measuring")]
    assert len(lines) == 1 and lines[0].startswith("wordsway: ")


def test_debug_shows_the_traceback() -> None:
    assert "Traceback" not in process("measure", "--n", "0").stderr
    assert "Traceback" in process("measure", "--n", "0", "--debug").stderr


def test_unknown_map_lists_the_known() -> None:
    done = run("measure", "--map", "rnn")
    assert done.exit_code == 2
    assert "relu-raf" in done.stderr


CURVE = ["curve", "--map", "rf,raf", "--n", "4,8,16", "--d", "16", "--trials", "2"]


@pytest.mark.slow
def test_curve_writes_tables_and_pictures(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    done = process(*CURVE, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "S ~ n^" in done.stdout and "interval" in done.stdout
    names = {p.name for p in out.iterdir()}
    kinds = ("png", "pdf", "svg", "csv")
    assert names == {"run.sqlite", "run.lock", "cells.csv", "fits.json", *(f"curve.{kind}" for kind in kinds)}
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "curve.pdf").read_bytes().startswith(b"%PDF")
    with open(out / "cells.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * 2
    assert all(0 < float(row["lower"]) <= float(row["upper"]) for row in rows)


def test_grids_save_by_suffix_beside_a_folder(tmp_path: Path) -> None:
    """Files of the result and the folder of its run, in one command; then two runs side by side, saved as well."""
    names = [tmp_path / f"result.{suffix}" for suffix in ("json", "csv", "html", "svg")]
    files = [part for name in names for part in ("-o", str(name))]
    grids = {
        "curve": ["curve", "--map", "rf", "--n", "4,8", "--d", "8", "--trials", "2"],
        "generalize": ["generalize", "--map", "rf", "--n", "4", "--d", "8", "--train-size", "5", "--trials", "2"],
    }
    for kind, grid in grids.items():
        folder = tmp_path / kind
        done = CliRunner().invoke(app, [*grid, "--engine", "inline", *files, "--out", str(folder)])
        assert done.exit_code == 0, done.output
        assert f"wrote {names[0]}, {names[1]}" in done.stdout.replace("\n", "")
        result = ws.load_result(names[0])
        assert type(result) is {"curve": ws.Curve, "generalize": ws.Flips}[kind]
        assert result.made["command"].startswith("wordsway") and (folder / "run.sqlite").is_file()
        with open(names[1], newline="") as file:
            assert len(list(csv.DictReader(file))) == len(result.records())
        for name in names:
            name.unlink()
    other = [*grids["curve"], "--engine", "inline", "--seed", "1", "-o", str(tmp_path / "other")]
    assert CliRunner().invoke(app, other).exit_code == 0
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "curve"), str(tmp_path / "other"), *files])
    assert done.exit_code == 0, done.output
    found = ws.load_result(names[0])
    assert [row["n"] for row in found.records()] == [4, 8] and all(name.stat().st_size for name in names)
    shown = [row["difference"] for row in found.records()]
    assert all(signed(value) in done.stdout for value in shown)


@pytest.mark.slow
def test_a_folder_may_get_another_curve(tmp_path: Path) -> None:
    """More trials, other lengths: what is there already is used, and the tables are of the last one asked for."""
    small = ["curve", "--map", "raf", "--d", "16", "--trials", "2", "--engine", "inline", "--out", str(tmp_path)]
    runner = CliRunner()
    first = runner.invoke(app, [*small, "--n", "4,8", "--json"])
    assert first.exit_code == 0, first.output
    second = runner.invoke(app, [*small, "--n", "8,12", "--json"])
    known = {(c["n"], c["trial"]): c["seconds"] for c in json.loads(first.stdout)["cells"]}
    cells = json.loads(second.stdout)["cells"]
    assert {c["n"] for c in cells} == {8, 12}
    assert all(c["seconds"] == known[c["n"], c["trial"]] for c in cells if c["n"] == 8)  # not measured again
    assert "4 of 4 cells done" in runner.invoke(app, ["status", str(tmp_path)]).stdout


def test_nothing_heavy_is_loaded_for_help() -> None:
    script = (
        "import sys, wordsway\n"
        "import wordsway.cli.main\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(wordsway.cli.main.app, ['--help']).exit_code == 0\n"
        "heavy = {'torch', 'numpy', 'scipy', 'matplotlib', 'transformers'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert process("--version").stdout.strip() == f"wordsway {ws.__version__}"


def test_every_public_name_is_there() -> None:
    for name in ws.__all__:
        assert getattr(ws, name) is not None
    assert dir(ws) == sorted(ws.__all__)
    with pytest.raises(AttributeError, match="No wordsway attribute nothing"):
        _ = ws.nothing  # pyright: ignore[reportAttributeAccessIssue]


def test_a_curve_says_which_n_is_too_large_and_leaves_its_folder_free(tmp_path: Path) -> None:
    arguments = [
        "curve",
        "--engine",
        "inline",
        "--data",
        "sample",
        "--map",
        "raf",
        "--d",
        "16",
        "--trials",
        "2",
        "--out",
        str(tmp_path / "c"),
    ]
    runner = CliRunner()
    failed = runner.invoke(app, [*arguments, "--n", "10,500"])
    assert failed.exit_code == 2 and "0 texts of at least n=500 tokens" in failed.stderr
    done = runner.invoke(app, [*arguments, "--n", "10,20"])
    assert done.exit_code == 0, done.output
