"""The largest change of a prediction's probability that a move of one word can cause, as far as a search finds it."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.measures.margins import Margins
from wordsway.search.ascent import glide
from wordsway.search.regions import FROM_THE_EDGE, Ball
from wordsway.support.cancelling import Cancel
from wordsway.support.names import BUDGETS

_STEPS = 16  # of each of the two climbs: probabilities of a classifier are then near 0 or 1 at radius 1
_ANGLES = (0.3, 0.03)  # of the first step and the last
_VISITED = 3  # places of other words that a word climbs from

Climb = Float[Tensor, " d"]


def lowest_probabilities(
    margins: Margins,
    tokens: Sequence[int],
    flips: Mapping[int, Tensor | None],
    limit: float,
    budget: int | str | None = None,
    cancel: Cancel | None = None,
) -> dict[int, float | None]:
    """Search, for each token, the move within `limit` of its norm that leaves least of the prediction's probability.

    A climb begins at the smallest move known to flip the prediction (`flips`), lengthened to the full radius, and at
    the gradient; a second one at the places where other words ended. What is returned was computed by a plain run.
    """
    steps = max(4, round(_STEPS * (BUDGETS[budget] if isinstance(budget, str) else 1.0) ** 0.5))
    climber = _Climber(margins, limit, steps, cancel)
    size = margins.phi.side_by_side(len(margins.X), margins.X.shape[1], 1)
    groups = [list(tokens[k : k + size]) for k in range(0, len(tokens), size)]
    for group in groups:
        climber.climb(group, climber.own_starts(group, flips))
    if len(tokens) > 1:
        for group in groups:
            climber.climb(group, climber.places(group))
    return {token: climber.left(token) for token in tokens}


class _Climber:
    """The best moves so far, by token."""

    def __init__(self, margins: Margins, limit: float, steps: int, cancel: Cancel | None) -> None:
        self.margins, self.steps, self.cancel = margins, steps, cancel
        self.X = margins.X.double()
        self.reach = limit * self.X.norm(dim=1)
        self.moves: dict[int, Climb] = {}
        self.values: dict[int, float] = {}

    def own_starts(self, group: list[int], flips: Mapping[int, Tensor | None]) -> Float[Tensor, "g s 1 d"]:
        """The direction of the smallest flip, where there is one, and the gradient; in units of each token's ball."""
        still = torch.zeros(len(group), 1, 1, self.X.shape[1], dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(self.margins.open(group)(still).sum(), still)
        steepest = gradient[:, 0, 0].to("cpu", torch.float64)
        known = [flips.get(token) for token in group]
        own = torch.stack([s if k is None else k.double() for k, s in zip(known, steepest, strict=True)])
        starts = torch.stack([own, steepest], 1)
        return (starts / starts.norm(dim=-1, keepdim=True).clamp(min=1e-300))[:, :, None]

    def places(self, group: list[int]) -> Float[Tensor, "g s 1 d"]:
        """The places where the best other tokens ended, seen from each token, within its ball."""
        ordered = sorted(self.moves, key=lambda token: -self.values[token])
        rows = []
        for token in group:
            others = [other for other in ordered if other != token][:_VISITED]
            ends = torch.stack([self.X[other] + self.moves[other] - self.X[token] for other in others])
            shares = ends / self.reach[token]
            rows.append(shares / shares.norm(dim=-1, keepdim=True).clamp(min=1.0))
        return torch.stack(rows)[:, :, None]

    def climb(self, group: list[int], starts: Float[Tensor, "g s 1 d"]) -> None:
        """Climb from the starts of some tokens side by side, and keep what is better than what they had."""
        if self.cancel:
            self.cancel()
        run, region = self.margins.open(group), Ball(1.0, 1, self.X.shape[1])
        scale = self.reach[group][:, None, None, None]
        e, values = glide(lambda delta: run(delta * scale).to(delta), region, region.unit(starts, FROM_THE_EDGE),
                          self.steps, _ANGLES)  # fmt: skip
        best = values.argmax(1)
        for k, token in enumerate(group):
            value = float(values[k, best[k]])
            if value > self.values.get(token, -torch.inf):
                self.values[token] = value
                self.moves[token] = region.delta(e[k, best[k]])[0] * self.reach[token]

    def left(self, token: int) -> float | None:
        """The probability that is left of the prediction, by a plain run; at most what the text as it is has."""
        after = self.margins.probability(self.margins.after(token, self.moves[token]))
        before = self.margins.probability(self.margins.scores)
        return None if after is None or before is None else min(after, before)
