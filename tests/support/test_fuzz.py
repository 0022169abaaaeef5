"""The fuzzer: odd calls with a seed that changes by the day, and that it sees what is wrong."""

import datetime
import inspect
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the harness forks, and reads /proc")


@pytest.mark.slow
def test_calls_of_this_day() -> None:
    """100 calls, or as many as fit into three minutes: of one core that is not shared, 20 seconds have about 100. The
    seed changes by the day, so that a week has 700 other calls and each run stays short."""
    seed = f"{datetime.date.today():%Y%m%d}"
    words = [sys.executable, str(TOOLS / "fuzz.py"), "--calls", "100", "--minutes", "3", "--seed", seed]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    count = int(done.stdout.splitlines()[-1].split()[0])
    assert count >= 50 and done.stdout.endswith(f"{count} calls, 0 failures\n")


@pytest.mark.parametrize(
    ("end", "fails"),
    [
        ({"how": "returned", "gives": True, "text": "Tokens"}, None),
        ({"how": "returned", "gives": True, "text": "None"}, "returned nothing"),
        ({"how": "returned", "gives": False, "text": "None"}, None),
        ({"how": "refused", "text": "n must be a whole number"}, None),
        ({"how": "refused", "text": ""}, "InputError of 0 characters"),
        ({"how": "refused", "text": "x" * 5000}, "InputError of 5000 characters"),
        ({"how": "raised", "text": "TypeError: x"}, "TypeError"),
        ({"how": "killed", "code": 11}, "signal 11"),
        ({"how": "exit", "out": "a table"}, None),
        ({"how": "exit", "wrote": True}, None),
        ({"how": "exit"}, "nothing was done"),
        ({"how": "exit", "code": 2, "err": "wordsway: n must be 1 or more"}, None),
        ({"how": "exit", "code": 2}, "nothing was said"),
        ({"how": "exit", "code": 3, "err": "x"}, "code 3"),
        ({"how": "exit", "code": 1, "err": "Traceback (most recent call last):"}, "traceback"),
        ({"how": "exit", "code": 1, "err": "1 cell failed: KeyError: 'n'"}, "raw error"),
        ({"how": "returned", "too_long": True}, "no end within"),
        ({"how": "returned", "memory": 3 * 10**9}, "3.0 GB"),
        ({"how": "returned", "left": 2}, "2 processes outlived it"),
    ],
)
def test_which_ends_are_failures(end: dict[str, Any], fails: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from fuzz_process import End  # pyright: ignore[reportMissingImports]

    problem = End(**end).problem()
    assert problem is None if fails is None else fails in str(problem)


def test_every_command_and_every_public_name_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from fuzz_calls import commands, functions  # pyright: ignore[reportMissingImports]
    from fuzz_samples import concrete, parameters_of  # pyright: ignore[reportMissingImports]

    import wordsway
    from wordsway.cli.main import app

    assert set(functions()) == set(wordsway.__all__)
    assert set(commands()) == {each.name or getattr(each.callback, "__name__", "") for each in app.registered_commands}
    for target in functions().values():
        called = concrete(target) if isinstance(target, type) else target
        assert callable(called) and all(isinstance(each, inspect.Parameter) for each in parameters_of(called).values())


def test_a_value_is_spoiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    from fuzz_files import spoil  # pyright: ignore[reportMissingImports]

    ways: Counter[str] = Counter()
    for seed in range(200):
        value: dict[str, Any] = {"a": 7, "b": {"c": [7, 7]}}
        spoil(value, Random(seed))
        ways[json.dumps(value)] += 1
    assert json.dumps({"a": 7, "b": {"c": [7, 7]}}) not in ways and len(ways) > 40
