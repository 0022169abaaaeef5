"""Search many tokens of one deep model's text: tokens share places.

A place is what a token became, x_i + delta_i. In a trained model most tokens of a text can do the most at nearly the
same places, while a search from a token's own gradients ends in one of many lower maxima. So tokens begin where others
ended, delta_i = x_j + delta_j - x_i, cut to their own ball, and climb from there.

A small core of tokens does this in rounds: each visits the places of others, and what it finds there is a new place for
them. Every visit disturbs a maximum and climbs again, so that the core leaves low maxima behind; it ends when a round
gains little. Every other round, all of it starts from the middle of its places, and so does every other token in the
end. All of them share a metric, too.
Good places are the model's more than the text's. So the core begins with the model's landmarks, where it has some
(`landmarks`); of a long text without landmarks it first works on an excerpt, where a run costs less, and takes what it
found there to the text. Races may run in half precision; the finish is in full.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap, View
from wordsway.search.ascent import Found, Objective, glide, start_points
from wordsway.search.effort import AGAIN, IDLE, JUDGES, LOOK, SECOND, Effort, finalists
from wordsway.search.finish import finish
from wordsway.search.metric import Metric
from wordsway.search.regions import FROM_THE_EDGE, Ball
from wordsway.support.seeds import generator

_WIDE = (0.3, 0.05)  # angles of the first steps, when nothing is known
_NEAR = (0.06, 0.03)  # and from a place: larger ones would lose what is good about it
_ONE_FAMILY = 0.35  # cosine above which two places share their middle; those towards another class are far below
_ALIKE = 0.5  # cosine above which two changes of the features point the same way; some scouts that go on differ
_SLOW = 1.0  # of a round's least gain, in 16 steps: a climb that is slower ends
_SLOWER = 0.3  # the same for first places and for the core after its rounds, from whose places others begin
_FIRST_TRACKS = 4  # for the places of an excerpt, of which the text's best need not be the excerpt's best
_LOW = 0.9  # of the (squared) value of others: less, and a token may have missed something and tries again
_RETURNS = 3  # rounds of the core on the text itself, after those on an excerpt: few, as a run costs more here
_IDLE_FROM_LANDMARKS = 2  # rounds with little gain that end a core with landmarks: fewer, as it began at good places
WORTH_IT = 4  # rounds; where fewer are made, places of other texts or of an excerpt save nothing
_VIEWS = 96  # kept at most, to bound memory: a causal model's views hold what comes before their token


@dataclass(frozen=True, eq=False)
class Place:
    """The row that a token was moved to, and the squared change of the features there."""

    row: Float[Tensor, " d"]
    value: float


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Places where tokens of other texts ended, and the covariance of the gradients on the way there."""

    rows: Float[Tensor, "k d"]
    covariance: Float[Tensor, "d d"]


