"""The cell of the study `random`: what random moves of one token change, without a search."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wordsway.studies.cells.base import Outcome
from wordsway.studies.cells.text_cell import TextCell
from wordsway.studies.panels.curve_panel import curve_picture
from wordsway.support.plain_checks import check_size

if TYPE_CHECKING:
    from wordsway.studies.cells.drawn_text import Drawn


@dataclass(frozen=True)
class RandomChangeCell(TextCell):
    """Mean relative change of the features of a map on one text (see `TextCell` for both) over `draws` random moves of
    one token, uniform on the sphere of the radius."""

    numbers = ("width", "change", "sd", "largest", "predicted", "moved_token")
    first = "change"
    picture = curve_picture(
        "change",
        "typical (random) relative change",
        "Relative change of the features when one token moves at random, by its own length: means over random moves, "
        "texts and weights, with bands of one standard deviation over trials; dotted, the prediction for random "
        "features. Both axes are logarithmic, so a power of n is a straight line.",
        log=True,
    )

    draws: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.draws, "draws", least=2)

    def measure(self) -> Outcome:
        drawn = self.drawn()
        changes = drawn.random_changes(self.draws, self.seed)
        row = {"width": drawn.d, "change": float(changes.mean()), "sd": float(changes.std())}
        row |= {"largest": float(changes.max()), "predicted": self._predicted(drawn), "moved_token": drawn.token}
        return Outcome([row])

    def _predicted(self, drawn: "Drawn") -> float | None:
        """ReLU random features: a unit g ~ N(0, 1) becomes g + s h, s = radius / |X|, and f = relu(g + s h) - relu(g)
        has E f^2 = s^2 / 2 - (s - atan s) / pi, by the arc-cosine kernel; E relu(g)^2 = 1 / 2."""
        if self.map != "rf":
            return None
        s = drawn.radius / float(drawn.rows.double().norm())
        return math.sqrt(s * s - 2 * (s - math.atan(s)) / math.pi)

    def seconds(self) -> float:
        return 0.05 + 2e-8 * self.n * (self.d or 768) ** 2
