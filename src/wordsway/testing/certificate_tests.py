"""Tests of a certificate: never below what a search, or chance, finds."""

import math

import torch

from wordsway.certificates.certify import certify
from wordsway.maps.base import FeatureMap, View
from wordsway.search.ascent import maximize
from wordsway.search.regions import Ball
from wordsway.tokens import synthetic_tokens

_ROUNDING = 1e-14  # relative to phi(X): a difference of features that is smaller may be rounding alone


def largest_seen(view: View, radius: float, rng: torch.Generator) -> float:
    """Find the largest change of random deltas of several norms, along with deltas that a search would try."""
    m, d = len(view.tokens), view.X.shape[1]
    drawn = torch.randn(400, m, d, generator=rng, dtype=torch.float64)
    drawn = torch.cat([drawn, view.starts().double(), -view.starts().double()])
    drawn = drawn[drawn.flatten(1).norm(dim=1) > 0]  # with one token there is nothing to pull
    if m > 1:  # also moves of one token alone
        drawn = torch.cat([drawn, drawn * torch.nn.functional.one_hot(torch.arange(len(drawn)) % m)[..., None]])
        drawn = drawn[drawn.flatten(1).norm(dim=1) > 0]
    drawn = drawn / drawn.flatten(1).norm(dim=1)[:, None, None]
    values = [view.sq_norm(share * radius * drawn).max() for share in (0.3, 0.7, 1.0)]
    return max(0.0, math.sqrt(max(0.0, float(torch.stack(values).max()))) / view.base_norm - _ROUNDING)


def largest_found(phi: FeatureMap, view: View, radius: float, evaluations: int = 400) -> float:
    """Search the ball of one radius for the largest change."""
    region = Ball(radius, len(view.tokens), view.X.shape[1])
    (found,) = maximize([view], phi.sq_norms([view]), region, 0, view.ascent().scaled(evaluations))
    best = region.project(found.delta.double())
    return max(0.0, float(view.change(best).norm()) / view.base_norm - _ROUNDING)


class CertificateTests:
    """Tests of one map's certificate. Bring `make(n, d, seed)`, the map; `certified` says for how many tokens that move
    together it has a certificate."""

    certified: tuple[int, ...] = (1,)
    n, d = 6, 8

    def make(self, n: int, d: int, seed: int) -> FeatureMap:
        raise NotImplementedError

    def test_never_below_what_is_found(self) -> None:
        rng = torch.Generator().manual_seed(0)
        for seed in range(2):
            X, phi = synthetic_tokens(self.n, self.d, seed=seed), self.make(self.n, self.d, seed)
            for count in self.certified:
                for radius in (0.1, math.sqrt(self.d), 20.0):
                    view = phi.view(X, list(range(seed, seed + count)))
                    bound = certify(view, radius)
                    assert bound.upper is not None and 0 <= bound.failure < 1e-6, bound.reason
                    assert max(largest_seen(view, radius, rng), largest_found(phi, view, radius)) <= bound.upper

    def test_where_there_is_none_it_says_why(self) -> None:
        X, phi = synthetic_tokens(self.n, self.d, seed=0), self.make(self.n, self.d, 0)
        for count in {1, 2} - set(self.certified):
            bound = certify(phi.view(X, list(range(count))), 1.0)
            assert bound.upper is None and bound.reason
