"""A step of a search never waits for its device more than once: every number that Python reads from a tensor stops a
GPU's queue. Counted on the CPU, where such a read looks the same to Python; no GPU was at hand."""

import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

import wordsway as ws
from wordsway.maps.base import FeatureMap
from wordsway.search.ascent import glide, maximize, start_points
from wordsway.search.finish import finish
from wordsway.search.metric import Metric
from wordsway.search.regions import Ball

READS = {"item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__float__", "__int__", "__index__"}
STEPS = 48
N, D = 12, 32


class Reads(TorchFunctionMode):
    """Counts what brings values of tensors to Python, in code of ours: a library may look at its mask in every run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        brought = name == "to" and "cpu" in [each for each in args[1:] if isinstance(each, str)]
        if (name in READS or brought) and "wordsway" in sys._getframe(1).f_code.co_filename:
            self.names[name] += 1
        return func(*args, **(kwargs or {}))


def maps() -> dict[str, FeatureMap]:
    return {
        "softmax": ws.RandomAttention("softmax").sample(d=D, seed=0),
        "relu, heads": ws.RandomAttention("relu", heads=2).sample(d=D, seed=0),
        "linear": ws.LinearAttention().sample(d=D, seed=0),
        "transformer": ws.RandomTransformer(depth=2, heads=2).sample(d=D, seed=0),
    }


def counted(phi: FeatureMap, X: torch.Tensor, work: str) -> int:
    """How often a job of so many steps reads a tensor."""
    view = phi.prepare(X).view([1], dtype=torch.float32)
    region = Ball(float(X[1].norm()), 1, X.shape[1])
    objective = phi.sq_norms([view])
    e, _ = start_points([view], objective, region, 0, 3)
    metric = Metric(X.shape[1])
    with Reads() as reads:
        if work == "race":
            maximize([view], objective, region, 0, replace(view.ascent(), budget=3 * STEPS, starts=3, survivors=3))
        elif work == "glide":
            glide(objective, region, e, STEPS, (0.3, 0.05), metric)
        else:
            finish(objective, region, e, STEPS, metric, least_gain=0.0)
    return sum(reads.names.values())


@pytest.mark.parametrize("work", ["race", "glide", "finish"])
@pytest.mark.parametrize("name", maps())
def test_a_step_reads_one_number_at_most(name: str, work: str) -> None:
    assert counted(maps()[name], ws.synthetic_tokens(N, D, seed=0), work) <= STEPS