class PlaceSearch:
    """The search for the tokens of one text. Later calls begin with what earlier ones found. With `landmarks`, only an
    effort above the usual one sends scouts as well."""

    def __init__(
        self,
        phi: FeatureMap,
        X: Float[Tensor, "n d"],
        radii: Sequence[float],
        effort: Effort,
        seed: int,
        device: torch.device | str = "cpu",
        landmarks: Landmarks | None = None,
    ) -> None:
        self.landmarks = landmarks
        self.phi, self.X, self.radii, self.effort, self.seed, self.device = phi, X, radii, effort, seed, device
        self._prepared = phi.prepare(X, device=device)
        self.places: dict[int, Place] = {}
        self.left: list[Place] = []  # all places that were the best of a token at some time
        self.brought: list[Place] = []  # from another text, or an excerpt; their values are not of this text
        self.core: list[int] = []
        self.scouted = 0.0  # evaluations that served all tokens together
        self.spent: dict[int, float] = {}  # and those of each token
        self._metric: Metric | None = None if landmarks is None else Metric.of(landmarks.covariance, device)
        self._visited: dict[int, list[Place]] = {}
        self._views: dict[tuple[int, torch.dtype], View] = {}

    def scout(self, tokens: Sequence[int], progress: Callable[[float], None] | None = None) -> None:
        """Find the places of a core of tokens. `tokens` are those that will be asked for; others of the text help out
        where they are few. `progress` is called with the share of the core's work that is done, at least."""
        order = torch.randperm(len(self.X), generator=generator(self.seed, "scouts")).tolist()
        order.sort(key=lambda token: token not in tokens)  # stable: still in random order otherwise
        self.core = order[: self.effort.core]
        if self.landmarks is None or self.effort.scouts > Effort.scouts:
            self._scout_text(tokens, order, progress)
        if self.landmarks is not None:
            self.brought += [Place(row, 0.0) for row in self.landmarks.rows]
            self._rounds(max(1, self.effort.rounds), _IDLE_FROM_LANDMARKS, progress)
        asked = set(tokens)
        self.scouted += sum(spent for token, spent in self.spent.items() if token not in asked)

    def _scout_text(
        self, tokens: Sequence[int], order: Sequence[int], progress: Callable[[float], None] | None
    ) -> None:
        """Scout on the text itself, or on an excerpt where that costs less; then let the core make its rounds."""
        excerpt = self.phi.excerpt(len(self.X)) if self.effort.rounds >= WORTH_IT else None
        if excerpt is None:
            self._first_places(self._scouts(order, len(set(tokens))))
            self._rounds(self.effort.rounds, IDLE, progress)
        else:
            self._scout_excerpt(excerpt, set(tokens), progress)
            self._rounds(min(_RETURNS, (self.effort.rounds - 1) // 2), 1, None)

    def _scout_excerpt(self, rows: Sequence[int], tokens: set[int], progress: Callable[[float], None] | None) -> None:
        """Bring the places of an excerpt, where twice the scouts cost no more than on half of the text. Its evaluations
        count by the share of the text that it is."""
        effort = replace(self.effort, scouts=2 * self.effort.scouts)
        radii = [self.radii[k] for k in rows]
        there = PlaceSearch(self.phi, self.X[list(rows)], radii, effort, self.seed, self.device)
        asked = [k for k, row in enumerate(rows) if row in tokens] or list(range(len(rows)))
        there.scout(asked, progress)
        spent = there.scouted + sum(there.spent.get(k, 0.0) for k in asked)
        self.scouted += spent * len(rows) / len(self.X)
        self.brought, self._metric = there.left, there._metric

    def _rounds(self, most: int, idle: int, progress: Callable[[float], None] | None) -> None:
        """Let the core visit each other's places until so many rounds have gained little."""
        rounds = 0
        while idle and rounds < most:
            before = {token: self.places[token].value for token in self.core if token in self.places}
            if rounds % 2 and self.places:
                self._gather(self.core, self.effort.finish)
            else:
                self._visit(self.core)
            self.brought = []
            gains = [math.sqrt(self.places[k].value / max(value, 1e-30)) - 1 for k, value in before.items()]
            rounds += 1
            if progress:
                progress(rounds / (most + 1))
            if len(before) == len(self.core) and sum(gains) < self.effort.least_gain * len(gains):
                idle -= 1
                self._polish()  # after which others may profit again
        if idle:
            self._polish()

    def search(self, tokens: Sequence[int]) -> list[Found]:
        """Find the best delta for each of some tokens, each moved alone."""
        rest = [token for token in tokens if token not in self.core or token not in self.places]
        if rest:
            self._gather(rest, self.effort.last)
            self._gather(self._low(rest, 1 / 8, SECOND), self.effort.last)  # what others found since is a better middle
            self._visit(self._low(rest, 1 / 2, AGAIN))
        return [
            Found(place.row[None] - self.X[token], place.value, math.ceil(self.spent.get(token, 0)))
            for token, place in ((token, self.places[token]) for token in tokens)
        ]

    def _low(self, tokens: Sequence[int], level: float, share: float) -> list[int]:
        """Choose tokens whose values are low beside the one that so many places are above: at most a share of all."""
        values = sorted((place.value for place in self.places.values()), reverse=True)
        low = _LOW * values[int(level * len(values))]
        lowest = sorted(tokens, key=lambda token: self.places[token].value)[: int(share * len(tokens))]
        return [token for token in lowest if self.places[token].value < low]

    @property
    def covariance(self) -> Float[Tensor, "d d"]:
        """The covariance of the gradients so far; zero before the first."""
        d = self.X.shape[1]
        return torch.zeros(d, d) if self._metric is None else self._metric.covariance.to("cpu", torch.float32)

    def _scouts(self, order: Sequence[int], asked: int) -> list[int]:
        """Choose the tokens that scout: half of the tracks at least are those of tokens that are asked for, the first
        `asked` in order, some of them several times if need be; the rest are others of the text."""
        count, others = self.effort.scouts, order[asked:]
        own = max(min(asked, count), math.ceil(count / 2), count - len(others))
        return [order[k % asked] for k in range(own)] + list(others[: count - own])

    def _first_places(self, chosen: Sequence[int]) -> None:
        """Glide from the tokens' own gradients, then finish the best."""
        turns = [chosen[:k].count(token) for k, token in enumerate(chosen)]  # the same token starts elsewhere each time
        views, region, objective = self._open(chosen, torch.float32)
        starts, spent = start_points(views, objective, region, self.seed, max(turns) + 1)
        e = starts[torch.arange(len(chosen)), turns][:, None]
        e, values = glide(objective, region, e, self.effort.wide, _WIDE, self._learning(views[0]))
        kept = self._select(chosen, e, values[:, 0], finalists(len(chosen)))
        chosen = [chosen[k] for k in kept]
        self.scouted += (spent + self.effort.wide) * len(turns) + LOOK * len(turns) * JUDGES
        self.scouted += self._finish(chosen, e[kept], self.effort.finish, _SLOWER) * len(chosen)

    def _select(self, tokens: Sequence[int], e: Float[Tensor, "g 1 size"], values: Tensor, count: int) -> list[int]:
        """Choose the scouts that go on, in turn by three orders: what they reached; what their places are worth to
        other tokens (one with a large radius may reach much in a low maximum, but nobody profits); and what they
        reached among those that change the features in another direction than the best one does (a classifier can be
        pushed towards either class, and the one that is easier at first need not be the one that ends higher)."""
        views, region, _ = self._open(tokens, torch.float32)
        rows = region.delta(e)[:, 0, 0]
        with torch.no_grad():
            deltas = rows[:, None] * torch.tensor([self.radii[k] for k in tokens]).to(e)[:, None, None]
            changes = [view.change(delta).flatten() for view, delta in zip(views, deltas, strict=True)]
        reached = values.argsort(descending=True).tolist()
        places = [self.X[k] + self.radii[k] * row for k, row in zip(tokens, rows.to("cpu", torch.float64), strict=True)]
        worth = self._worth(list(dict.fromkeys(tokens))[:JUDGES], places)[1].sqrt()
        shared = (worth / worth.amax(1, keepdim=True).clamp(min=1e-30)).mean(0).argsort(descending=True).tolist()
        alike = {k: _cosine(changes[k], changes[reached[0]]) for k in reached}
        other = sorted(reached, key=lambda k: alike[k] > _ALIKE)  # stable: by value within each part
        return list(dict.fromkeys(k for trio in zip(reached, shared, other, strict=True) for k in trio))[:count]

    def _worth(self, tokens: Sequence[int], places: Sequence[Tensor]) -> tuple[Tensor, Float[Tensor, "tokens places"]]:
        """Unit vectors of tokens that go to places, as far as their radii allow, and what that changes at once."""
        views, region, objective = self._open(tokens, torch.float32)
        starts = torch.stack([torch.stack([self._start(token, place) for place in places]) for token in tokens])
        e = region.unit(starts[:, :, None].to(views[0].device, views[0].dtype), 0.0)
        with torch.no_grad():
            return e, objective(region.delta(e)).to("cpu", torch.float64)

    def _visit(self, tokens: Sequence[int]) -> None:
        """Let each of some tokens climb from the places of others that suit it best at once, and keep what is better
        than what it had. (Of two places, the one that is worth more before the climb mostly leads higher.)"""
        own = sorted(self.places.values(), key=lambda place: -place.value)[: self.effort.looked_at]
        sources = [*self.brought, *own]
        visited = {token: {*self._visited.get(token, ()), self.places.get(token)} for token in tokens}
        tokens = [token for token in tokens if not visited[token].issuperset(sources)]
        if not tokens:
            return
        views, region, objective = self._open(tokens, torch.float32)
        e, worth = self._worth(tokens, [place.row for place in sources])
        for row, token in zip(worth, tokens, strict=True):
            row[[k for k, place in enumerate(sources) if place in visited[token]]] = -1.0  # where too few are left
        tracks = _FIRST_TRACKS if self.brought else self.effort.tracks
        best = worth.topk(min(tracks, len(sources)), dim=1).indices
        for row, token in zip(best.tolist(), tokens, strict=True):
            self._visited.setdefault(token, []).extend(sources[k] for k in row)
        e = e.gather(1, best.to(e.device)[..., None].expand(-1, -1, e.shape[-1]))
        e, values = glide(objective, region, e, self.effort.race, _NEAR, self._learning(views[0]))
        e = e[torch.arange(len(tokens)), values.argmax(1)][:, None]
        steps = self._finish(tokens, e, self.effort.finish, _SLOW)
        cost = LOOK * len(sources) + best.shape[1] * self.effort.race + steps
        for token in tokens:
            self.spent[token] = self.spent.get(token, 0.0) + cost

    def _gather(self, tokens: Sequence[int], steps: int) -> None:
        """Let each of some tokens climb from the middle of the best places that are much like each other. Each of those
        leans towards its own token, as its ball demands; in their middle that cancels, and it leads higher."""
        if not tokens:
            return
        best = sorted(self.places.values(), key=lambda place: -place.value)[: max(2, self.effort.core)]
        middle = torch.stack([place.row for place in best if _cosine(place.row, best[0].row) > _ONE_FAMILY]).mean(0)
        self._climb(tokens, [middle] * len(tokens), FROM_THE_EDGE, steps, _SLOW)

    def _polish(self) -> None:
        """Let the tokens of the core climb on from where they are."""
        tokens = [token for token in self.core if token in self.places]
        if tokens:  # where no round was made, a core token may not have been among the best scouts
            self._climb(tokens, [self.places[token].row for token in tokens], 0.0, self.effort.polish, _SLOWER)

    def _climb(self, tokens: Sequence[int], rows: Sequence[Tensor], height: float, steps: int, slow: float) -> None:
        """Let tokens climb, each from a place of its own."""
        views, region, _ = self._open(tokens, torch.float64)
        starts = torch.stack([self._start(token, row) for token, row in zip(tokens, rows, strict=True)])
        e = region.unit(starts[:, None, None].to(views[0].device, views[0].dtype), height)
        steps = self._finish(tokens, e, steps, slow)
        for token in tokens:
            self.spent[token] = self.spent.get(token, 0.0) + steps

    def _finish(self, tokens: Sequence[int], e: Float[Tensor, "g 1 size"], steps: int, slow: float) -> int:
        """Climb in full precision, keep what is better than before, and return the number of steps."""
        views, region, objective = self._open(tokens, torch.float64)
        least_gain = self.effort.least_gain * slow
        e, values, steps = finish(objective, region, e.to(views[0].dtype), steps, self._metric, least_gain)
        for token, point, value in zip(tokens, e[:, 0].to("cpu", torch.float64), values[:, 0].tolist(), strict=True):
            if token not in self.places or value > self.places[token].value:
                self.places[token] = Place(self.X[token] + self.radii[token] * point[:-1], value)
                self.left.append(self.places[token])
        return steps

    def _open(self, tokens: Sequence[int], dtype: torch.dtype) -> tuple[list[View], Ball, Objective]:
        """Views of some tokens, and the objective in units of each token's radius."""
        missing = [token for token in dict.fromkeys(tokens) if (token, dtype) not in self._views]
        if len(self._views) + len(missing) > _VIEWS:
            self._views, missing = {}, list(dict.fromkeys(tokens))
        self._views |= {(token, dtype): self._prepared.view((token,), dtype=dtype) for token in missing}
        views = [self._views[token, dtype] for token in tokens]
        radii = torch.tensor([self.radii[k] for k in tokens]).to(views[0].device, views[0].dtype)[:, None, None, None]
        objective = self.phi.sq_norms(views)
        return views, Ball(1.0, 1, self.X.shape[1]), lambda delta: objective(delta * radii)

    def _learning(self, view: View) -> Metric:
        self._metric = self._metric or Metric(self.X.shape[1], view.device)
        return self._metric

    def _start(self, token: int, place: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """Return the start of a token that goes to a place: its delta, cut to the ball, in units of its radius."""
        delta = (place - self.X[token]) / self.radii[token]
        return delta / delta.norm().clamp(min=1.0)


def _cosine(a: Float[Tensor, " d"], b: Float[Tensor, " d"]) -> float:
    return float(torch.cosine_similarity(a, b, dim=0))
