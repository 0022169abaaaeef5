"""Sane values for tools/fuzz.py, made once before the calls: results of every kind, small models, texts, maps, a run.

Calls are forked from the process that made them, so every call finds them as they were.
"""

import contextlib
import inspect
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

TEXT = "I love her smile"
STUDY: dict[str, Any] = {"map": ["rf", "raf"], "n": [3, 6], "d": 8, "trials": 1}
STUDY_FILE = """name = "small"
title = "A small study"

[[panel]]
id = "curve"
measure = "sensitivity"
trials = 1
map = ["rf", "raf"]
n = [3, 6]
d = 8
"""


class Samples:
    """What sane calls are given. `objects` has an example of each class that a call may want, by the class."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model_folder, self.causal_folder = folder / "classifier", folder / "causal"
        self.run_folder, self.objects = folder / "a-run", dict[type, Any]()
        with contextlib.redirect_stderr(io.StringIO()):
            self._make_models()
            self._make_results()
            self._make_others()

    def _make_models(self) -> None:
        from wordsway.models.loading.load import open_model, read_tokenizer
        from wordsway.models.loading.locate import locate
        from wordsway.testing.output_tests import small_model

        self.tokenizer = read_tokenizer(locate("minilm"))
        self.models = {False: small_model(causal=False).float(), True: small_model(causal=True).float()}
        for causal, place in ((False, self.model_folder), (True, self.causal_folder)):
            self.models[causal].save_pretrained(place)
            self.tokenizer.save_pretrained(place)
            open_model(str(place))  # a call forked from here finds it loaded
        open_model("sentiment")

    def _make_results(self) -> None:
        """Take the examples that the tests have of every kind of result: a new kind is fuzzed without being told."""
        tests = Path(__file__).parents[1] / "tests"
        sys.path[:0] = [str(tests / "support"), str(tests / "helpers")]
        try:
            from test_every_result import MAKE  # pyright: ignore[reportMissingImports]
        finally:
            del sys.path[:2]
        made = [make(TEXT) for make in MAKE.values()]
        self.results = made
        self.saved = [json.dumps(result.to_dict()) for result in made]
        for result in made:
            for each in _within(result, 0):
                self.objects.setdefault(type(each), each)

    def _make_others(self) -> None:
        import torch

        import wordsway as ws

        self.tokens = ws.encode(TEXT, str(self.model_folder), cache=False)
        self.map = ws.named_map("raf", 4, 8)
        self.X = ws.synthetic_tokens(4, 8)
        self.study = ws.Study("small", STUDY)
        ws.run(self.study, self.run_folder, "inline")
        X, y = ws.labelled_tokens(6, 4, 8)
        self.training, self.labels = X, y
        for each in (
            self.tokens,
            self.map,
            self.map.view(self.X, [1]),
            self.study,
            self.study.panels[0],
            ws.Question(TEXT, "raf"),
            ws.CurvePlan(("raf",), (4,), (8,), 1),
            ws.FlipPlan(("raf",), (4,), (6,), trials=1, d=(8,), objectives=("align",)),
            ws.LabelledTexts(("a b", "c d"), (1, -1), (None, None), (None, None), "here"),
            ws.SyntheticEncoder(8),
            torch.device("cpu"),
        ):
            for kind in type(each).__mro__[:-1]:
                self.objects.setdefault(kind, each)
        self.objects[ws.View] = self.map.view(self.X, [1])


def _within(thing: Any, depth: int) -> Iterator[Any]:
    """Go through a result and the dataclasses that lie in it."""
    if is_dataclass(thing) and not isinstance(thing, type):
        yield thing
        for each in fields(thing):
            yield from _within(getattr(thing, each.name), depth + 1)
    elif isinstance(thing, tuple | list) and depth < 4:
        for item in thing[:2]:
            yield from _within(item, depth + 1)


def concrete(kind: type) -> type:
    """Give an abstract class its missing methods, so that its constructor can be called."""
    missing = {name: _nothing for name in getattr(kind, "__abstractmethods__", ())}
    return type(kind.__name__, (kind,), missing) if missing else kind


def _nothing(*given: Any, **options: Any) -> None:
    """Stand for an abstract method."""


def parameters_of(target: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """List what a function or a class takes; nothing of what has no signature."""
    try:
        return dict(inspect.signature(target).parameters)
    except ValueError:
        return {"message": inspect.Parameter("message", inspect.Parameter.POSITIONAL_ONLY, annotation=str)}
