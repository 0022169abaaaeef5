"""Callbacks of a measurement: progress, each result, and the question whether to go on."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from wordsway.measures.results import TokenSensitivity
from wordsway.search.ascent import Objective
from wordsway.support.cancelling import Cancel


@dataclass
class Listener:
    """Callbacks of one measurement; what any of them raises ends it.

    `progress` gets (moves done, moves in all), `each` the bounds of every move as soon as they are known. `furthest`
    is the largest number of moves that was told so far: a search of a deep model counts tokens that it has begun with,
    and the count must not fall when their results come one by one. `cancel` is called before and after every evaluation
    of the search.
    """

    progress: Callable[[int, int], None] | None = None
    each: Callable[[TokenSensitivity], None] | None = None
    cancel: Cancel | None = None
    furthest: int = 0

    def ask(self) -> None:
        """Ask whether to go on."""
        if self.cancel:
            self.cancel()

    def watched(self, objective: Objective) -> Objective:
        """Ask around every evaluation of an objective; afterwards too, as its gradient is still to be taken."""
        if self.cancel is None:
            return objective

        def value(delta: Tensor) -> Tensor:
            self.ask()
            values = objective(delta)
            self.ask()
            return values

        return value

    def tell(self, done: int, total: int) -> None:
        """Report the number of moves that are done, or begun with."""
        self.furthest = max(self.furthest, done)
        if self.progress:
            self.progress(self.furthest, total)

    def hand_over(self, bounds: TokenSensitivity) -> None:
        """Report the bounds of one move."""
        if self.each:
            self.each(bounds)
