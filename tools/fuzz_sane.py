"""Sane values for the parameters of public functions and classes, for tools/fuzz.py.

One is drawn by the name of the parameter where that is known here, else by its annotation, so that a new parameter is
given something too.
"""

import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from fuzz_files import Place
from fuzz_samples import STUDY_FILE, TEXT

Sane = Callable[[Place], Any]


def one_of(*values: Any) -> Sane:
    return lambda place: place.chance.choice(values)


def _subject(place: Place) -> Any:
    samples = place.samples
    return place.chance.choice(["raf", "rf", samples.map, str(samples.model_folder), _live(place)])


def _live(place: Place) -> Any:
    return place.samples.models[False], place.samples.tokenizer


def _some_model(place: Place) -> Any:
    return place.chance.choice([str(place.samples.model_folder), str(place.samples.causal_folder), _live(place)])


def _words(place: Place) -> Any:
    return place.chance.choice([TEXT, "The film was good", "Yes", place.samples.tokens])


def _inputs(place: Place) -> Any:
    return place.samples.tokenizer([TEXT, "a b"], return_tensors="pt", padding=True)


# What is sane for a parameter of a public function, by its name; `FUNCTION.name` counts more.
SANE: dict[str, Sane] = {
    "model": _some_model,
    "phi": _subject,
    "model_or_map": _subject,
    "text": _words,
    "X": _words,
    "X2": _words,
    "before": one_of(TEXT),
    "after": one_of("I love her face"),
    "against": one_of("I love her face", None),
    "texts": one_of([TEXT], [TEXT, "a b"], "The end"),
    "budget": one_of("quick", "quick", 8, 40),
    "word": one_of("smile", 1, "#2"),
    "weights": one_of(2),
    "random_draws": one_of(0, 4),
    "real_words": one_of(0, 2),
    "noise_draws": one_of(0, 2),
    "answer_tokens": one_of(1, 2),
    "engine": one_of("inline"),
    "workers": one_of(1),
    "trials": one_of(1, 2),
    "train_sizes": one_of((4,)),
    "maps": one_of(["raf"], ["rf", "raf"]),
    "map": one_of("raf", "rf", "drf", "relu-raf", "raf:heads=2"),
    "n": one_of(3, 4),
    "d": one_of(8),
    "radii": one_of([0.1, 1.0], [0.5]),
    "radius": one_of(0.5, 1.0),
    "device": one_of("cpu"),
    "dtype": one_of("float32", "float64"),
    "encoder": lambda place: str(place.samples.model_folder),
    "tokenizer": one_of(None),
    "progress": one_of(None, False),
    "results": lambda place: [place.samples.results[0]] * 2,
    "result": lambda place: place.samples.results[0],
    "source": lambda place: place.chance.choice([*place.samples.results, str(place.samples.run_folder)]),
    "count": one_of(2, 4),
    "path": lambda place: place.write(".json", place.chance.choice(place.samples.saved)),
    "store": lambda place: str(place.new("-run")),
    "out": lambda place: str(place.new("-run")),
    "study": lambda place: place.samples.study,
    "seconds": one_of(2.0),
    "name": one_of("raf", "rf"),
    "view": lambda place: place.samples.map.view(place.samples.X, [1]),
    "train": lambda place: place.samples.training,
    "labels": lambda place: place.samples.labels,
    "inputs": _inputs,
    "seed": one_of(0, 7),
    "layer": one_of(0, 1),
    "head": one_of(0, "mean"),
    "function": lambda place: lambda X: X.flatten() * 2,
    "tokens": lambda place: place.samples.tokens,
    "output": one_of(None, "last", "pooled"),
    "load_study.path": lambda place: place.write(".toml", STUDY_FILE),
    "load_texts.source": one_of("sample"),
    "cache": one_of(None, False),
    "find_study.name": one_of("fig2", "knob"),
    "scale": one_of("smoke", "laptop"),
    "probe_sensitivity.model": lambda place: _live(place)[0],
    "probe_sensitivity.tokenizer": lambda place: _live(place)[1],
    "sensitivity_penalty.model": lambda place: _live(place)[0],
    "sensitivity_penalty.tokenizer": lambda place: _live(place)[1],
    "embedding_noise.model": lambda place: _live(place)[0],
    "WordSensitivityCallback.tokenizer": lambda place: _live(place)[1],
    "LabelledTexts.labels": one_of((1,)),
    "explain.phi": lambda place: place.samples.map,
    "modules": one_of("wordsway_user_maps"),
    "score": one_of("softmax", "relu"),
    "measure": one_of("sensitivity", "flips"),
    "norm": one_of("pre", "post"),
    "activation": one_of("relu", "tanh"),
    "at": one_of("embeddings"),
}
# These are always given, as what they are unless given takes longer than a call may.
ALWAYS = {
    "budget",
    "random_draws",
    "weights",
    "encoder",
    "noise_draws",
    "answer_tokens",
    "real_words",
    "engine",
    "trials",
}


def sane(place: Place, hint: Any, name: str, owner: str) -> Any:
    """Draw a sane value for a parameter of a public function or class."""
    maker = SANE.get(f"{owner}.{name}") or SANE.get(name)
    for kind, example in place.samples.objects.items():
        if kind.__name__ == owner and hasattr(example, name):
            return getattr(example, name)  # a field of a dataclass of which there is an example
    example = _example(place, hint)
    if example is not None and name not in ("X", "phi", "text"):
        return example
    return maker(place) if maker else _by_hint(place, hint)


def _example(place: Place, hint: Any) -> Any:
    kinds = [get_origin(each) or each for each in options_of(hint)]
    found = [place.samples.objects[kind] for kind in kinds if kind in place.samples.objects]
    return place.chance.choice(found) if found else None


def options_of(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _by_hint(place: Place, hint: Any) -> Any:
    hint = place.chance.choice(options_of(hint))
    origin, inner = get_origin(hint) or hint, get_args(hint)
    chance = place.chance
    if origin is Literal:
        return chance.choice(inner)
    if origin in (Sequence, Iterable, list, tuple):
        items = [_by_hint(place, inner[0] if inner else str) for _ in range(2)]
        return tuple(items) if origin is tuple else items
    simple: dict[Any, Any] = {
        bool: chance.random() < 0.5,
        int: chance.choice([1, 2, 3]),
        float: chance.choice([0.1, 0.5, 1.0]),
        str: "x",
        os.PathLike: str(place.new("")),
        Mapping: {},
        dict: {},
        Callable: _nothing,
        type: object,
    }
    return simple.get(origin)


def _nothing(*given: Any) -> None:
    """Stand for a function that a caller may give."""
