"""The result of a flip: what became of one text whose word was moved and whose label was flipped."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Flip:
    """The outcome for one text whose word was moved by `delta` and whose label was flipped to -y.

    before     f(X, theta*): the text, before the pair (X, y) was seen
    moved      f(X', theta*): the moved text, before
    after      f(X', theta_f/r): the moved text, after training on (X, y)
    gamma      |moved - before|: how well the two texts were told apart before
    alignment  F, 1 where the moved text has to follow the text
    err        (after - (-y))^2; at F = 1 it is at least `bound` = max(0, 2 - gamma)^2
    value      what the search minimised (`objective`) at `delta`: the least there is may be smaller
    seconds    for the search, its view and its check; `training_seconds` for the pair's part in theta_f/r
    """

    gamma: float
    err: float
    alignment: float
    bound: float
    before: float
    moved: float
    after: float
    y: int
    delta: Tensor
    token: int
    radius: float
    training: str
    objective: str
    penalty: float | None
    value: float
    evaluations: int
    checked: str
    seed: int
    training_seconds: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        fields = {name: value for name, value in vars(self).items() if name != "delta"}
        return {**fields, "delta": self.delta.tolist()}
