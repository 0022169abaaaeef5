"""Schedules of the ascent, and which of them suits which kind of view. `search/ascent.py` carries them out."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Ascent:
    """A schedule of a search. `budget` counts evaluations of single deltas, each with its gradient: all starts run
    `race_steps`, then only the best `survivors` go on. Deterministic: the same view, region and seed give the same
    path."""

    budget: int
    starts: int
    survivors: int
    race_steps: int
    first_angle: float
    last_angle: float
    momentum: float = 0.6

    def scaled(self, budget: int) -> "Ascent":
        """Give the search another budget; more budget buys more starts as well as more steps. Where all starts go to
        the end, it buys starts only."""
        factor = (budget / self.budget) ** (1.0 if self.survivors == self.starts else 0.5)
        starts, survivors = max(1, round(self.starts * factor)), max(1, round(self.survivors * factor))
        return replace(self, budget=budget, starts=starts, survivors=min(starts, survivors))

    def shortened(self) -> "Ascent":
        """Keep the race, and a quarter of the steps after it, for when a descent will finish what it finds."""
        race = min(self.budget, self.race_steps * self.starts)
        return replace(self, budget=race + (self.budget - race) // 4)

    def steps(self, spent: int) -> tuple[int, int]:
        """Count the steps of the race, and of the survivors after it, when `spent` evaluations are gone."""
        race = max(1, min(self.race_steps, (self.budget - spent) // self.starts))
        return race, max(0, (self.budget - spent - race * self.starts) // self.survivors)


# A trained model: every evaluation is a run of all of it; one long glide finds more than several short ones, and more
# budget is best spent on more of them.
DEEP = Ascent(budget=64, starts=1, survivors=1, race_steps=6, first_angle=0.5, last_angle=0.03)
# A random network of several layers: a single glide may end at half of what others find.
LAYERED = Ascent(budget=1152, starts=48, survivors=12, race_steps=16, first_angle=0.5, last_angle=0.02)
# One maximum, or two.
SMOOTH = Ascent(budget=96, starts=4, survivors=2, race_steps=8, first_angle=0.8, last_angle=0.02)
# Every evaluation reveals weights that must be kept, so that later ones cost more than earlier ones.
REVEALING = Ascent(budget=24, starts=2, survivors=1, race_steps=4, first_angle=0.8, last_angle=0.05)


def many_maxima(numbers: int, costly: bool, ridges: bool = False) -> Ascent:
    """Choose the schedule for many local maxima, of a text with so many `numbers`: small texts are cheap enough to race
    more starts, where an evaluation is not one of the whole map. `ridges` take a longer glide: after 8 steps they do
    not differ yet."""
    starts = 24 if costly else min(96, max(24, 2_000_000 // numbers))
    survivors = starts // 8
    race, steps = (16, 80) if ridges else (8, 32)
    budget = race * starts + steps * survivors
    return Ascent(budget, starts, survivors, race_steps=race, first_angle=0.3, last_angle=0.004)
