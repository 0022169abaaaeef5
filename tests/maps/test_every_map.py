"""The kit on every map and score that has a name: a new one is tested without being told."""

from collections.abc import Callable

import pytest
from test_views import dense_network
from torch import Tensor

import wordsway as ws
from wordsway.maps.attention.scores.base import Score, find
from wordsway.maps.base import FeatureMap
from wordsway.maps.features.random_features import FeatureNetwork
from wordsway.maps.named import named_recipe
from wordsway.support.names import MAPS, SCORES
from wordsway.testing.map_tests import MapTests
from wordsway.testing.score_tests import ScoreTests

VARIANTS = [
    *dict.fromkeys([*MAPS, *(f"{score}-raf" for score in SCORES)]),
    *(f"raf:score={score},heads=2,causal" for score in SCORES),
    *(f"transformer:score={score},causal" for score in SCORES),
    "raf:heads=3,rank=2,temperature=0.5",
    "relu-raf:window=1",
    "sigmoid-raf:heads=2,causal,window=2",
    "linear-raf:heads=2",
    "rf:activation=tanh,width=7",
    "drf:depth=3,activation=gelu",
    "transformer:depth=2,heads=2,norm=post,residual=false,position=sinusoidal",
]


class TestEveryMap(MapTests):
    named = True

    @pytest.fixture(autouse=True, params=VARIANTS)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.name = request.param

    def make(self, n: int, d: int, seed: int) -> FeatureMap:
        recipe = named_recipe(self.name)
        if isinstance(recipe, ws.RandomFeatures):
            return recipe.sample(n=n, d=d, seed=seed, lazy=False, dtype="float64")
        return recipe.sample(d=d, n=n, seed=seed)

    def definition(self, phi: FeatureMap) -> Callable[[Tensor], Tensor]:
        return dense_network(phi) if isinstance(phi, FeatureNetwork) else phi


class TestEveryScore(ScoreTests):
    @pytest.fixture(autouse=True, params=SCORES)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.name = request.param

    def make(self) -> Score:
        return find(self.name)
