"""The second evaluation, after the search, of the change under the best delta: its way and its precision."""

from dataclasses import dataclass
from enum import Enum


class Way(Enum):
    """Ways to evaluate the change under one delta; the value is how the way is called in results."""

    PLAIN = "plain map"  # by the map's definition
    REVEALED = "revealed weights"  # by the view of a lazy map, which has no other definition than what it revealed
    DERIVATIVE = "derivative"  # to first order, where a move is so small that a difference of features is rounding
    VIEW = "view"  # by the view alone, where the plain map does not fit in memory or the device has no float64


@dataclass(frozen=True)
class Check:
    """A way of evaluation, and its precision. `str` makes the text that results show and save."""

    way: Way
    precision: str

    def __str__(self) -> str:
        return f"{self.way.value}, {self.precision}"

    @staticmethod
    def of(text: str) -> "Check":
        """Read the text of a saved result; a ValueError where it is none."""
        way, _, precision = text.partition(", ")
        return Check(Way(way), precision)
