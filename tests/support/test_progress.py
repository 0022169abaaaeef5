"""Progress on stderr: estimates, lines every ten seconds, and what `progress=` takes."""

import io
import re
import shlex
import sys
import time
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import wordsway as ws
from wordsway.support import progress


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def quick_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.05)


@pytest.mark.usefixtures("quick_beat")
class TestLines:
    def test_lines_come_without_news(self, capsys: pytest.CaptureFixture[str]) -> None:
        with progress.progress_bar("token") as update:
            update(1, 4)
            time.sleep(0.3)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) >= 3
        assert all(re.fullmatch(r"wordsway: token 1 of 4, 1 s so far, about 1 s left", line) for line in lines)
        time.sleep(0.15)
        assert not capsys.readouterr().err  # none after the end

    def test_they_end_with_an_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(ZeroDivisionError), progress.waiting("loading a model"):
            time.sleep(0.2)
            raise ZeroDivisionError
        assert "wordsway: loading a model, 1 s so far" in capsys.readouterr().err
        time.sleep(0.15)
        assert not capsys.readouterr().err

    def test_quiet(self, capsys: pytest.CaptureFixture[str]) -> None:
        with progress.quietly(), progress.progress_bar("token", expected=100.0) as update, progress.waiting("x"):
            update(1, 4)
            progress.say("a line")
            time.sleep(0.15)
        with progress.quietly(False):
            progress.say("another")
        assert capsys.readouterr().err == "wordsway: another\n"


class TestEstimates:
    def test_what_is_expected_is_said_first(self, capsys: pytest.CaptureFixture[str]) -> None:
        with progress.progress_bar("token", "--budget quick", expected=42.0):
            assert capsys.readouterr().err == "wordsway: about 42 s in all; shorter: --budget quick\n"

    def test_short_work_says_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        with progress.progress_bar("token", "--budget quick", expected=4.0) as update:
            update(1, 2)
        assert not capsys.readouterr().err

    def test_the_pace_shows_it(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        pace = progress.Pace("token", "--word W")
        now[0] = 1.0
        pace.update(1, 60)
        assert not capsys.readouterr().err  # too early to tell
        now[0] = 2.0
        pace.update(2, 60)
        pace.update(3, 60)
        assert capsys.readouterr().err == "wordsway: about 60 s in all; shorter: --word W\n"  # once
        assert pace.line() == "token 3 of 60, 2 s so far, about 38 s left"

    def test_durations(self) -> None:
        assert [progress.duration(s) for s in (0.2, 80, 600, 7200)] == ["1 s", "80 s", "10 min", "2.0 h"]


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress_bar("token") as update:
        update(3, 7, "[red]x")
    shown = sys.stderr.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "3/7" in shown and "[red]x" in shown


def measured(**options: Any) -> Any:
    phi = ws.named_map("raf", 4, 8)
    return ws.word_sensitivity(phi, torch.randn(4, 8), [0, 1], random_draws=0, certificate=False, budget=20, **options)


@pytest.mark.usefixtures("quick_beat")
class TestLibrary:
    def test_true_shows_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[str] = []

        class Told(progress.Pace):
            def update(self, done: int, total: int, label: str = "") -> None:
                told.append(f"{self.what} {done}/{total}")

        monkeypatch.setattr(progress, "Pace", Told)
        measured(progress=True)
        assert told[-1] == "token 2/2"

    def test_a_function_is_called(self) -> None:
        calls: list[tuple[int, int]] = []
        measured(progress=lambda done, total: calls.append((done, total)))
        assert calls[-1] == (2, 2)

    def test_false_and_nothing_are_silent(self, capsys: pytest.CaptureFixture[str]) -> None:
        measured(progress=False)
        measured()
        assert not capsys.readouterr().err

    def test_every_long_call_takes_it(self) -> None:
        import inspect

        long = (ws.word_sensitivity, ws.explain, ws.flip_radius, ws.radius_profile, ws.substitutions, ws.layer_profile,
                ws.attention_maps, ws.encode, ws.curve, ws.generalize, ws.run, ws.Question.measure)  # fmt: skip
        for call in long:
            assert "bool" in str(inspect.signature(call).parameters["progress"].annotation), call

    def test_a_grid(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[tuple[int, int, str]] = []

        class Told(progress.Pace):
            def update(self, done: int, total: int, label: str = "") -> None:
                told.append((done, total, label))

        monkeypatch.setattr(progress, "Pace", Told)
        plan = ws.CurvePlan(("raf",), (4, 6), (8,), 1, 0)
        ws.curve(plan, None, True)
        ws.run(plan.study(), engine="inline", progress=True)
        assert [each[:2] for each in told].count((2, 2)) == 2 and "raf" in told[-1][2]

    def test_steps_of_a_flip_never_fall_or_exceed(self) -> None:
        steps: list[tuple[int, int]] = []
        readout = torch.randn(2, 4 * 8, generator=torch.Generator().manual_seed(0))
        phi, X = ws.named_map("raf", 4, 8), ws.synthetic_tokens(4, 8)
        ws.flip_radius(phi, X, readout=readout, budget="quick", progress=lambda *step: steps.append(step))
        done = [step[0] for step in steps]
        assert done == sorted(done) and done[-1] == steps[-1][1]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('ranges "I love her smile"', r"word \d of 4.*--word W or --max-tokens N"),
        ('measure "I love her much" --against "I love her smile" --draws 40 --map rf', r"step \d+ of \d+.*--draws 0"),
    ],
)
def test_commands_are_never_silent(line: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it took long: an estimate with what makes it shorter, and lines that count."""
    from wordsway.cli.main import app

    monkeypatch.setattr(progress, "LINE_EVERY", 0.002)
    monkeypatch.setattr(progress, "LONG", 0.0)
    monkeypatch.setattr(progress, "_SOON", 0.0)
    done = CliRunner().invoke(app, shlex.split(line))
    assert done.exit_code == 0, done.output
    counted, shorter = what.split(".*")
    assert re.search(rf"about \d+ s in all; shorter: .*{shorter}", done.stderr) and re.search(counted, done.stderr)


def test_calls_that_count() -> None:
    told: list[tuple[int, int]] = []
    ws.logit_ranges("sentiment", "I love her smile", progress=lambda *step: told.append(step))
    assert told == [(k, 4) for k in (1, 2, 3, 4)]
    before, after = ws.encode("I love her much"), ws.encode("I love her smile")
    told.clear()
    others = ws.random_words(before, 4, 40, progress=lambda *step: told.append(step))
    assert told == [(32, 40), (40, 40)]
    told.clear()
    phi = ws.named_map("rf", len(before), 384)
    result = ws.substitution(phi, before, after, others, budget=8, progress=lambda *step: told.append(step))
    assert told[-1] == (told[-1][1],) * 2 and told[-1][1] in (41, 42) and len(told) == 41
    assert result.random is not None and result.random.draws == 40
