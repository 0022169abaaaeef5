"""Maps by name with options, and maps of one's own: in Python, in curves, in studies, on the command line."""

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app
from wordsway.maps.from_callable import FromCallable
from wordsway.maps.map_names import split_names
from wordsway.maps.named import named_recipe
from wordsway.studies.curve import CurvePlan
from wordsway.support.own_code import VARIABLE

MODULE = """
import torch

class Windowed(torch.nn.Module):
    def __init__(self, d, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.attention = torch.nn.MultiheadAttention(d, 2, bias=False, batch_first=True)

    def forward(self, X):
        return self.attention(X[None], X[None], X[None], need_weights=False)[0][0]

def make(n, d, seed):
    return Windowed(d, seed).eval()

nothing = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of a user's, in the current folder, not allowed yet."""
    (tmp_path / "attention_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    before = list(sys.path)
    yield "attention_of_mine"
    sys.modules.pop("attention_of_mine", None)
    sys.path[:] = before
    os.environ.pop(VARIABLE, None)


def test_names_with_options() -> None:
    assert named_recipe("raf:heads=4,causal,temperature=0.5") == ws.RandomAttention(
        heads=4, causal=True, temperature=0.5
    )
    assert named_recipe("relu-raf:window=3") == ws.RandomAttention("relu", window=3)
    assert named_recipe("transformer:norm=post,residual=false", depth=3) == ws.RandomTransformer(
        3, norm="post", residual=False
    )
    assert named_recipe("rf:activation=tanh,width=7") == ws.RandomFeatures(1, 7, "tanh")
    assert named_recipe("drf").depth == 2  # pyright: ignore[reportAttributeAccessIssue]
    assert split_names("rf, raf:heads=2,causal,relu-raf,mine:make") == (
        "rf",
        "raf:heads=2,causal",
        "relu-raf",
        "mine:make",
    )
    for name, message in [
        ("raff", "not known; did you mean 'raf'\\? Else use one of: rf, drf, raf, relu-raf, linear-raf, transformer"),
        ("raf:head=2", "option 'head', which is not known; use: score, temperature, heads"),
        ("raf:heads=two", "heads must be a whole number, got 'two'"),
        ("raf:", "no options after the colon"),
        ("raf:causal=yes", "causal is true or false"),
        ("raf:heads=2,heads=3", "twice"),
        ("relu-raf:score=softmax", "not known"),
        ("transformer:d=8", "not known"),
    ]:
        with pytest.raises(ws.InputError, match=message):
            named_recipe(name)
    with pytest.raises(ws.InputError, match="depth is given twice"):
        named_recipe("drf:depth=2", depth=3)
    with pytest.raises(ws.InputError, match=r"temperature=2\.0 has no meaning for map='rf'"):
        named_recipe("rf", temperature=2.0)


def test_any_function_or_module() -> None:
    X = ws.synthetic_tokens(6, 8, seed=0)
    known = ws.RandomAttention().sample(d=8, seed=0)
    wanted = ws.word_sensitivity(known, X, 2, random_draws=0, certificate=False)
    for phi in (known.__call__, FromCallable(lambda x: known._batched(x), batch="whole")):
        found = ws.word_sensitivity(phi, X, 2, random_draws=5, budget="thorough")
        assert found.lower == pytest.approx(wanted.lower, rel=0.03) and found.checked == "plain map, float64"
    module = torch.nn.Sequential(torch.nn.Flatten(0), torch.nn.Linear(48, 10), torch.nn.ReLU())
    phi = FromCallable(module)
    r = ws.word_sensitivity(phi, X, "all", random_draws=5)
    assert phi.config() == {"map": "Sequential", "batch": "vmap"} and r.checked == "plain map, float32"
    moved = X.clone()
    moved[r.token] += r.delta
    with torch.no_grad():
        by_hand = (module(moved.float()) - module(X.float())).norm() / module(X.float()).norm()
    assert r.lower == pytest.approx(float(by_hand), rel=1e-4)
    assert all(part.requires_grad and part.grad is None for part in module.parameters())


def test_every_way_of_batches_is_the_same() -> None:
    X = ws.synthetic_tokens(4, 6, seed=1)
    delta = torch.randn(3, 1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def swing(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x @ x.mT) @ x

    values = [FromCallable(swing, batch=way).view(X, [1]).sq_norm(delta) for way in ("loop", "vmap", "whole", "auto")]
    for value in values[1:]:
        torch.testing.assert_close(value, values[0])

    def awkward(x: torch.Tensor) -> torch.Tensor:
        return x * (2.0 if float(x.detach().sum()) > 0 else 1.0)  # which vmap cannot do

    phi = FromCallable(awkward)
    assert phi.view(X, [0]).base_norm > 0 and phi.config()["batch"] == "loop"


def test_functions_that_hold_tensors_and_scalars() -> None:
    """A function may do one precision only, as its own tensors have one."""
    X = ws.synthetic_tokens(4, 6, seed=1)
    for dtype in (torch.float32, torch.float64):
        W = torch.randn(6, 6, dtype=dtype, generator=torch.Generator().manual_seed(0))
        r = ws.word_sensitivity(lambda x, W=W: torch.tanh(x @ W), X, 0, random_draws=3)
        assert r.lower > 0 and r.checked == f"plain map, {str(dtype).removeprefix('torch.')}"
    r = ws.word_sensitivity(lambda x: x.square().sum(), X, 0, random_draws=3)
    assert r.lower == pytest.approx(((math.sqrt(6) * 2) ** 2 - 6) / 24, rel=1e-4)


def test_what_cannot_be_measured() -> None:
    X = ws.synthetic_tokens(4, 6, seed=1)
    dropout = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Dropout(0.5))
    for phi, message in [
        (dropout, r"in training mode, with dropout or batch statistics; call \.eval"),
        (torch.nn.BatchNorm1d(6), "in training mode"),
        (lambda x: torch.nn.functional.dropout(x), r"gives two answers to one text; is it in training mode\?"),
        (lambda x: x.detach() * 2, "not differentiable"),
        (lambda x: x / 0, "NaN or infinite for this text"),
        (lambda x: x * torch.sqrt(1 - 2 * ((x - X.to(x)).norm() > 1).to(x)), "NaN or infinite where a token is moved"),
        (lambda x: [x], "must give a dense tensor of real numbers, got list"),
        (lambda x: x.argmax(1), r"got a torch\.strided tensor of torch\.int64"),
        (lambda x: x.to_sparse(), r"got a torch\.sparse_coo tensor"),
        (lambda x: x[:0], "gives no features"),
        (lambda x: x.mul_(2), "writes into the text"),
        (lambda x: x[x[:, 0] > X[:, 0].min().to(x)], "as many for all"),
        (lambda x: x.view(1, 2, 3), r"fails on a text of shape \(4, 6\): .*; if it takes a batch"),
        (torch.nn.Conv2d(1, 1, 9), "fails on a text"),
    ]:
        with pytest.raises(ws.InputError, match=message):
            ws.word_sensitivity(phi, X, 0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ws.InputError, match="batch='fast' is not known"):
        FromCallable(torch.sin, batch="fast")
    with pytest.raises(ws.InputError, match="made for n=3"):
        ws.word_sensitivity(FromCallable(torch.sin, n=3), X, 0)
    with pytest.raises(ws.InputError, match=r"gave features of shape \(1, 4, 6\) for 2 texts"):
        FromCallable(lambda x: x.sum(0, keepdim=True), batch="whole").features(torch.stack([X, X]))


def test_own_maps_need_leave(module: str) -> None:
    plan = CurvePlan((f"{module}:make",), (4, 6), (8,), 2)
    with pytest.raises(ws.InputError, match=f"if {module} is code of your own, it is not allowed yet: --own {module}"):
        ws.named_map(f"{module}:make", 4, 8)
    with pytest.raises(ws.InputError, match="no module 'nowhere_at_all'"):
        ws.allow_maps("nowhere_at_all")
    with pytest.raises(ws.InputError, match=r"no module's name; for my_maps\.py it is my_maps"):
        ws.allow_maps("mine.py:make")
    ws.allow_maps(module)
    with pytest.raises(ws.InputError, match="no function 'nothing'"):
        ws.named_map(f"{module}:nothing", 4, 8)
    with pytest.raises(ws.InputError, match=r"fails when called with n=4, d=7, seed=0: .*divisible"):
        ws.named_map(f"{module}:make", 4, 7)
    points = ws.curve(plan).points
    assert [p.n for p in points] == [4, 6] and all(p.mean > 0 and p.theory is None for p in points)


def test_own_maps_in_studies(module: str, tmp_path: Path) -> None:
    """In worker processes too; and when the code changes, results are measured again."""
    (tmp_path / "mine.toml").write_text(f'[[panel]]\nmap = ["raf", "{module}:make"]\nn = [4, 6]\nd = 8\ntrials = 1\n')
    call = ["run", "mine.toml", "--out", "out", "--workers", "1", "--json"]
    runner = CliRunner()
    refused = runner.invoke(app, call)
    assert refused.exit_code == 2 and "not allowed yet" in refused.stderr
    found = runner.invoke(app, [*call, "--own", module])
    assert found.exit_code == 0, found.stderr
    rows = json.loads(found.stdout)["rows"]
    assert len(rows) == 4 and all(row["lower"] > 0 for row in rows)
    (tmp_path / f"{module}.py").write_text(MODULE.replace("d, 2, bias", "d, 4, bias"))
    changed = runner.invoke(app, [*call, "--own", module])
    other = json.loads(changed.stdout)["rows"]
    assert [a["lower"] == b["lower"] for a, b in zip(rows, other, strict=True)] == [True, True, False, False]
    os.environ.pop(VARIABLE)
    for command in (["status", "out"], ["export", "out"], ["compare", "out", "out"]):
        read = runner.invoke(app, command)
        assert read.exit_code == 0, (command, read.stderr)  # to read results takes nobody's leave
    missing = runner.invoke(app, [*call, "--own", "nowhere_at_all"])
    assert missing.exit_code == 2 and "no module" in missing.stderr


def test_measure_with_options(tmp_path: Path) -> None:
    runner = CliRunner()
    call = ["measure", "--encoder", "synthetic", "--n", "6", "--d", "8", "--json", "--map"]
    found = runner.invoke(app, [*call, "raf:heads=2,causal"])
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["map"] | {"seed": 0} == {
        **{"map": "raf", "score": "softmax", "temperature": 1.0, "heads": 2, "causal": True, "seed": 0}
    }
    bad = runner.invoke(app, [*call, "raf:heads=3"])
    assert bad.exit_code == 2 and "heads=3 does not divide d=8" in bad.stderr
