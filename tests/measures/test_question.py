"""A question checks itself when it is made, and its answer is that of `word_sensitivity`."""

import math
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

import wordsway as ws
from wordsway.measures.question import Question, QuestionError

TEXT = "The waiter was unbelievably rude."
MAP = {"text": TEXT, "map": "raf"}
MODEL = {"text": TEXT, "model": "minilm"}
ROWS = {"text": ws.synthetic_tokens(4, 6, seed=0), "map": "raf"}

WRONG: list[tuple[dict[str, Any], str, Any]] = [
    (MAP, "text", " "),
    (MAP, "text", torch.zeros(3)),
    (MAP, "map", None),
    (MAP, "map", "nothing"),
    (MAP, "map", "raf:heads=a"),
    (MAP, "model", "minilm"),
    (MAP, "temperature", {"temperature": 0.0}),
    ({**ROWS, "map": lambda: ws.RandomAttention().sample(d=6)}, "recipe", {"depth": 2}),
    (MAP, "layer", -1),
    (MAP, "n", 0),
    (ROWS, "n", 3),
    (ROWS, "d", 3),
    (ROWS, "max_tokens", 3),
    (ROWS, "word", "rude"),
    (MAP, "max_tokens", 0),
    (MAP, "output", "logits"),
    (MAP, "at", "word-embeddings"),
    (MODEL, "at", "nowhere"),
    (MODEL, "encoder", "mpnet"),
    (MODEL, "layer", 1),
    (MODEL, "raw", True),
    (MODEL, "n", 4),
    (MODEL, "d", 4),
    ({**MAP, "token": 0}, "word", "rude"),
    (MAP, "tokens_at_once", 0),
    ({**MAP, "joint": True}, "tokens_at_once", 2),
    (MAP, "choose", "greedy"),
    ({**MAP, "tokens_at_once": 2}, "choose", "best"),
    ({**MAP, "tokens_at_once": 2}, "ball", "none"),
    (MAP, "ball", "shared"),
    (MAP, "radius", 0.0),
    (MAP, "radius", math.inf),
    (MAP, "budget", "fast"),
    (MAP, "budget", 3),
    (MAP, "random_draws", -1),
    (MAP, "seed", -1),
    (MAP, "device", "nowhere"),
]


@pytest.mark.parametrize(("fields", "name", "value"), WRONG)
def test_every_wrong_field_is_named_before_anything_is_loaded(
    fields: dict[str, Any], name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Question, "open", lambda question: pytest.fail("it was opened"))
    fields = {key: found() if callable(found) else found for key, found in fields.items()}
    fields |= {"recipe": value} if name in ("recipe", "temperature") else {name: value}
    with pytest.raises(ws.InputError, match=name):
        Question(**fields)


WRONG_TYPES: list[tuple[str, Any]] = [
    ("text", 3),
    ("raw", 1),
    ("d", 1.5),
    ("word", 1.5),
    ("joint", "yes"),
    ("special", None),
    ("radius", "1"),
    ("radius", True),
    ("certificate", 1),
    ("seed", 0.5),
]


