"""Limits on the evaluations of a search in places, and how they scale with a budget."""

import math
from dataclasses import dataclass, replace

_LOOKED_AT = 16  # places at most whose value is computed before the best are visited: each costs LOOK evaluations
JUDGES = 6  # tokens that say what a scout's place is worth to others: each costs LOOK evaluations for every scout
IDLE = 3  # rounds with little gain, after which the core is done: one may just be unlucky
LOOK = 0.4  # cost of a value without its gradient, in evaluations: there is no backward pass
SECOND = 1 / 2  # of all tokens, at most, climb a second time from a middle of places, where they came out low
AGAIN = 1 / 6  # and from single places, where they still are low; a third is not worth it (docs/search.md)


@dataclass(frozen=True)
class Effort:
    """Limits of a search, in evaluations of one delta with its gradient: `scouts` tracks of `wide` steps, the best of
    which are finished; then up to `rounds` in which each of the `core` tokens makes a visit: `tracks` races of `race`
    steps, and a finish of at most `finish` steps. Every other token then makes at most `last` steps."""

    scouts: int = 12
    wide: int = 40
    core: int = 8
    rounds: int = 8
    tracks: int = 2
    race: int = 12
    finish: int = 96
    polish: int = 160
    last: int = 104
    least_gain: float = 0.01  # of a round; less, and the next one is not worth its cost

    @property
    def looked_at(self) -> int:
        """Places whose value is computed before the best are visited."""
        return max(2, min(_LOOKED_AT, self.finish))

    @property
    def visit(self) -> float:
        """Cost of a visit of a core token, at most."""
        return self.tracks * self.race + self.finish + LOOK * self.looked_at

    def most(self, tokens: int) -> float:
        """Evaluations for a text with so many tokens to search, at most."""
        scouting = self.scouts * (self.wide + LOOK * JUDGES) + finalists(self.scouts) * self.finish
        polishes = max(1, min(self.rounds, IDLE))
        core = self.core * (self.rounds * self.visit + polishes * self.polish)
        other = (1 + SECOND) * self.last + AGAIN * self.visit
        return scouting + core + other * max(0, tokens - self.core)

    def scaled(self, factor: float) -> "Effort":
        """More of everything, or less: so many times the evaluations, roughly. A smaller effort gives up rounds first,
        then length, and tracks last: rather many short ones than few long ones."""
        less, root = min(1.0, factor), math.sqrt(factor)
        tracks = max(root, min(1.0, math.sqrt(10 * factor)))
        return Effort(
            scouts=max(1, round(self.scouts * tracks)),
            wide=max(1, round(self.wide * root)),
            core=max(1, round(self.core * less)),
            rounds=round(self.rounds * max(root, 1.0) * less),
            tracks=max(1, round(self.tracks * tracks)),
            race=max(1, round(self.race * min(root, 1.0))),
            finish=max(1, round(self.finish * root)),
            polish=max(1, round(self.polish * root)),
            last=max(1, round(self.last * root)),
            least_gain=self.least_gain / max(1.0, factor),
        )

    def for_few(self, tokens: int) -> "Effort":
        """Fewer helpers and rounds where so few tokens are asked for that hardly anybody would profit."""
        return replace(self, core=min(self.core, tokens + 2), rounds=min(self.rounds, 2 * tokens))

    def within(self, budget: int, tokens: int) -> "Effort":
        """The effort that spends at most `budget` evaluations on each of so many tokens, scouting included."""
        low, high = 1e-6, 1e4
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.scaled(middle).most(tokens) <= budget * tokens else (low, middle)
        return self.scaled(low)


def finalists(scouts: int) -> int:
    """Count how many of the scouts are finished."""
    return math.ceil(scouts / 3)
