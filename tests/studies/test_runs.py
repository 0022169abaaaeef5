"""Runs: the same rows under every engine, nothing lost by kills, full disks and failures, one driver at a time."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, process
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app
from wordsway.studies.cells.base import Outcome
from wordsway.studies.cells.sensitivity_cell import SensitivityCell
from wordsway.studies.reproduce import known_studies
from wordsway.studies.run.engines import Engine, Processes
from wordsway.studies.run.runner import Plan, Silent, make_plan
from wordsway.studies.run.store import Store, load_arrays
from wordsway.studies.run.tables import read_table
from wordsway.studies.run.worker import Report
from wordsway.studies.study import Job
from wordsway.support.names import studies as built_in

TINY = {"map": ["rf", "raf"], "n": [4, 8], "d": 16, "trials": 2, "certificate": False}
# Cells that take about a third of a second each: long enough to be killed in the middle of one.
LONG = '[[panel]]\nmap = "drf"\ndepth = 6\nn = [20, 30]\nd = 192\ntrials = 6\n'


def tiny(**more: Any) -> ws.Study:
    return ws.Study("tiny", {**TINY, **more})


def wordsway(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wordsway", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def resume(folder: Path, engine: str) -> None:
    """Go on with a run, in this process."""
    done = CliRunner().invoke(app, ["resume", str(folder), "--engine", engine])
    assert done.exit_code == 0, done.output


def table_of(folder: Path) -> list[dict[str, Any]]:
    with Store.read(folder) as store:
        found = read_table(store)
    assert not found.failed and not found.missing
    return found.numbers()


def wait_for_rows(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with Store.read(folder) as store:
                if len(store.results()) >= count:
                    return
        except (ws.InputError, sqlite3.Error, OSError):
            pass
        time.sleep(0.01)
    raise AssertionError("no rows came")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A study file, and the table of a run of it that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    file = folder / "long.toml"
    file.write_text(LONG)
    return file, ws.run(ws.load_study(file), engine="inline").numbers()


@pytest.mark.slow
def test_every_engine_gives_the_same_rows() -> None:
    study = ws.Study("mine", {**TINY, "map": ["rf", "drf", "raf", "relu-raf"]})
    inline = ws.run(study, engine="inline").numbers()
    assert len(inline) == 16
    assert ws.run(study, engine="processes", workers=2).numbers() == inline
    assert ws.run(study, engine="dask", workers=2).numbers() == inline


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_machines_threads_change_nothing(
    threads: str, undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    """A cell runs on one thread whatever the machine offers, so that the tables are equal bit for bit (the tolerance
    that is stated for other processors is 1e-3)."""
    file, expected = undisturbed
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    out = tmp_path / "run"
    code, _, err = finish(wordsway("run", str(file), "--engine", "inline", "--out", str(out), env=environment))
    assert code == 0, err
    assert table_of(out) == expected


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_a_killed_driver(engine: str, undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    """kill -9 of the driver: its workers go too, what was measured is there, and `resume` makes the table whole."""
    file, expected = undisturbed
    out = tmp_path / "run"
    process = wordsway("run", str(file), "--engine", engine, "--out", str(out))
    wait_for_rows(out, 3)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
    with Store.read(out) as store:
        kept = {key: result.provenance["started"] for key, result in store.results().items()}
    assert 3 <= len(kept) < len(expected)
    resume(out, engine)
    assert table_of(out) == expected
    with Store.read(out) as store:  # nothing was measured twice
        assert kept.items() <= {key: result.provenance["started"] for key, result in store.results().items()}.items()


class Disturber(Silent):
    """Does something when some cells are done."""

    def __init__(self, after: int, act: Callable[[], None]) -> None:
        self.after, self.act, self.done = after, act, 0

    def finished(self, job: Job, report: Report) -> None:
        self.done += 1
        if self.done == self.after:
            self.act()


@pytest.mark.slow
def test_a_killed_process(undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    """kill -9 of a worker: the run goes on, and its table is that of an undisturbed one."""
    file, expected = undisturbed

    def kill() -> None:
        busy = [p for p in psutil.Process().children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]
        assert len(busy) == 2
        busy[0].kill()

    watcher = Disturber(2, kill)
    found = ws.run(ws.load_study(file), tmp_path, "processes", workers=2, watcher=watcher)
    assert watcher.done == len(expected) and found.numbers() == expected and not found.failed


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the cluster's own clean-up
def test_a_killed_dask_worker(undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    import distributed

    kit: Any = distributed
    file, expected = undisturbed
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with kit.LocalCluster(n_workers=2, **options) as cluster, kit.Client(cluster, set_as_default=False) as client:
        first = next(iter(client.run(os.getpid).values()))
        watcher = Disturber(2, lambda: os.kill(first, signal.SIGKILL))
        address = cluster.scheduler_address
        found = ws.run(ws.load_study(file), tmp_path, "dask", scheduler=address, watcher=watcher)
        assert first not in client.run(os.getpid).values()
    assert found.numbers() == expected and not found.failed


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c(stop: signal.Signals, undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    file, expected = undisturbed
    out = tmp_path / "run"
    # A shell's background job ignores Ctrl-C, and its children do too; this one must not.
    hears = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    process = wordsway("run", str(file), "--out", str(out), **hears)
    wait_for_rows(out, 2)
    process.send_signal(stop)
    code, _, err = finish(process)
    assert code == 130 and "stopped" in err and f"wordsway resume {out}" in err
    assert "Traceback" not in err and "leaked" not in err, err  # the pool was closed in order
    state = json.loads(CliRunner().invoke(app, ["status", str(out), "--json"]).stdout)
    assert state["running"] is False and 2 <= state["studies"]["long"]["done"] < len(expected)
    if stop == signal.SIGINT:  # once is enough: it takes some seconds
        resume(out, "inline")
        assert table_of(out) == expected


@pytest.mark.slow
def test_ctrl_c_while_workers_start(undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to the workers too; they leave it to the driver from the start."""
    hears = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), "start_new_session": True}
    process = wordsway("run", str(undisturbed[0]), "--workers", "2", "--out", str(tmp_path / "run"), **hears)
    children = psutil.Process(process.pid).children
    while not any("spawn_main" in " ".join(child.cmdline()) for child in children()) and process.poll() is None:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130 and "wordsway: stopped" in err and "Traceback" not in err and "leaked" not in err, err


