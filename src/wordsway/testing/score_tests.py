"""Tests of a score of attention: its weights, derivatives and pools, and what it claims of itself."""

import torch

from wordsway.maps.attention.scores.base import PooledScore, Ratio, Score

_LINE = torch.linspace(-60, 60, 240_001, dtype=torch.float64)  # logits, close enough to see a step of any form
_ROUNDING = 4 * torch.finfo(torch.float64).eps  # relative: by how much neighbours may fall by rounding alone


class ScoreTests:
    """Tests of one score. Bring `make()`, which returns it."""

    def make(self) -> Score:
        raise NotImplementedError

    def logits(self) -> torch.Tensor:
        """Draw some rows of logits; override it where a score is not smooth there."""
        rng = torch.Generator().manual_seed(20240201)
        return 2 * torch.randn(4, 7, generator=rng, dtype=torch.float64)

    def test_weights_sum_to_one_or_zero(self) -> None:
        for scale in (0.01, 1.0, 30.0):
            weights = self.make().normalize(scale * self.logits())
            total = weights.sum(-1)
            assert bool((weights >= 0).all()) and bool(torch.isfinite(weights).all())
            torch.testing.assert_close(total, torch.where(total > 0.5, 1.0, 0.0).to(total))

    def test_a_token_that_is_not_seen_has_no_weight(self) -> None:
        logits, score = self.logits(), self.make()
        hidden = torch.cat([logits, torch.full((4, 2), -torch.inf, dtype=torch.float64)], -1).requires_grad_(True)
        weights = score.normalize(hidden)
        torch.testing.assert_close(weights[:, :-2], score.normalize(logits))
        assert bool((weights[:, -2:] == 0).all())
        if isinstance(score, PooledScore):
            back = score.pull_back(hidden.detach(), weights.detach(), torch.ones_like(hidden))
            assert bool(torch.isfinite(back).all()), "derivatives must be 0 for a logit of -inf"
            torch.testing.assert_close(score.pool(hidden), score.pool(logits))

    def test_gradients(self) -> None:
        """By finite differences; derivatives by hand against those of the weights."""
        logits, score = self.logits().requires_grad_(True), self.make()
        assert torch.autograd.gradcheck(score.normalize, (logits,))
        if not isinstance(score, PooledScore):
            return
        gradient = torch.randn(4, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        weights = score.normalize(logits)
        (wanted,) = torch.autograd.grad((weights * gradient).sum(), logits)
        torch.testing.assert_close(score.pull_back(logits.detach(), weights.detach(), gradient), wanted)
        pooled = score.pool(logits[:, 1:]).detach()
        one = logits[:, 0].detach().requires_grad_(True)
        share = score.share(pooled, one)
        (wanted,) = torch.autograd.grad(share.sum(), one)
        torch.testing.assert_close(score.share_slope(pooled, one.detach(), share.detach()), wanted)

    def test_a_pool_stands_for_its_tokens(self) -> None:
        logits, score = self.logits(), self.make()
        if not isinstance(score, PooledScore):
            return
        weights = score.normalize(logits)
        for moved in (1, 3):
            pooled = score.pool(logits[:, moved:])
            torch.testing.assert_close(score.shares(pooled[:, None], logits[:, :moved]), weights[:, :moved])
        torch.testing.assert_close(score.share(score.pool(logits[:, 1:]), logits[:, 0]), weights[:, 0])

    def test_monotone_if_it_says_so(self) -> None:
        score = self.make()
        if not (isinstance(score, PooledScore) and score.monotone):
            return
        for others in (-3.0, 0.0, 3.0):
            pooled = score.pool(torch.tensor([others, others + 1.0], dtype=torch.float64))
            shares = score.share(pooled, _LINE)
            assert bool((shares[1:] >= shares[:-1] * (1 - _ROUNDING)).all())

    def test_no_steeper_than_it_says(self) -> None:
        score = self.make()
        if not isinstance(score, PooledScore) or score.lipschitz is None:
            return
        if isinstance(score, Ratio):
            masses = score.f(_LINE)
            slopes = (masses[1:] - masses[:-1]).abs() / (_LINE[1:] - _LINE[:-1])
            assert float(slopes.amax()) <= score.lipschitz * (1 + 1e-6)
            assert bool((score.slope(_LINE).abs() <= score.lipschitz * (1 + 1e-9)).all())
        rng = torch.Generator().manual_seed(2)
        logits = self.logits()
        pooled = score.pool(logits[:, 3:])[:, None]
        for size in (0.1, 1.0, 10.0):
            moves = torch.randn(200, 4, 3, generator=rng, dtype=torch.float64)
            moves = size * torch.cat([moves, torch.ones(1, 4, 3, dtype=torch.float64)])
            reached = score.shares(pooled, logits[:, :3] + moves).sum(-1)  # shape: (moves, 4)
            sigma = moves.norm(dim=-1).amax(0)[:, None]
            assert bool((reached <= score.most_shared(pooled, logits[:, :3], sigma)[:, 0] * (1 + 1e-12)).all())

    def test_slopes_are_within_what_it_says(self) -> None:
        """Over random intervals of logits: slopes of masses and of shares between points of an interval."""
        score = self.make()
        if not isinstance(score, PooledScore):
            return
        rng = torch.Generator().manual_seed(3)
        a, b, middle = (8 * torch.randn(3, 5000, generator=rng, dtype=torch.float64)).unbind(0)
        low, high = torch.minimum(a, b), torch.maximum(a, b)
        middle = torch.minimum(torch.maximum(middle, low), high)
        pooled = score.pool(torch.tensor([0.3, 1.0], dtype=torch.float64))
        claims = (
            (score.mass, score.slopes(low, high)),
            (lambda logits: score.share(pooled, logits), score.share_slopes(pooled, low, high)),
        )
        for function, bounds in claims:
            if bounds is None:
                continue
            for left, right in ((low, middle), (middle, high), (low, high)):
                before, after = function(left), function(right)
                assert before is not None and after is not None
                slack = 1e-12 * (1 + after.abs())
                assert bool((after - before <= bounds[1] * (right - left) + slack).all())
                assert bool((after - before >= bounds[0] * (right - left) - slack).all())
        if score.exponential:
            torch.testing.assert_close(score.mass(middle), middle.exp())

    def test_silences_if_and_only_if_it_says_so(self) -> None:
        """A row of low logits, none of them so low that a weight underflows, is 0 only under a score that silences."""
        score = self.make()
        if isinstance(score, PooledScore):
            rows = score.normalize(-torch.linspace(0.5, 30, 60, dtype=torch.float64)[:, None].expand(-1, 3))
            assert bool((rows == 0).any()) == score.silences
