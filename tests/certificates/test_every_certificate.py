"""The kit on every certificate: by every score, and for every kind of view that has one."""

import pytest

import wordsway as ws
from wordsway.maps.attention.scores.base import PooledScore, find
from wordsway.maps.base import FeatureMap
from wordsway.support.names import CERTIFICATES, SCORES
from wordsway.support.registry import load_home
from wordsway.testing.certificate_tests import CertificateTests

OTHERS = {
    "softmax heads": ws.RandomAttention(heads=2),
    "softplus heads": ws.RandomAttention("softplus", heads=2),
    "rf": ws.RandomFeatures(),
    "drf": ws.RandomFeatures(2, activation="tanh"),
    "lazy rf": ws.RandomFeatures(),
    "transformer": ws.RandomTransformer(2, norm="post"),
    "causal transformer": ws.RandomTransformer(1, norm="post", causal=True),
}
ELSEWHERE = {"wordsway.models.moving.map:PretrainedView": "tests/models/test_norm_bound.py"}
MASKED = {"causal": ws.RandomAttention(causal=True), "window": ws.RandomAttention("softplus", window=1)}


class Sampled(CertificateTests):
    recipe: ws.RandomAttention | ws.RandomFeatures | ws.RandomTransformer
    lazy = False

    def make(self, n: int, d: int, seed: int) -> FeatureMap:
        if isinstance(self.recipe, ws.RandomFeatures):
            return self.recipe.sample(n=n, d=d, seed=seed, lazy=self.lazy, dtype="float64")
        return self.recipe.sample(d=d, seed=seed)


class TestEveryScore(Sampled):
    """A score has the certificates that its claims allow, and no other ones."""

    @pytest.fixture(autouse=True, params=SCORES)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.recipe, score = ws.RandomAttention(request.param), find(request.param)
        claims = (score.monotone, score.lipschitz is not None) if isinstance(score, PooledScore) else (False, False)
        self.certified = tuple(count for count, claimed in zip((1, 2), claims, strict=True) if claimed)


class TestEveryView(Sampled):
    certified = (1, 2)

    @pytest.fixture(autouse=True, params=OTHERS)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.recipe, self.lazy = OTHERS[request.param], request.param.startswith("lazy")


class TestMasked(Sampled):
    @pytest.fixture(autouse=True, params=MASKED)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.recipe = MASKED[request.param]


class TestOtherNorms(Sampled):
    """A transformer whose last state is no norm's has none."""

    certified = ()

    @pytest.fixture(autouse=True, params=["pre", "none"])
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.recipe = ws.RandomTransformer(norm=request.param)


def test_no_certificate_stays_untested() -> None:
    X = ws.synthetic_tokens(4, 6, seed=0)
    recipes = [ws.RandomAttention(), *OTHERS.values()]
    views = [
        (recipe.sample(n=4, d=6) if isinstance(recipe, ws.RandomFeatures) else recipe.sample(d=6)).view(X, [0])
        for recipe in recipes
    ]
    for home in set(CERTIFICATES) - set(ELSEWHERE):
        assert any(isinstance(view, load_home(home)) for view in views), f"{home} is in no test"
