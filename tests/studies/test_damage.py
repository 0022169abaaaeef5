"""Damaged and half-born runs: nothing is shown that was not measured, and `resume` measures again what is lost."""

import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app
from wordsway.studies.run.damage import read_content
from wordsway.studies.run.run_file import WITHOUT_CHECKSUMS, DamageError
from wordsway.studies.run.store import Store, load_arrays
from wordsway.studies.run.tables import read_table
from wordsway.support.errors import DamageWarning

STUDY = {"map": ["rf", "raf"], "n": [4, 8], "d": 16, "trials": 2, "certificate": False, "keep_delta": True}


def tiny() -> ws.Study:
    return ws.Study("tiny", STUDY)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A run that nothing happened to, and its table."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, ws.run(tiny(), folder, "inline").numbers()


@pytest.fixture
def run(whole: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(whole[0], tmp_path / "run")


def command(*arguments: str) -> Any:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def change(run: Path, sql: str) -> None:
    with closing(sqlite3.connect(run / "run.sqlite")) as db, db:
        db.execute("DROP TRIGGER no_change")
        db.execute(sql)


def without_checksums(run: Path) -> None:
    """Make it a run of the format before."""
    with closing(sqlite3.connect(run / "run.sqlite")) as db, db:
        for table in ("facts", "plans", "results"):
            db.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        db.execute("UPDATE facts SET value = ? WHERE name = 'format'", (WITHOUT_CHECKSUMS,))


def test_an_empty_run_is_not_a_finished_one(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("an earlier report")
    (tmp_path / "run.sqlite").touch()
    for name in ("resume", "status", "export", "verify"):
        done = command(name, str(tmp_path))
        assert done.exit_code == 2 and "begin again: give the command" in done.stderr, name
    assert command("report", str(tmp_path), "-o", str(tmp_path / "report.html")).exit_code == 2
    assert (tmp_path / "report.html").read_text() == "an earlier report"
    assert len(ws.run(tiny(), tmp_path, "inline")) == 8  # the command again begins it


@pytest.mark.parametrize("words", ["CREATE TABLE facts", "CREATE TABLE results", "INSERT INTO plans"])
def test_the_plan_is_stored_whole_or_not_at_all(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first transaction is cut off at some statement: the file is then as if nothing had been written."""

    class Stopped(sqlite3.Connection):
        def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
            if words in sql:
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *more)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, **o, factory=Stopped))
    with pytest.raises(OSError, match="give the same command again"):
        ws.run(tiny(), tmp_path, "inline")
    monkeypatch.undo()
    with pytest.raises(ws.InputError, match="begin again"), Store.open(tmp_path, create=False):
        pass
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


@pytest.mark.slow
def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    """The advice after it leads to the whole table."""
    file, out = tmp_path / "tiny.toml", tmp_path / "run"
    file.write_text('[[panel]]\nmap = "rf"\nn = [4, 8]\nd = 16\n')
    words = [sys.executable, "-m", "wordsway", "run", str(file), "--engine", "inline", "--out", str(out)]
    small: dict[str, Any] = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))}
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **small)
    assert done.returncode == 2 and "give the same command again" in done.stderr and "Traceback" not in done.stderr
    assert command(*words[3:]).exit_code == 0
    assert len(ws.run(ws.load_study(file), out, "inline")) == 2


def test_flipped_bits(run: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    """Whatever bit flips: the table is as it was, or it is refused; measured again, it is as it was."""
    content, chance = (run / "run.sqlite").read_bytes(), random.Random(0)
    refused = 0
    for _ in range(40):
        shutil.rmtree(run)
        shutil.copytree(whole[0], run)
        flipped = bytearray(content)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        (run / "run.sqlite").write_bytes(bytes(flipped))
        try:
            with Store.read(run) as store:
                assert read_table(store).numbers() == whole[1]
        except ws.InputError as error:
            assert "resume" in str(error) or "give the command" in str(error)
            assert command("verify", str(run)).exit_code in (1, 2)
            refused += 1
    assert refused > 5


def test_a_changed_number(run: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    change(run, "UPDATE results SET rows = replace(rows, '0.', '1.') WHERE id = 3")
    done = command("export", str(run))
    assert done.exit_code == 2 and "1 row is damaged" in done.stderr and f"wordsway resume {run}" in done.stderr
    assert command("report", str(run), "-o", str(run / "page.html")).exit_code == 2
    done = command("export", str(run), "--json", "--skip-damaged")
    assert done.exit_code == 0 and len(json.loads(done.stdout)) == 7 and "1 cells are not measured" in done.stderr
    done = command("verify", str(run), "--json")
    assert done.exit_code == 1 and json.loads(done.stdout)["damaged_rows"] == 1
    assert "damaged: 1 row is damaged" in command("status", str(run)).stdout
    done = command("resume", str(run), "--engine", "inline")
    assert done.exit_code == 0 and "7 results are whole and kept" in done.stderr
    with Store.read(run) as store:
        assert read_table(store).numbers() == whole[1]
    assert command("verify", str(run)).exit_code == 0 and (run / "run.damaged-1.sqlite").is_file()


def test_a_page_of_rubbish(run: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    content = (run / "run.sqlite").read_bytes()
    with closing(sqlite3.connect(run / "run.sqlite")) as db:
        (leaf,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'results'").fetchone()
    place = (leaf - 1) * 4096
    (run / "run.sqlite").write_bytes(content[:place] + random.Random(1).randbytes(4096) + content[place + 4096 :])
    done = command("export", str(run))
    assert done.exit_code == 2 and "damaged" in done.stderr
    with pytest.warns(DamageWarning, match="measured again"):
        assert ws.run(tiny(), run, "inline").numbers() == whole[1]


def test_a_damaged_plan(run: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    change(run, "UPDATE plans SET plan = replace(plan, '16', '17')")
    for name in ("resume", "export", "status"):
        done = command(name, str(run))
        assert done.exit_code == 2 and "plan" in done.stderr and "give the command" in done.stderr, name
    assert command("verify", str(run)).exit_code == 1
    with Store.read(run) as store:
        started = {values[0]: values[14] for values in store.content().results.values()}
    with pytest.warns(DamageWarning, match="8 results are whole"):
        found = ws.run(tiny(), run, "inline")
    assert found.numbers() == whole[1] and all(started[row["key"]] == row["started"] for row in found.rows)


def test_damaged_arrays(run: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    file = min((run / "arrays").iterdir())
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(DamageError, match="resume"):
        load_arrays(run, f"arrays/{file.name}")
    assert json.loads(command("verify", str(run), "--json").stdout)["damaged_arrays"] == 1
    with pytest.warns(DamageWarning, match="7 results are whole"):
        found = ws.run(tiny(), run, "inline")
    assert found.numbers() == whole[1] and command("verify", str(run)).exit_code == 0
    assert load_arrays(run, f"arrays/{file.name}")["delta"].shape == (16,)


def test_a_run_without_checksums(run: Path, whole: tuple[Path, list[dict[str, Any]]]) -> None:
    """The format before is read and gone on with; what it holds is not called checked."""
    without_checksums(run)
    with Store.read(run) as store:
        assert read_table(store).numbers() == whole[1]
    assert "9 of these rows carry no checksum" in command("verify", str(run)).stdout
    more = ws.run(ws.Study("tiny", {**STUDY, "trials": 3}), run, "inline")
    assert len(more) == 12
    shown = json.loads(command("verify", str(run), "--json").stdout)
    assert shown["whole"] and shown["without_checksum"] == 9 and shown["results"] == 12
    change(run, "UPDATE results SET checksum = NULL WHERE id = 12")  # one that had a checksum cannot lose it unseen
    assert json.loads(command("verify", str(run), "--json").stdout)["damaged_rows"] == 1


@pytest.mark.parametrize("column", ["recipe", "rows", "versions", "key", "status", "seconds"])
@pytest.mark.parametrize("value", ["'{'", "'[1]'", "'null'", "''"])
def test_rows_without_checksums_that_make_no_sense(column: str, value: str, run: Path) -> None:
    without_checksums(run)
    change(run, f"UPDATE results SET {column} = {value} WHERE id = 3")
    done = command("export", str(run))
    assert done.exit_code == 2 and "1 row is damaged" in done.stderr
    assert command("status", str(run)).exit_code == 0


@pytest.mark.parametrize("tables", [("notes",), ("facts",), ("facts", "plans", "other")])
def test_a_file_of_another_program(tables: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    with closing(sqlite3.connect(file)) as db, db:
        for table in tables:
            db.execute(f"CREATE TABLE {table} (a, b)")
    before = file.read_bytes()
    for name in ("resume", "status", "export", "verify"):
        done = command(name, str(tmp_path))
        assert done.exit_code == 2 and "SQLite file of another program" in done.stderr and "space" not in done.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("ALTER TABLE plans RENAME TO plbns", "its table plans is missing"),
        ("DROP TABLE facts", "its table facts is missing"),
        ("UPDATE facts SET value = 'wordswby.run/2' WHERE name = 'format'", "its format is 'wordswby"),
    ],
)
def test_a_table_whose_name_is_damaged(statement: str, said: str, run: Path) -> None:
    """It is not called a file of another program, and how to begin again is said."""
    with closing(sqlite3.connect(run / "run.sqlite")) as db, db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute(statement)
    for name in ("resume", "export"):
        done = command(name, str(run))
        assert done.exit_code == 2 and said in done.stderr and "move this file away" in done.stderr.replace("\n", " ")


def test_what_is_read_of_a_torn_table(run: Path) -> None:
    """One page costs its own rows only: the others are reached from both ends."""
    many = ws.Study("tiny", {**STUDY, "trials": 12, "map": "rf", "n": [2, 3, 4]})
    ws.run(many, run, "inline")
    with closing(sqlite3.connect(run / "run.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = [row[0] for row in db.execute("SELECT pageno FROM dbstat WHERE name = 'results' AND pagetype = 'leaf'")]
        total = db.execute("SELECT count(*) FROM results").fetchone()[0]
    content = (run / "run.sqlite").read_bytes()
    place = (pages[len(pages) // 2] - 1) * 4096
    (run / "run.sqlite").write_bytes(content[:place] + bytes(4096) + content[place + 4096 :])
    with closing(sqlite3.connect(run / "run.sqlite")) as db:
        found = read_content(db)
    assert found.problems and total - 8 <= len(found.results) < total
