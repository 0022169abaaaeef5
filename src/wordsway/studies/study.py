"""A study is data: panels, each a grid of cells, with the claims that their results are held against."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from wordsway.studies.cells.base import Cell
from wordsway.studies.cells.kinds import kind_of
from wordsway.studies.cells.recipes import allows, is_axis, key_of, recipe_of, revision_of, wants
from wordsway.studies.claims import Claim, hint
from wordsway.studies.panels.scene import PanelGrid
from wordsway.support.errors import InputError, StudyError
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import check_argument, public

MOST = 500_000  # cells of a panel: a plan of more takes minutes and gigabytes before anything is measured
LONGEST_NAME = 100  # characters: files are named after a study
_OWN = ("id", "measure", "trials", "title", "skip")


@dataclass(frozen=True)
class Job:
    """A cell to be measured, with its key."""

    key: str
    cell: Cell
    revision: str


@public
@dataclass(frozen=True)
class Panel:
    """A grid. `values` are fields of the kind of cell that `measure` names; a list of values is an axis of the grid.
    Every combination is measured `trials` times. A panel with `skip` is not run, and that says why."""

    id: str
    measure: str
    values: Mapping[str, Any]
    trials: int = 1
    title: str = ""
    skip: str | None = None

    @staticmethod
    def of(table: Mapping[str, Any], number: int = 0) -> "Panel":
        """Make a panel from the keys of a study file or a dict, and check it."""
        return Panel.draft(table, number).checked()

    @staticmethod
    def draft(table: Mapping[str, Any], number: int = 0) -> "Panel":
        """Make a panel whose own keys are checked, but not yet the values of its grid."""
        values = {k: v for k, v in table.items() if k not in _OWN}
        own: dict[str, Any] = {"id": str(number + 1), "measure": "sensitivity", "trials": 1, "title": "", "skip": None}
        own |= {k: v for k, v in table.items() if k in _OWN}
        if not isinstance(own["measure"], str):
            raise StudyError(f"measure must be a string, got {own['measure']!r}", "measure")
        kind_of(own["measure"])
        for name in ("id", "title", *(("skip",) if own["skip"] is not None else ())):
            if not isinstance(own[name], str):
                raise StudyError(f"{name} must be a string, got {own[name]!r}", name)
        try:
            check_size(own["trials"], "trials")
        except InputError as error:
            raise StudyError(str(error), "trials") from None
        return Panel(**own, values=values)

    def checked(self) -> "Panel":
        """Return the panel itself, or raise an error that names the key of a value that makes no sense."""
        kind = self.kind
        _check_values(kind, self.values)
        if self.size() > MOST:
            raise StudyError(f"{self.size():,} cells are too many for one panel; {MOST:,} are the most", "trials")
        if self.skip is None:
            for name in (f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING):
                if name not in self.values:
                    raise StudyError(f"{name} is missing, which a cell of {self.measure!r} needs", None)
            for _ in replace(self, trials=1).cells():
                pass  # values that make no sense are an error now, not after an hour
        return self

    @property
    def kind(self) -> type[Cell]:
        """Find the kind of its cells."""
        return kind_of(self.measure)

    def grid(self) -> PanelGrid:
        """Describe its grid, for those who draw it."""
        return PanelGrid(self.values, self.axes(), self.title)

    def axes(self) -> dict[str, list[Any]]:
        """Fields with more than one value, in the order of the file."""
        kind = self.kind
        lists = {k: list(v) for k, v in self.values.items() if isinstance(v, list | tuple) and is_axis(kind, k)}
        return {k: v for k, v in lists.items() if len(v) > 1}

    def size(self) -> int:
        """Count its cells, at most: some combinations may be the same measurement."""
        return self.trials * math.prod(len(values) for values in self.axes().values())

    def cells(self) -> Iterator[Cell]:
        """All cells, the first trial of all before the second of any, so that a whole picture is there early."""
        if self.skip is not None:
            return
        kind = self.kind
        values = kind.complete(self.values)
        options = [
            [(name, item) for item in value]
            if isinstance(value, list | tuple) and is_axis(kind, name)
            else [(name, value)]
            for name, value in values.items()
        ]
        for trial in range(self.trials):
            seen = set()
            for combination in itertools.product(*options):
                chosen: dict[str, Any] = kind.chosen(dict(combination))
                chosen = {k: tuple(v) if isinstance(v, list) else v for k, v in chosen.items()}
                cell = kind(**chosen, trial=trial)
                cell = cell.settle()
                if cell not in seen:
                    seen.add(cell)
                    yield cell

    def changed(self, **values: Any) -> "Panel":
        """Change some values."""
        return replace(self, values={**self.values, **values})

    def to_dict(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _OWN if getattr(self, name) not in ("", None)}
        return {**own, **self.values}


def _check_values(kind: type[Cell], values: Mapping[str, Any]) -> None:
    """Raise an error that names the key unless all values are known, of the right type, and of some meaning."""
    known = [f.name for f in fields(kind) if f.name != "trial"]
    for name, value in values.items():
        if name not in known:
            raise StudyError(f"unknown key {name!r}; {hint(name, [*_OWN, *known])}", name)
        listed = isinstance(value, list | tuple) and is_axis(kind, name)
        if listed and not value:
            raise StudyError(f"{name} is empty, so there is nothing to measure; name at least one", name)
        for item in value if listed else [value]:
            check_argument(Any, item, name)
            if not allows(kind, name, item):
                raise StudyError(f"{name} must be {wants(kind, name)}, or a list of them, got {item!r}", name)
        if isinstance(value, list | tuple) and len({repr(item) for item in value}) < len(value):
            raise StudyError(f"{name} names a value twice, leave one out: {', '.join(map(str, value))}", name)
    kind.refuse(values)


@public
@dataclass(frozen=True)
class Study:
    """Panels with a name, how a figure lays them out (rows of their ids), and claims about them.

    `Study("mine", {"map": ["rf", "raf"], "n": [10, 20, 40], "d": 64, "trials": 3})` is one with a single panel.
    """

    name: str
    panels: tuple[Panel, ...]
    title: str = ""
    layout: tuple[tuple[str, ...], ...] = ()
    claims: tuple[Claim, ...] = field(default=())

    def __init__(
        self,
        name: str,
        panels: Panel | Mapping[str, Any] | Sequence[Panel | Mapping[str, Any]],
        title: str = "",
        layout: Sequence[Sequence[str]] = (),
        claims: Sequence[Claim | Mapping[str, Any]] = (),
    ) -> None:
        if not isinstance(name, str) or not name or not all(c.isalnum() or c in "-_." for c in name) or name[0] == ".":
            raise StudyError(
                f"a study's name is made of letters, digits, '-', '_' and '.', got {name!r}: give a name", "name"
            )
        if len(name) > LONGEST_NAME:
            raise StudyError(f"a study's name has at most {LONGEST_NAME} characters, got {len(name)}", "name")
        listed = [panels] if isinstance(panels, Panel | Mapping) else list(panels)
        made = tuple(p if isinstance(p, Panel) else Panel.of(p, k) for k, p in enumerate(listed))
        if not made:
            raise InputError(f"the study {name!r} has no panel, so there is nothing to measure")
        ids = [panel.id for panel in made]
        if len(set(ids)) < len(ids):
            raise InputError(f"the study {name!r} has two panels of one id: {', '.join(ids)}")
        rows = tuple(tuple(row) for row in layout) or (tuple(ids),)
        unknown = [each for row in rows for each in row if each not in ids]
        if unknown:
            message = f"the layout of {name!r} names {unknown[0]!r}, which is no panel; known: {', '.join(ids)}"
            raise StudyError(message, "layout")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "panels", made)
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "layout", rows)
        object.__setattr__(self, "claims", tuple(c if isinstance(c, Claim) else Claim.make(c) for c in claims))
        for claim in self.claims:
            self.check_claim(claim)

    def check_claim(self, claim: Claim) -> None:
        """Raise an error unless a claim is about panels and columns that there are."""
        kinds = {panel.id: panel.kind for panel in self.panels}
        if claim.panel not in kinds:
            raise StudyError(f"panel={claim.panel!r} is no panel; {hint(claim.panel, list(kinds))}", "panel")
        kind = kinds[claim.panel]
        own = [f.name for f in fields(kind)]
        claim.check_columns(kind.numbers, [*own, *kind.names, "panel", "study", "part"])

    def jobs(self) -> Iterator[tuple[str, Job]]:
        """(panel, job) of every cell, panel by panel."""
        for panel in self.panels:
            for cell in panel.cells():
                revision = revision_of(cell)
                yield panel.id, Job(key_of(recipe_of(cell), revision), cell, revision)

    def joined(self, other: "Study", layout: Sequence[Sequence[str]]) -> "Study":
        """With panels of another one that this one does not have; `layout` is how they stand together."""
        mine = {panel.id for panel in self.panels}
        more = [panel for panel in other.panels if panel.id not in mine]
        ids = mine | {panel.id for panel in more}
        rows = [[each for each in row if each in ids] for row in layout]
        claims = [*self.claims, *(claim for claim in other.claims if claim.panel not in mine)]
        return Study(self.name, [*self.panels, *more], self.title, [row for row in rows if row], claims)

    def only(self, ids: Sequence[str]) -> "Study":
        """Some of the panels, with what is claimed about them."""
        rows = [[each for each in row if each in ids] for row in self.layout]
        kept = [panel for panel in self.panels if panel.id in ids]
        claims = [claim for claim in self.claims if claim.panel in ids]
        return Study(self.name, kept, self.title, [row for row in rows if row], claims)

    def with_panels(self, panels: Sequence[Panel]) -> "Study":
        return Study(self.name, panels, self.title, self.layout, self.claims)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "layout": [list(row) for row in self.layout],
            "panel": [panel.to_dict() for panel in self.panels],
            "claim": [claim.to_dict() for claim in self.claims],
        }

    @staticmethod
    def from_dict(table: Mapping[str, Any]) -> "Study":
        return Study(
            table["name"], table["panel"], table.get("title", ""), table.get("layout", ()), table.get("claim", ())
        )