@pytest.mark.slow
def test_a_worker_that_is_killed_before_the_others_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spawn, killed = getattr(ProcessPoolExecutor, "_spawn_process"), list[int]()  # noqa: B009

    def spawn_one(pool: Any) -> None:
        spawn(pool)
        if not killed:
            killed.extend(pool._processes)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(ProcessPoolExecutor, "_spawn_process", spawn_one)
    assert len(ws.run(tiny(map="rf", n=4), tmp_path, "processes", workers=2)) == 2 and killed


def test_ctrl_c_amid_the_start_of_a_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until the pool is whole, which can then be closed; no worker stays."""
    start = process._ExecutorManagerThread.start

    def interrupted(thread: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        start(thread)

    monkeypatch.setattr(process._ExecutorManagerThread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ws.run(tiny(), tmp_path, "processes", workers=2)
    assert not any("spawn_main" in " ".join(child.cmdline()) for child in psutil.Process().children())


@pytest.mark.slow
def test_a_script_without_a_main_block(tmp_path: Path) -> None:
    """Its workers end by themselves: that is said, and they are not called killed."""
    script = tmp_path / "script.py"
    script.write_text(
        "import wordsway as ws\n"
        "ws.run(ws.Study('mine', {'map': 'rf', 'n': 4, 'd': 8}), engine='processes', workers=2)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert "worker processes cannot start; in a script of your own, call run below" in done.stderr


@pytest.mark.slow
def test_a_full_disk(undisturbed: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> None:
    """No file may grow beyond 60 kB: the run stops with a clear word, and goes on when there is room."""
    file, expected = undisturbed
    out = tmp_path / "run"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    code, _, err = finish(wordsway("run", str(file), "--engine", "inline", "--out", str(out), preexec_fn=limit))
    assert code == 2 and "cannot write to" in err and f"wordsway resume {out}" in err and err.count("Traceback") == 0
    with Store.read(out) as store:
        assert len(store.results()) < len(expected)
    resume(out, "inline")
    assert table_of(out) == expected


def test_two_drivers(tmp_path: Path) -> None:
    ws.run(tiny(), tmp_path, "inline")
    with Store.open(tmp_path):
        with pytest.raises(ws.InputError, match="another run is at work"):
            ws.run(tiny(), tmp_path, "inline")
        done = CliRunner().invoke(app, ["resume", str(tmp_path)])
        assert done.exit_code == 2 and "another run is at work" in done.stderr
        state = json.loads(CliRunner().invoke(app, ["status", str(tmp_path), "--json"]).stdout)
        assert state["running"] is True  # one may look all the same
    assert not ws.run(tiny(), tmp_path, "inline").missing


def test_a_cell_that_fails_is_kept_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = SensitivityCell.measure

    def broken(cell: SensitivityCell) -> Outcome:
        if cell.n == 8 and cell.map == "raf":
            raise ValueError("a\nbroken cell")
        return measure(cell)

    monkeypatch.setattr(SensitivityCell, "measure", broken)
    file = tmp_path / "tiny.toml"
    file.write_text('[[panel]]\nmap = ["rf", "raf"]\nn = [4, 8]\nd = 16\ntrials = 2\ncertificate = false\n')
    out = str(tmp_path / "run")
    runner = CliRunner()
    done = runner.invoke(app, ["run", str(file), "--engine", "inline", "--out", out])
    assert done.exit_code == 1 and "2 cells failed" in done.stderr and "ValueError: a broken cell" in done.stderr
    shown = runner.invoke(app, ["status", out])
    assert "6 of 8 cells done, 2 failed" in shown.stdout and "resume" in shown.stdout
    with Store.read(out) as store:
        assert len(read_table(store)) == 6
        (trace,) = {row[0] for row in store._db.execute("SELECT trace FROM results WHERE status = 'failed'")}
        assert "Traceback" in trace
    monkeypatch.undo()
    assert runner.invoke(app, ["resume", out, "--engine", "inline"]).exit_code == 1  # not without being asked
    done = runner.invoke(app, ["resume", out, "--failed", "--engine", "inline"])
    assert done.exit_code == 0, done.output
    assert table_of(Path(out)) == ws.run(ws.load_study(file), engine="inline").numbers()


def test_more_trials_use_what_is_there(tmp_path: Path) -> None:
    first = ws.run(tiny(), tmp_path, "inline")
    keys = {row["key"]: row["started"] for row in first.rows}
    more = ws.run(tiny(trials=3), tmp_path, "inline")
    assert len(more) == 12 and keys.items() <= {row["key"]: row["started"] for row in more.rows}.items()
    both = ws.run([tiny(trials=3), ws.Study("other", TINY)], tmp_path, "inline")  # shared cells are measured once
    assert len(both) == 20
    with Store.read(tmp_path) as store:
        assert len(store.results()) == 12
        assert [study.name for study in store.studies()] == ["tiny", "other"]
        assert make_plan(store.results(), store.studies()).pending == []


def test_the_store_only_grows_and_knows_where_rows_come_from(tmp_path: Path) -> None:
    found = ws.run(tiny(keep_delta=True), tmp_path, "inline")
    row = found.rows[0]
    assert row["seed"] == 0 and row["version"] == ws.__version__ and row["threads"] == 1 and row["seconds"] > 0
    assert row["peak_bytes"] > 10**7 and "torch" in json.loads(row["versions"]) and row["machine"]
    with Store.read(tmp_path) as store:
        delta = load_arrays(store.folder, row["arrays"])["delta"]
        assert float(delta.norm()) == pytest.approx(4.0) and delta.shape == (16,)
    db = sqlite3.connect(tmp_path / "run.sqlite")
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for command in ("UPDATE results SET rows = '[]'", "DELETE FROM results"):
        with pytest.raises(sqlite3.IntegrityError, match="only ever added"):
            db.execute(command)
    db.close()


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ws.InputError, match="no run in"), Store.read(tmp_path):
        pass
    (tmp_path / "run.sqlite").write_text("something else, and long enough to be read as a header" * 4)
    with pytest.raises(ws.InputError, match="is no run"):
        ws.run(tiny(), tmp_path, "inline")
    runner = CliRunner()
    for command in (["status", "nowhere"], ["resume", "nowhere"], ["export", "nowhere"]):
        done = runner.invoke(app, command)
        assert done.exit_code == 2 and "no run in" in done.stderr
    done = runner.invoke(app, ["compare", "no", "where"])
    assert done.exit_code == 2 and "there is no file or folder 'no'" in done.stderr
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("way", [Store.open, Store.read])
@pytest.mark.parametrize("table", ["", "CREATE TABLE facts (name, value)", "CREATE TABLE other (name)"])
def test_a_file_that_is_no_run_is_closed(way: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = []
    connect = sqlite3.connect

    def remembered(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connections.append(connect(*arguments, **options))
        return connections[-1]

    file = tmp_path / "run.sqlite"
    if table:
        with closing(connect(file)) as other:
            other.execute(table)
    else:
        file.write_text("not a database" * 20)
    monkeypatch.setattr(sqlite3, "connect", remembered)
    with pytest.raises(ws.InputError, match="is no"), way(tmp_path):
        pass
    assert len(connections) == 1
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connections[0].execute("SELECT 1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "abacus"}, "engine='abacus'"),
        ({"engine": "inline", "workers": 2}, "one worker"),
        ({"engine": "processes", "workers": 0}, "workers must be"),
        ({"engine": "processes", "scheduler": "tcp://x:1"}, "for the engine dask"),
        ({"engine": "dask", "scheduler": "tcp://127.0.0.1:1"}, "cannot reach the Dask scheduler"),
        ({"engine": "dask", "scheduler": "foo"}, "tcp://HOST:PORT"),
    ],
)
def test_bad_engines(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ws.InputError, match=message):
        ws.run(tiny(), **options)


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "together"), [(1.5, False), (3.0, True)])
def test_no_more_at_once_than_fits(budget: float, together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers, cells that need 0.7 GB and more: with memory for one they run one after the other; with memory for
    three, one is handed out beside the two that run."""
    from wordsway.studies.run import engines

    monkeypatch.setattr(engines, "available_bytes", lambda: int(budget * 1e9))
    running: set[str] = set()
    most = 0

    class Counter(Silent):
        def begin(self, plan: Plan, engine: Engine) -> None:
            assert isinstance(engine, Processes) and all(0.7e9 < job.cell.memory() < 1e9 for job in plan.pending)

        def started(self, job: Job) -> None:
            nonlocal most
            running.add(job.key)
            most = max(most, len(running))

        def finished(self, job: Job, report: Report) -> None:
            running.discard(job.key)

    assert len(ws.run(tiny(), engine="processes", workers=2, watcher=Counter())) == 8
    assert most == (3 if together else 1)


