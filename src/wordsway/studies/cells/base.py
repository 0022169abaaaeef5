"""A cell: the full recipe of one measurement, as JSON values, which can carry it out.

A cell's fields decide its result: it draws its own texts and weights by seed and trial, and knows nothing of the other
cells around it. So cells may run in any order, anywhere.

A kind of cell is a subclass. Studies, figures, tables and the report ask it for everything they need to know about it:
its columns, its picture, and (the class methods) what a grid of such cells means. All of that has a default except
`measure` and `first`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from wordsway.studies.panels.curve_panel import curve_picture
from wordsway.studies.panels.scene import Picture

if TYPE_CHECKING:
    from torch import Tensor  # a study is planned and shown without it

GB = 1e9
PROCESS = 0.7 * GB  # of a process that does nothing yet
WITH_MODEL = 1.8 * GB  # of one with an encoder of BERT's size and the texts of a data set
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Outcome:
    """The result of a cell: rows of a table, as JSON values, and perhaps arrays that are too large for one."""

    rows: list[dict[str, Any]]
    arrays: "dict[str, Tensor]" = field(default_factory=dict)


class Shelf:
    """Things that a worker keeps from one cell to the next, one of each type. They save time and change no result."""

    def __init__(self) -> None:
        self._kept: dict[type[Any], Any] = {}

    def keep(self, kind: type[Kept]) -> Kept:
        """Return the worker's `kind()`, made when it is first asked for."""
        return self._kept.setdefault(kind, kind())


@dataclass(frozen=True)
class Cell(ABC):
    """One measurement. `seed` is the root of its randomness, and `trial` tells repetitions apart."""

    numbers: ClassVar[tuple[str, ...]] = ()  # the columns of its rows that are numbers
    names: ClassVar[tuple[str, ...]] = ()  # the others
    within: ClassVar[tuple[str, ...]] = ()  # those that tell the rows of one cell apart
    first: ClassVar[str]  # the number that people ask for first
    picture: ClassVar[Picture | None] = None  # curves of `first` unless given
    paths: ClassVar[tuple[str, ...]] = ("data", "encoder", "model")  # fields that may name a file or folder

    trial: int = field(default=0, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    @abstractmethod
    def measure(self) -> Outcome:
        """Carry it out."""

    def measure_with(self, shelf: Shelf) -> Outcome:
        """Carry it out in a worker, whose shelf may have what earlier cells used."""
        return self.measure()

    def memory(self) -> float:
        """Bytes that a process needs for it, at most."""
        return PROCESS

    def seconds(self) -> float:
        """About how long it takes on one thread, for plans and progress bars."""
        return 1.0

    def models(self) -> tuple[str, ...]:
        """Encoders and models that its result depends on."""
        return ()

    def maps(self) -> tuple[str, ...]:
        """Maps that its result depends on; those of a user's own module are code."""
        return ()

    def texts(self) -> tuple[str, ...]:
        """Sources of texts that its result depends on, as `load_texts` takes them."""
        return ()

    def check_texts(self) -> None:  # noqa: B027
        """Raise an InputError if its texts cannot be had: said before any work where they are a user's choice."""

    @property
    def label(self) -> str:
        """A few words for people."""
        own = {name: value for name, value in vars(self).items() if name not in ("trial", "seed")}
        return " ".join([*(f"{name}={value}" for name, value in own.items()), f"trial {self.trial + 1}"])

    def settle(self) -> "Cell":
        """Leave out all that has no meaning for it, so that equal measurements have one recipe."""
        return self

    def recipe(self) -> dict[str, Any]:
        """Its fields, as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    @classmethod
    def drawn_as(cls) -> Picture:
        """Return the picture of a panel of such cells."""
        return cls.picture or curve_picture(cls.first)

    @classmethod  # noqa: B027
    def refuse(cls, values: Mapping[str, Any]) -> None:
        """Raise a `StudyError` if some values of a grid mean nothing in any of its cells."""

    @classmethod
    def complete(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Add values that follow from the whole grid, where it does not give them."""
        return dict(values)

    @classmethod
    def chosen(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Leave out values of one combination of a grid that mean nothing beside the others."""
        return values

    @classmethod
    def adapt(cls, values: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
        """Changes of a panel that a command asks for: `asked` has encoder, data, padding, chat_model and seed, where
        they are given. A key `skip` among the changes says why the panel cannot be run then, or None that it can."""
        return {f.name: asked[f.name] for f in fields(cls) if f.name in asked}

    @classmethod
    def most_coordinates(cls, values: Mapping[str, Any]) -> int | None:
        """Bound `d` by the encoder of a panel; None where there is no bound."""
        return None
