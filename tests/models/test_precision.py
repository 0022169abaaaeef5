"""Half precision in searches: where the processor has instructions for it, unless WORDSWAY_HALF says otherwise."""

import pytest
import torch
from typer.testing import CliRunner

import wordsway as ws
from families import tiny, tokenizer
from wordsway.cli import doctor, doctor_checks
from wordsway.cli.main import app
from wordsway.models.moving.map import PretrainedMap
from wordsway.models.running.precision import HALF, half_is_faster

CPU = torch.device("cpu")


@pytest.fixture(params=[True, False], ids=["bfloat16", "no bfloat16"])
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A processor with and one without the instructions."""
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: request.param)
    monkeypatch.delenv(HALF, raising=False)
    return request.param


def cpu_line() -> str:
    (line,) = [finding.detail for finding in doctor_checks.devices() if finding.name == "cpu"]
    return line


def test_unset_asks_the_processor(native: bool) -> None:
    assert half_is_faster(CPU) is native
    assert cpu_line().endswith("with bfloat16 instructions") is native


def test_a_torch_that_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HALF, raising=False)
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert not half_is_faster(CPU)


@pytest.mark.parametrize(("value", "on"), [("0", False), ("1", True)])
def test_the_switch_decides(value: str, on: bool, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HALF, value)
    assert half_is_faster(CPU) is on
    assert not half_is_faster(torch.device("cuda"))
    assert cpu_line().endswith(f"bfloat16 turned {'on' if on else 'off'} by WORDSWAY_HALF")
    phi = PretrainedMap(tiny("bert"), tokenizer=tokenizer())
    assert (phi.model.half is not None) is on


@pytest.mark.parametrize("value", ["", "2", "yes", "01"])
def test_other_values_are_refused(value: str, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HALF, value)
    for device in ("cpu", "cuda"):
        with pytest.raises(ws.InputError, match=rf"WORDSWAY_HALF must be 0 .* or 1 .*, or not be set; got '{value}'"):
            half_is_faster(torch.device(device))
    broken = [finding for finding in doctor_checks.devices() if finding.state == doctor.BROKEN]
    assert [(finding.name, finding.fix) for finding in broken] == [(HALF, "unset WORDSWAY_HALF")]
    assert cpu_line()


def test_the_command_line_says_so_in_one_line() -> None:
    done = CliRunner().invoke(app, ["measure", "hello", "--model", "minilm"], env={HALF: "yes"})
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert "WORDSWAY_HALF must be 0" in done.stderr and "got 'yes'" in done.stderr


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_result_is_evaluated_in_full_precision(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HALF, value)
    phi = PretrainedMap(tiny("bert"), tokenizer=tokenizer())
    tokens = phi.encode("The soup was cold.")
    best = ws.word_sensitivity(phi, tokens, 2, budget=40, random_draws=0)
    moved = tokens.X.double()
    moved[2] += best.delta
    assert best.lower == pytest.approx(ws.change(phi, tokens, moved), rel=1e-5)


def test_a_loaded_model_follows_the_switch(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    phi = PretrainedMap(tiny("bert"), tokenizer=tokenizer())
    assert (phi.model.half is not None) is native
    monkeypatch.setenv(HALF, "0")
    assert phi.model.half is None
    monkeypatch.setenv(HALF, "1")
    mode = phi.model.half
    assert mode is not None and mode is phi.model.half  # so that weights are kept once