def test_wrong_types_are_named_too() -> None:
    """In another process, where nobody checks types before the question itself does."""
    code = f"""
import wordsway as ws
for name, value in {WRONG_TYPES!r}:
    try:
        ws.Question(**{{"text": {TEXT!r}, "map": "raf", name: value}})
    except ws.InputError as error:
        assert name in str(error), (name, str(error))
    else:
        raise SystemExit(f"{{name}}={{value!r}} was taken")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_wrong_field_can_be_called_by_another_name() -> None:
    with pytest.raises(QuestionError) as told:
        Question(TEXT, map="raf", radius=-1.0)
    assert told.value.field == "radius" and str(told.value) == "radius must be a positive number, got -1.0"
    assert told.value.fault == " must be a positive number, got -1.0"


def test_more_tokens_than_there_are() -> None:
    with pytest.raises(QuestionError, match=r"n=400 is more than the .* use at most"):
        Question(TEXT, map="raf", n=400).open()


def same(left: ws.Sensitivity, right: ws.Sensitivity) -> bool:
    times = ("seconds", "made")
    one, other = ({k: v for k, v in r.to_dict().items() if k not in times} for r in (left, right))
    return one == other


SMALL: dict[str, Any] = {"budget": "quick", "random_draws": 5, "seed": 3}
ASKED: list[tuple[dict[str, Any], Callable[[], ws.Sensitivity]]] = [
    (
        {"text": TEXT, "map": "raf", "d": 32, "radius": 0.5, "word": "rude"},
        lambda: ws.word_sensitivity(
            ws.named_map("raf", len(ws.encode(TEXT)), 32, 3),
            (short := ws.encode(TEXT).first_dims(32)),
            list(short.pieces[short.words.index("rude")]),
            radius=0.5 * math.sqrt(32),
            **SMALL,
        ),
    ),
    (
        {"text": TEXT, "map": "rf", "recipe": {"activation": "tanh"}, "n": 4, "d": 16, "raw": True, "radius": 2.0},
        lambda: ws.word_sensitivity(
            ws.named_map("rf", 4, 16, 3, activation="tanh"),
            (raw := ws.encode(TEXT, normalize=False)[:4].first_dims(16)),
            radius=[2.0 * float(norm) for norm in raw.X.double().norm(dim=1)],
            **SMALL,
        ),
    ),
    (
        {"text": ws.synthetic_tokens(5, 8, seed=1), "map": "relu-raf", "tokens_at_once": 2, "ball": "shared"},
        lambda: ws.word_sensitivity(
            ws.named_map("relu-raf", 5, 8, 3),
            ws.synthetic_tokens(5, 8, seed=1),
            tokens_at_once=2,
            ball="shared",
            **SMALL,
        ),
    ),
    (
        {"text": "I love it", "model": "minilm", "output": "pooled", "word": 2, "radius": 0.5},
        lambda: ws.word_sensitivity(
            (phi := ws.PretrainedMap("minilm", "pooled")),
            (tokens := phi.encode("I love it")),
            list(tokens.pieces[1]),
            radius=[0.5 * float(norm) for norm in tokens.X.double().norm(dim=1)],
            **SMALL,
        ),
    ),
]


@pytest.mark.parametrize(("fields", "expected"), ASKED)
def test_the_answer_is_that_of_the_library(fields: dict[str, Any], expected: Callable[[], ws.Sensitivity]) -> None:
    assert same(Question(**fields, **SMALL).measure(), expected())


def test_a_question_is_opened_once_and_tells_how_it_goes() -> None:
    told, bounds = [], []
    opened = Question(ws.synthetic_tokens(4, 6, seed=0), map="raf", budget="quick").open()
    assert opened.radii == (math.sqrt(6),) * 4 and opened.moving == "all"
    result = opened.measure(progress=lambda done, total: told.append((done, total)), each=bounds.append)
    assert told[-1] == (4, 4) and sorted(entry.token for entry in bounds) == [0, 1, 2, 3]
    assert max(entry.lower for entry in bounds) == result.lower


class Enough(BaseException):
    """Ends a measurement."""


class Stop:
    """Lets so many calls pass, and then ends the work."""

    def __init__(self, calls: int) -> None:
        self.left, self.calls = calls, 0

    def __call__(self) -> None:
        self.calls += 1
        self.left -= 1
        if self.left < 0:
            raise Enough


MAPS = ["raf", "rf", "raf:score=sparsemax", "transformer:depth=2"]


@pytest.mark.parametrize("name", MAPS)
def test_a_search_asks_around_every_evaluation_and_ends_at_once(name: str) -> None:
    phi, X = ws.named_map(name, 5, 8, 0), ws.synthetic_tokens(5, 8, seed=0)
    free = Stop(10**9)
    expected = ws.word_sensitivity(ws.named_map(name, 5, 8, 0), X, budget="quick")
    assert same(ws.word_sensitivity(phi, X, budget="quick", cancel=free), expected)
    assert free.calls > 10 and not [own for own in vars(phi) if callable(getattr(type(phi), own, None))]  # as it was
    stop = Stop(3)
    with pytest.raises(Enough):
        ws.word_sensitivity(ws.named_map(name, 5, 8, 0), X, budget="quick", cancel=stop)
    assert stop.calls == 4  # and nobody went on


def test_a_choice_of_tokens_is_cancelled_too() -> None:
    with pytest.raises(Enough):
        ws.word_sensitivity(
            ws.named_map("raf", 5, 8, 0), ws.synthetic_tokens(5, 8, seed=0), tokens_at_once=2, cancel=Stop(3)
        )


def test_a_model_is_asked_within_one_evaluation_and_keeps_no_hook() -> None:
    question = Question("I love it", model="minilm", word="love", budget=8, random_draws=0)
    opened = question.open()
    assert isinstance(opened.phi, ws.PretrainedMap)
    modules = list(opened.phi.model.whole.modules())
    before = [len(module._forward_pre_hooks) for module in modules]
    stop = Stop(len(modules) // 2)  # in the middle of the first run
    with pytest.raises(Enough):
        opened.measure(cancel=stop)
    assert stop.left == -1 and [len(module._forward_pre_hooks) for module in modules] == before
    assert opened.measure(cancel=Stop(10**9)).lower > 0
    other = threading.Thread(target=lambda: opened.phi(opened.X.X))  # type: ignore[union-attr]
    with opened.phi.cancellable(Stop(0)):
        other.start()
        other.join()  # a run of somebody else is not ours to end


def test_an_explanation_is_cancelled_too() -> None:
    phi, tokens = ws.named_map("raf", 5, 16, 0), ws.encode("I love it").first_dims(16)
    result = ws.word_sensitivity(phi, tokens, budget="quick", random_draws=0)
    free = Stop(10**9)
    ws.explain(phi, tokens, result, [1], cancel=free)
    assert free.calls > 10
    with pytest.raises(Enough):
        ws.explain(phi, tokens, result, [1], cancel=Stop(2))
