"""Search for the smallest move of each of some tokens that changes a prediction.

A token starts along the gradient at the text as it is and along directions near it, glides until the boundary of the
prediction is reached, and walks along it to its nearest point (`boundary`). Boundaries have several such points, so
tokens also learn from each other: they try the moves that others found, and the places where others ended, and descend
anew from the best of these. What is returned did change the prediction, in the precision of the objective.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.search.boundary import TOUCHES, Edge, descend, glide, pick, touch
from wordsway.search.effort import LOOK
from wordsway.support.seeds import normal

Objective = Callable[[Float[Tensor, "g b 1 d"]], Float[Tensor, "g b"]]
Opened = Callable[[Sequence[int]], Objective]  # tokens of the text -> the margins of their moves

_WIDE = (0.3, 0.03)  # angles of the first steps, when nothing is known
_NEAR = (0.1, 0.02)  # and from a move of another token
_NOISE = 1.4  # norm of the noise beside the unit gradient in all starts but the first
_FIRST = 0.3  # of the largest allowed length: how far the first step goes, at most
_BEYOND = 2e-3  # of the length that a Newton step promises: there the prediction should have changed
_INSIDE = 0.98  # of the shortest length known: there, moves of other tokens are compared


@dataclass(frozen=True)
class FlipEffort:
    """Limits of a search, in runs with a gradient for each token: `starts` tracks of `wide` steps, the best `kept` of
    which descend for at most `walk` steps; then `rounds`, in each of which a token follows `visits` of the moves and
    places of others that it looked at, `near` gliding steps and a descent each."""

    starts: int = 2
    wide: int = 36
    kept: int = 2
    walk: int = 24
    rounds: int = 1
    visits: int = 1
    near: int = 8
    looked_at: int = 8

    def scaled(self, factor: float) -> "FlipEffort":
        """So many times the runs, roughly: more tracks and rounds, or fewer, then shorter ones."""
        root, less = math.sqrt(factor), min(1.0, factor)
        return FlipEffort(
            starts=max(1, round(self.starts * factor)),
            wide=max(4, round(self.wide * min(1.5, root))),
            kept=max(1, round(self.kept * factor)),
            walk=max(4, round(self.walk * min(1.5, root))),
            rounds=round(self.rounds * max(1.0, root)) if factor >= 0.2 else 0,
            visits=max(1, round(self.visits * max(less, root))),
            near=max(2, round(self.near * min(1.0, root))),
            looked_at=self.looked_at,
        )

    @property
    def most(self) -> float:
        """Runs for one token, at most."""
        begin = 1 + self.starts * self.wide + self.kept * (self.walk + LOOK)
        visit = 2 * LOOK * self.looked_at + self.visits * (self.near + self.walk + LOOK)
        return begin + self.rounds * visit + self.walk + LOOK * (TOUCHES + 1)

    def within(self, runs: int) -> "FlipEffort":
        """The effort that makes at most so many runs for each token."""
        low, high = 1e-3, 1e3
        for _ in range(50):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.scaled(middle).most <= runs else (low, middle)
        return self.scaled(low)


@dataclass(frozen=True, eq=False)
class Nearest:
    """The shortest move of a token that was found to change the prediction (None where none was), and the runs spent
    on the token: those without a gradient count LOOK each."""

    delta: Float[Tensor, " d"] | None
    runs: float


@dataclass(eq=False)
class FlipSearch:
    """The search for the tokens of one text. `most` is the largest allowed length of each token's move, `size` how many
    tokens are searched side by side."""

    open: Opened
    X: Float[Tensor, "n d"]
    tokens: Sequence[int]
    most: Sequence[float]
    effort: FlipEffort
    seed: int
    size: int = 32
    progress: Callable[[float], None] | None = None
    edges: dict[int, Edge] = field(default_factory=dict)  # by token: its best tracks, (1, b)
    spent: dict[int, float] = field(default_factory=dict)

    def run(self) -> dict[int, Nearest]:
        """Search all tokens."""
        stages: list[Callable[[Group], None]] = [self._begin, *[self._visit] * self.effort.rounds, self._end]
        if len(self.tokens) == 1:
            stages = [self._begin, self._end]
        for number, stage in enumerate(stages):
            for done, group in enumerate(self._groups()):
                stage(group)
                if self.progress:
                    share = min(1.0, (done + 1) * self.size / len(self.tokens))
                    self.progress((number + share) / len(stages))
        return {token: self._result(token) for token in self.tokens}

    def _groups(self) -> Iterator["Group"]:
        limits = dict(zip(self.tokens, self.most, strict=True))
        for start in range(0, len(self.tokens), self.size):
            some = list(self.tokens[start : start + self.size])
            most = torch.tensor([[limits[token]] for token in some], dtype=torch.float64)
            yield Group(some, self.open(some), self.X[some].double(), most, self.spent)

    def _begin(self, group: "Group") -> None:
        """Glide from the token's own gradient, and from directions around it; then descend."""
        g, d = group.rows.shape
        value, gradient = group.margin(torch.zeros(g, 1, d, dtype=torch.float64))
        size = gradient.norm(dim=2)
        ahead = gradient / size.clamp(min=1e-30)[..., None]
        noise = torch.stack(
            [normal((self.effort.starts, d), self.seed, "flip", token, dtype=torch.float64) for token in group.tokens]
        )
        noise = _NOISE * noise / noise.norm(dim=2, keepdim=True)
        noise[:, 0] = torch.where((size > 0), 0.0, noise[:, 0])  # without a gradient, any direction
        u = ahead + noise
        u = u / u.norm(dim=2, keepdim=True)
        first = (-value / size.clamp(min=1e-30)).minimum(_FIRST * group.most)
        tracks = glide(group.margin, u, first.expand(u.shape[:2]), group.most, self.effort.wide, _WIDE)
        self._walk(group, tracks.best(min(self.effort.kept, self.effort.starts)))

    def _visit(self, group: "Group") -> None:
        """Follow moves and places of other tokens, those that come nearest to changing the prediction."""
        reached = {token: edge.best() for token, edge in self.edges.items() if bool(edge.best().r.isfinite().all())}
        order = sorted(reached, key=lambda token: float(reached[token].r))
        moves = {token: (reached[token].u * reached[token].r[..., None])[0, 0] for token in order}
        count = min(self.effort.looked_at, len(order) - 1)
        if count < 1:
            return
        starts = []
        for token, row in zip(group.tokens, group.rows, strict=True):
            others = [other for other in order if other != token][:count]
            there = [self.X[other].double() + moves[other] - row for other in others]
            starts.append(torch.stack([*(moves[other] for other in others), *there]))
        u = torch.stack(starts)
        u = u / u.norm(dim=2, keepdim=True).clamp(min=1e-30)
        known = torch.cat([self.edges[token].best().r for token in group.tokens])
        r = torch.where(known.isfinite(), known, group.most)
        worth = group.values(u * (_INSIDE * r)[..., None])
        chosen = worth.topk(min(self.effort.visits, u.shape[1]), 1).indices
        u = pick(u, chosen)
        tracks = glide(group.margin, u, r.expand(u.shape[:2]), group.most, self.effort.near, _NEAR)
        self._walk(group, tracks)

    def _walk(self, group: "Group", tracks: Edge) -> None:
        """Descend from some tracks, and keep the best of each token."""
        r = torch.where(tracks.r.isfinite(), tracks.r, group.most)
        flipped, last, _ = descend(group.margin, tracks.u, r, self.effort.walk)
        beyond = (last.r * (1 + _BEYOND)).minimum(group.most)
        flips = group.values(last.u * torch.where(beyond.isfinite(), beyond, 0.0)[..., None]) > 0
        ends = flipped.joined(Edge(last.u, torch.where(flips, beyond, math.inf)))
        for k, token in enumerate(group.tokens):
            edge = Edge(ends.u[[k]], ends.r[[k]])
            old = self.edges.get(token)
            self.edges[token] = (edge if old is None else old.joined(edge)).best(2)

    def _end(self, group: "Group") -> None:
        """Descend once more from each token's best move, and go to the boundary itself."""
        self._walk(group, self._best(group))
        best = self._best(group)
        for token, edge in zip(group.tokens, touch(group.values, best, group.most).split(), strict=True):
            self.edges[token] = self.edges[token].joined(edge).best(1)

    def _best(self, group: "Group") -> Edge:
        best = [self.edges[token].best() for token in group.tokens]
        return Edge(torch.cat([edge.u for edge in best]), torch.cat([edge.r for edge in best]))

    def _result(self, token: int) -> Nearest:
        edge = self.edges[token].best()
        found = bool(edge.r.isfinite().all())
        return Nearest((edge.u * edge.r[..., None])[0, 0] if found else None, self.spent[token])


@dataclass(eq=False)
class Group:
    """Tokens that are searched side by side."""

    tokens: Sequence[int]
    objective: Objective
    rows: Float[Tensor, "g d"]
    most: Float[Tensor, "g 1"]
    spent: dict[int, float]

    def margin(self, delta: Float[Tensor, "g b d"]) -> tuple[Tensor, Tensor]:
        """Compute margins and their gradients; float64 on the CPU."""
        self._count(delta.shape[1])
        with torch.enable_grad():
            moves = delta[:, :, None].detach().requires_grad_(True)
            values = self.objective(moves)
            (gradient,) = torch.autograd.grad(values.sum(), moves)
        return values.detach().to("cpu", torch.float64), gradient[:, :, 0].to("cpu", torch.float64)

    def values(self, delta: Float[Tensor, "g b d"]) -> Float[Tensor, "g b"]:
        """Compute margins alone."""
        self._count(LOOK * delta.shape[1])
        with torch.no_grad():
            return self.objective(delta[:, :, None]).to("cpu", torch.float64)

    def _count(self, runs: float) -> None:
        for token in self.tokens:
            self.spent[token] = self.spent.get(token, 0.0) + runs
