"""Callbacks of a measurement: progress, each result, and the question whether to go on."""

from collections.abc import Callable
from dataclasses import dataclass

from wordsway.measures.results import TokenSensitivity


@dataclass
class Listener:
    """Callbacks of one measurement; what any of them raises ends it.

    `progress` gets (moves done, moves in all), `each` the bounds of every move as soon as they are known. `furthest`
    is the largest number of moves that was told so far: a search of a deep model counts tokens that it has begun with,
    and the count must not fall when their results come one by one.
    """

    progress: Callable[[int, int], None] | None = None
    each: Callable[[TokenSensitivity], None] | None = None
    furthest: int = 0

    def tell(self, done: int, total: int) -> None:
        """Report the number of moves that are done, or begun with."""
        self.furthest = max(self.furthest, done)
        if self.progress:
            self.progress(self.furthest, total)

    def hand_over(self, bounds: TokenSensitivity) -> None:
        """Report the bounds of one move."""
        if self.each:
            self.each(bounds)
