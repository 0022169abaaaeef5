"""The cell of Figures 2 and 3: word sensitivity of one map on one text."""

import math
from dataclasses import dataclass, replace
from typing import Any

from wordsway.maps.map_names import base_name
from wordsway.studies.cells.base import Outcome
from wordsway.studies.cells.grid_hooks import SYNTHETIC
from wordsway.studies.cells.text_cell import TextCell
from wordsway.studies.panels.curve_panel import curve_picture
from wordsway.support.errors import InputError, ZeroError
from wordsway.support.plain_checks import check_budget

_SEE = (
    "Word sensitivity: the largest relative change that moves of one token were found to make. Lines are means over "
    "trials, bands one standard deviation; a dotted line, where there is one, is the prediction. A map whose line "
    "falls with n hardly notices one word of a long text; one whose line stays level notices it at every length."
)


@dataclass(frozen=True)
class SensitivityCell(TextCell):
    """Word sensitivity of a map on one text (see `TextCell` for both) when one token moves; with `tokens_at_once`, so
    many of all tokens move together (see `word_sensitivity`)."""

    numbers = (
        "width",
        "lower",
        "upper",
        "upper_failure",
        "random_mean",
        "predicted",
        "moved_token",
        "evaluations",
    )
    names = ("checked", "chosen")
    first = "lower"
    picture = curve_picture("lower", "word sensitivity S", _SEE)

    tokens_at_once: int | None = None
    choose: str | None = None
    ball: str = "each"
    certificate: bool = True
    budget: str = "default"
    keep_delta: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_budget(self.budget)
        if self.tokens_at_once is not None:
            from wordsway.measures.several_tokens import Several

            Several.of(self.tokens_at_once, self.choose, self.ball, self.n)
        elif self.choose is not None or self.ball != "each":
            raise InputError(
                "choose and ball are about tokens that move together; say how many in tokens_at_once", argument="choose"
            )

    def settle(self) -> "SensitivityCell":
        cell = super().settle()
        return cell if cell.tokens_at_once is None else replace(cell, token=0)

    def measure(self) -> Outcome:
        from wordsway.measures.question import Question

        drawn = self.drawn()
        X, phi, d = drawn.text, drawn.phi, drawn.d
        together: dict[str, Any] = {"token": drawn.token}
        if self.tokens_at_once is not None:
            together = {"tokens_at_once": self.tokens_at_once, "choose": self.choose, "ball": self.ball}
            together |= {"special": self.encoder != SYNTHETIC}
        options: dict[str, Any] = {"certificate": self.certificate, "budget": self.budget, "seed": self.seed}
        try:
            r = Question(X, map=phi, radius=self.radius, **together, **options).measure()
        except ZeroError as error:
            if not self.correlation:
                raise
            # Rows that share a direction can all have negative scores: with ReLU that is a finding, not a failure.
            return Outcome([{**dict.fromkeys(self.numbers), "width": d, "checked": str(error), "chosen": None}])
        assert r.random is not None
        row = {
            "width": d,
            "lower": r.lower,
            "upper": r.upper,
            "upper_failure": r.upper_failure if r.upper is not None else None,
            "random_mean": r.random.mean,
            "predicted": self._predicted(d, r.radius),
            "moved_token": r.token,
            "evaluations": r.evaluations,
            "checked": r.checked,
            "chosen": None if r.together is None else r.together["by"],
        }
        return Outcome([row], {"delta": r.delta} if self.keep_delta else {})

    def _predicted(self, d: int, radius: float) -> float | None:
        """The law of random features depends on the rows' norms alone; the prediction for attention is for independent
        rows, which those of a real text are not."""
        if self.temperature != 1.0 or (self.encoder != SYNTHETIC and self.map not in ("rf", "drf")):
            return None
        from wordsway.maps import theory

        moved = self.tokens_at_once or 1
        if self.map != "rf" and self.correlation and self.structure != "mean":
            return None
        radius = radius / math.sqrt(moved) if self.ball == "shared" else radius  # what each has when all have as much
        return theory.predict(self.map, self.n, d, radius, self.correlation, moved)

    def memory(self) -> float:
        return self.bytes_for(self.tokens_at_once or 1)

    def seconds(self) -> float:
        n, d, moved = self.n, self.d or 768, self.tokens_at_once or 1
        kind = base_name(self.map)
        if kind == "rf":
            return 0.1 + 7e-9 * n * d * d * moved
        if kind == "drf":
            return 0.1 + 8e-6 * n * d * (self.depth or 2)
        if kind == "transformer":
            return 0.1 + 8e-9 * n * d * (d + n / 8) * (self.depth or 1)
        return 0.1 + 2e-6 * n * d * (1 + moved / 2)

    def _more(self) -> str:
        return f" m={self.tokens_at_once}" if self.tokens_at_once else ""
