"""Nasty values for tools/fuzz.py, drawn by what a parameter takes, and sometimes without regard to it."""

import os
from collections.abc import Callable
from random import Random
from typing import Any, get_origin

from fuzz_files import DEEP, MODELS, ODD_TEXT, PATHS, RESULTS, RUNS, STUDIES, TABLES, TEXTS, Maker, Place
from fuzz_sane import options_of, sane

INTS = [0, -1, 2**31, 2**63 - 1, 2**63, 2**64, 10**9, 1_000_000, 10**21, 10**400, 10**4999]
FLOATS = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, -1.0, 1e-300, 5e-324, 1e-40, 1e40, 1e308, 10**400]
NAMES = [
    "",
    " ",
    "a" * 5000,
    "<script>alert(1)</script>",
    ODD_TEXT,
    "-",
    "--",
    "..",
    "a\nb",
    "%s%n{}",
    "#" + "9" * 5000,
    "raf:",
    "raf:heads=99999999",
    "raf:heads=0,rank=-1",
    "raf:temperature=1e-300",
    "raf:a=b=c",
    "RAF",
    "drf:depth=1000000",
    "transformer:depth=1000000",
    "rf:width=1000000000000",
    "raf:window=" + "9" * 5000,
    ":",
    "os:system",
    "layer:-1",
    "layer:" + "9" * 5000,
    "reinit:" * 8 + "minilm",
    ",,,",
    "1e999",
    "nan",
    "None",
    "\\",
    "meta",
    "cuda:99",
    "x" * 200_000,
    "word " * 3000,
]
NEVER_TYPED = ["\0", "a\0b", "\ud800"]  # no shell can give these
TYPED_NUMBERS = [str(each) for each in INTS[:-2]] + [
    "9" * 5000,
    "1e400",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "-0.0",
    "",
    " ",
    "1.5",
    "0x10",
    "\u0663",
    "1_0",
    "1,2,3",
    ",",
    "1," * 3000,
    "5e-324",
    "1e308",
    "all",
    "#1",
]


def odd_tensor(chance: Random) -> Any:
    """Make a tensor or array that no text is."""
    import numpy as np
    import torch

    X = torch.ones(4, 8)
    makers: list[Callable[[], Any]] = [
        lambda: torch.ones(4, 8, device="meta"),
        lambda: chance.choice([X.to_sparse(), X.to_sparse_csr()]),
        lambda: X * chance.choice([float("nan"), float("inf"), 0.0, 1e38, 1e-45]),
        lambda: chance.choice([X[:0], X[:, :0], X[0], X[0, 0], X[None], X.t()]),
        lambda: X.to(chance.choice([torch.complex64, torch.bool, torch.long, torch.half, torch.bfloat16])),
        lambda: torch.ones(1).expand(10**6, 10**6),
        lambda: torch.ones(1).expand(10**7, 8),
        lambda: torch.nn.Parameter(X),
        lambda: np.array([["a", None]], dtype=object),
        lambda: np.ones((4, 8), dtype=chance.choice(["M8[s]", "f8", "f2", "i1", "S3"])),
        lambda: np.zeros((0, 0)),
    ]
    return chance.choice(makers)()


def deep(inner: Any = 1) -> list[Any]:
    for _ in range(DEEP):
        inner = [inner]
    return inner


def _endless() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


def odd_objects() -> list[Any]:
    """Make values of types that are seldom right."""
    return [
        None,
        True,
        3,
        1.5,
        1j,
        "x",
        b"x",
        [],
        {},
        (),
        set(),
        object(),
        [None],
        {"a": None},
        {1: 2},
        [[1.0, "x"]],
        deep(),
        _endless(),
        range(10**12),
        int,
        len,
        type,
        lambda *a: None,
        [10**400],
        ("x",) * 5,
        float("nan"),
        ...,
    ]


ANY_PATH = [*PATHS, *TEXTS, *TABLES, *RESULTS, *STUDIES, *RUNS, *MODELS]
# Which nasty files and folders suit a parameter, by a part of its name; of others all of them do.
SUITS: dict[str, list[Maker]] = {
    "folder": RUNS,
    "first": [*RESULTS, *RUNS],
    "second": [*RESULTS, *RUNS],
    "study": STUDIES,
    "store": RUNS,
    "source": [*RESULTS, *RUNS, *TABLES],
    "file": [*TEXTS, *TABLES],
    "candidates": TEXTS,
    "path": [*RESULTS, *STUDIES],
    "model": MODELS,
    "encoder": MODELS,
    "data": TABLES,
    "result": RESULTS,
    "phi": MODELS,
}


def nasty_path(place: Place, name: str) -> str:
    """Make a file or folder that suits a parameter of this name, or one that does not."""
    suits = [maker for key, makers in SUITS.items() if key in name for maker in makers]
    if suits and place.chance.random() < 0.7:
        return place.chance.choice(suits)(place)
    return place.chance.choice(place.chance.choice([ANY_PATH, PATHS]))(place)


def nasty(place: Place, hint: Any, name: str, owner: str) -> Any:
    """Draw a value that a function should refuse, or survive."""
    chance = place.chance
    way = chance.random()
    if way < 0.25:
        return _anything(place, name)
    if way < 0.35:
        return chance.choice(
            [
                [_anything(place, name)],
                (sane(place, hint, name, owner), _anything(place, name)),
                {"a": _anything(place, name)},
                [sane(place, hint, name, owner)] * 1000,
            ]
        )
    kinds = {get_origin(each) or each for each in options_of(hint)}
    pools: list[Callable[[], Any]] = []
    pools += [lambda: chance.choice(INTS)] * (int in kinds)
    pools += [lambda: chance.choice(FLOATS)] * (float in kinds)
    pools += [lambda: chance.choice([*NAMES, *NEVER_TYPED])] * (str in kinds)
    pools += [lambda: nasty_path(place, name)] * (3 if os.PathLike in kinds else any(key in name for key in SUITS))
    pools += [lambda: odd_tensor(chance)] * (
        name in ("X", "X2", "text", "train", "labels", "inputs", "readout", "bias")
    )
    return chance.choice(pools)() if pools else _anything(place, name)


def _anything(place: Place, name: str) -> Any:
    chance = place.chance
    pools: list[Callable[[], Any]] = [
        lambda: chance.choice(INTS),
        lambda: chance.choice(FLOATS),
        lambda: chance.choice([*NAMES, *NEVER_TYPED]),
        lambda: odd_tensor(chance),
        lambda: chance.choice(odd_objects()),
        lambda: chance.choice(odd_objects()),
        lambda: nasty_path(place, name),
        lambda: chance.choice(list(place.samples.objects.values())),
    ]
    return chance.choice(pools)()


def mixed(chance: Random, count: int) -> set[int]:
    """Choose which of some arguments are nasty: none of a third of the calls, one of most others."""
    how_many = chance.choices([0, 1, 2, 3], [35, 45, 15, 5])[0]
    return set(chance.sample(range(count), min(how_many, count)))
