"""What a study measures: a cell is the full recipe of one measurement, as JSON values, and can carry it out.

A cell's fields decide its result: it draws its own texts and weights by seed and trial, and knows nothing of the other
cells around it. So cells may run in any order, anywhere.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

GB = 1e9
PROCESS = 0.7 * GB  # what a process has that does nothing yet
WITH_MODEL = 1.8 * GB  # the same with an encoder of BERT's size and the texts of a data set


@dataclass(frozen=True)
class Outcome:
    """What a cell gives: rows of a table, as JSON values, and perhaps arrays that are too large for one."""

    rows: list[dict[str, Any]]
    arrays: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell(ABC):
    """One measurement. `seed` is the root of its randomness, and `trial` tells repetitions apart."""

    numbers: ClassVar[tuple[str, ...]] = ()  # the columns of its rows that are numbers
    names: ClassVar[tuple[str, ...]] = ()  # the others
    within: ClassVar[tuple[str, ...]] = ()  # those that tell the rows of one cell apart
    first: ClassVar[str]  # the number that people ask for first

    trial: int = field(default=0, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    @abstractmethod
    def measure(self) -> Outcome:
        """Carry it out."""

    @abstractmethod
    def memory(self) -> float:
        """Bytes that a process needs for it, at most."""

    @abstractmethod
    def seconds(self) -> float:
        """About how long it takes on one thread, for plans and progress bars."""

    @abstractmethod
    def models(self) -> tuple[str, ...]:
        """Encoders and models that its result depends on."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A few words for people."""

    def settle(self) -> "Cell":
        """The same with all that has no meaning for it left out, so that equal measurements have one recipe."""
        return self

    def recipe(self) -> dict[str, Any]:
        """Its fields, as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