def test_a_cell_that_never_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    from wordsway.studies.run import engines

    monkeypatch.setattr(engines, "available_bytes", lambda: int(1e8))
    found = ws.run(tiny(), engine="inline")
    assert len(found) == 0 and len(found.failed) == 8
    assert "needs" in next(iter(found.failed.values())) and "this machine has 100 MB" in next(
        iter(found.failed.values())
    )


@pytest.mark.slow
def test_a_cell_needs_no_more_memory_than_it_says() -> None:
    """The largest of each kind that a test can afford, in processes of their own."""
    study = ws.Study(
        "large",
        [
            {"id": "rf", "map": "rf", "n": 150, "d": 768},
            {"id": "drf", "map": "drf", "n": 50, "d": 768, "depth": 4},
            {"id": "raf", "map": ["raf", "relu-raf"], "n": 250, "d": 768},
            {"id": "flips", "measure": "flips", "map": ["rf", "raf"], "n": 40, "d": 384, "train_size": 300},
        ],
    )
    found = ws.run(study, engine="processes", workers=1)
    needs = {job.key: job.cell.memory() for _, job in study.jobs()}
    for row in found.rows:
        assert row["peak_bytes"] < needs[row["key"]], row["panel"]


@pytest.mark.slow
def test_a_cell_that_kills_its_process_is_the_only_one_that_fails(tmp_path: Path) -> None:
    """A process that dies each time it runs a cell: that cell fails, its neighbours do not."""
    script = tmp_path / "deadly.py"
    script.write_text(
        "import os, sys\n"
        "import wordsway as ws\n"
        "from wordsway.studies.cells.sensitivity_cell import SensitivityCell\n"
        "measure = SensitivityCell.measure\n"
        "SensitivityCell.measure = lambda cell: os._exit(1) if cell.n == 8 and cell.trial == 1 else measure(cell)\n"
        "if __name__ == '__main__':\n"
        "    grid = {'map': 'raf', 'n': [4, 8, 12], 'd': 16, 'trials': 2, 'certificate': False}\n"
        "    found = ws.run(ws.Study('deadly', grid), engine='processes', workers=2)\n"
        "    print(len(found), list(found.failed))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "5 ['deadly 1: raf d=16 n=8 trial 2']", done.stderr


@pytest.mark.slow
def test_reproduce(tmp_path: Path) -> None:
    """Figures, tables and the claims table, from the command line; run again, nothing is measured."""
    out = tmp_path / "paper"
    names = ["fig2-left", "fig3", "fig5-raf"]
    command = ["reproduce", *names, "--scale", "smoke", "--encoder", "synthetic", "--trials", "2", "--out", str(out)]
    runner = CliRunner()
    done = runner.invoke(app, [*command, "--engine", "inline"])
    assert done.exit_code == 0, done.output
    assert "fig3 c is not run: synthetic rows have no model" in done.stderr and "to measure on 1 worker" in done.stderr
    assert "predicted -0.5, holds if at most -0.5" in done.stdout and "not tested" in done.stdout
    written = {path.name for path in out.iterdir()}
    kinds = ("png", "pdf", "svg", "csv", "parquet")
    assert {f"{fig}.{kind}" for fig in ("fig2", "fig3", "fig5") for kind in kinds} | {
        "claims.csv",
        "claims.md",
    } <= written
    assert (out / "fig2.svg").read_text().startswith("<?xml")
    rest = [*command[4:-3], "3", *command[-2:]]
    part = [*command[:1], "fig3a", *rest]  # a panel that is there, alone: its figure keeps the others
    assert "fig3 a was in this folder" in runner.invoke(app, [*part, "--engine", "inline"]).stderr
    with Store.read(out) as store:
        assert [[p.id for p in study.panels] for study in store.studies() if study.name == "fig3"] == [list("abcd")]
    again = runner.invoke(app, [*command, "--json"])
    shown = json.loads(again.stdout)
    assert {claim["verdict"] for claim in shown["claims"]} <= {"holds", "does not hold", "not tested"}
    assert "nothing left" in runner.invoke(app, ["resume", str(out)]).stderr
    exported = runner.invoke(app, ["export", str(out), "--json"])
    assert len(json.loads(exported.stdout)) == len(shown["rows"])
    assert runner.invoke(app, ["export", str(out), "--out", str(out / "all.parquet")]).exit_code == 0
    assert (out / "all.parquet").read_bytes().startswith(b"PAR1")
    assert "tables are equal" in runner.invoke(app, ["compare", str(out), str(out)]).stdout
    listed = json.loads(runner.invoke(app, ["studies", "--json"]).stdout)
    assert [each["name"] for each in listed] == built_in()


def test_panels_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chat model out of reach is a note; when nothing can be had it is an error."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found, notes = known_studies(["fig1", "fig2"], "paper", encoder="minilm", chat_model="./nowhere")
    assert [p.skip is None for p in found[0].panels] == [True, False] and any("nowhere" in note for note in notes)
    assert any("d=192, 384, 768 becomes d=192, 384" in note for note in notes)
    both, _ = known_studies(["fig3a", "fig3b"], "paper", encoder="synthetic")
    assert [p.id for p in both[0].panels] == ["a", "b"]
    with pytest.raises(ws.InputError, match=r"nowhere.*--encoder"):
        known_studies(["fig2"], "paper", encoder="./nowhere")
