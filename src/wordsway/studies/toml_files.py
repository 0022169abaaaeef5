"""Studies as TOML files: the built-in ones, and a user's own. An error names the line."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from wordsway.models.loading.reinit import split_name
from wordsway.studies.cells.base import Cell
from wordsway.studies.cells.kinds import kind_of
from wordsway.studies.claims import Claim, hint
from wordsway.studies.study import Panel, Study
from wordsway.studies.toml_shape import check_shape
from wordsway.support.errors import InputError, StudyError, one_line
from wordsway.support.files import decode, read_bytes
from wordsway.support.names import SCALES, studies
from wordsway.support.public_gate import public

_TOP = ("name", "title", "layout", "panel", "claim")
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".gguf", ".safetensors")
_HEADING = re.compile(r"^\s*(\[\[?)\s*([\w.\-\"' ]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""^\s*["']?([\w-]+)["']?\s*=""")


@public
def find_study(name: str, scale: str = "paper") -> Study:
    """Find a built-in study by its name; a panel's id after it picks that panel: "fig3a", "fig2-left"."""
    (study,) = draft_studies([name], scale)
    return study.with_panels([panel.checked() for panel in study.panels])


def draft_studies(names: Sequence[str], scale: str = "paper") -> list[Study]:
    """Read built-in studies, each with the panels that were named of it, or all. Values of their grids are not checked:
    they are ours, and may be changed before they are used."""
    read: dict[str, Study] = {}
    wanted: dict[str, list[str]] = {}
    for name in names:
        study, rest = _split(name.lower())
        if study not in read:
            file = _folder() / f"{study}.toml"
            read[study] = _Reader(file.read_text(encoding="utf-8"), f"{study}.toml", None).study(scale)
        ids = [panel.id for panel in read[study].panels]
        if rest and rest not in ids:
            raise InputError(f"{study} has no panel {rest!r}; it has: {', '.join(ids)}")
        wanted.setdefault(study, []).extend([rest] if rest else ids)
    return [study.only(wanted[name]) for name, study in read.items()]


def _split(name: str) -> tuple[str, str]:
    """Take a name apart: the study, and the id of a panel where there is one."""
    names = studies()
    match = next((known for known in sorted(names, key=len, reverse=True) if name.startswith(known)), None)
    if match is None:
        raise InputError(f"there is no study {name!r}; known: {', '.join(names)}")
    return match, name[len(match) :].lstrip("-")


def layout_of(name: str) -> list[list[str]]:
    """Read how the panels of a whole built-in study stand in its figure."""
    table = tomllib.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))
    return table.get("layout") or [[panel.get("id", str(k + 1)) for k, panel in enumerate(table["panel"])]]


@public
def load_study(path: str | os.PathLike[str], scale: str = "paper") -> Study:
    """Read a study from a file of your own. Its paths are relative to its folder and stay inside it."""
    file = Path(path)
    if not file.is_file():
        known = f"; built-in studies: {', '.join(studies())}"
        raise InputError(
            f"there is no study file {str(path)!r}"
            + (" (it is a folder; name a .toml file in it)" if file.is_dir() else known)
        )
    return _Reader(decode(read_bytes(file), str(path)), str(path), file.parent).study(scale)


def _folder() -> Any:
    return files("wordsway.studies") / "built_in"


Place = tuple[str | int, ...]


@dataclass(frozen=True)
class _Reader:
    """One file: its text, its name, and the folder that its paths may point into (None: it is built in, has no paths,
    and its panels are drafts)."""

    text: str
    name: str
    folder: Path | None

    def study(self, scale: str) -> Study:
        if scale not in SCALES:
            raise InputError(f"scale={scale!r} is not known; use one of: {', '.join(SCALES)}")
        check_shape(self.text, self.name)
        try:
            table = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            place = re.search(r"^(.*) \(at line (\d+), column (\d+)\)$", str(error))
            message = f", line {place[2]}: {place[1]} (column {place[3]})" if place else f": {error}"
            raise InputError(f"{self.name}{message}") from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, for one
            raise InputError(f"{self.name}: {one_line(error)}") from None
        for key in table:
            if key not in _TOP:
                raise self.error(f"unknown key {key!r}; {hint(key, _TOP)}", (key,))
        for key in ("panel", "claim"):
            listed = table.get(key, [])
            if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
                raise self.error(f"{key} must be written as a table in double brackets, [[{key}]]", (key,))
        if not table.get("panel"):
            raise self.error("a study needs at least one [[panel]], with map, n and d for a start", ())
        title = table.get("title", "")
        if not isinstance(title, str):
            raise self.error(f"title must be a string, got {title!r}", ("title",))
        layout = table.get("layout", [])
        if not isinstance(layout, list) or not all(
            isinstance(row, list) and all(isinstance(item, str) for item in row) for row in layout
        ):
            raise self.error('layout must be rows of panel ids, as [["a", "b"], ["c"]]', ("layout",))
        panels = [self.panel(part, number, scale) for number, part in enumerate(table["panel"])]
        try:
            study = Study(table.get("name", Path(self.name).stem), panels, title, layout)
        except InputError as error:
            key = error.key if isinstance(error, StudyError) else None
            raise self.error(str(error), (key or "name",)) from None
        claims = [self.claim(study, part, number) for number, part in enumerate(table.get("claim", []))]
        return Study(study.name, panels, title, layout, claims)

    def panel(self, table: dict[str, Any], number: int, scale: str) -> Panel:
        """Read the panel at one scale. In a user's file the others are checked too: a mistake should not wait until
        somebody asks for them."""
        place: Place = ("panel", number)
        for name, value in table.items():
            if name in SCALES and not isinstance(value, dict):
                raise self.error(f"{name} must be a table of values for that scale, [panel.{name}]", (*place, name))
            if name not in SCALES and isinstance(value, dict):
                raise self.error(f"{name!r} is no scale; those are: {', '.join(SCALES)}", (*place, name))
        others = [] if self.folder is None else [name for name in SCALES if name != scale]
        for name in others:
            self.scaled(table, place, name)
        return self.scaled(table, place, scale)

    def scaled(self, table: dict[str, Any], place: Place, scale: str) -> Panel:
        merged = {key: value for key, value in table.items() if key not in SCALES}
        homes: dict[str, Place] = {key: (*place, key) for key in merged}
        for key, value in table.get(scale, {}).items():
            merged[key] = value
            homes[key] = (*place, scale, key)
        for key in _paths(merged.get("measure", "sensitivity")):
            if key in merged:
                value = merged[key]
                listed = [self.inside(item, homes[key]) for item in (value if isinstance(value, list) else [value])]
                merged[key] = listed if isinstance(value, list) else listed[0]
        try:
            panel = Panel.draft(merged, int(place[1]))
            return panel if self.folder is None else panel.checked()
        except InputError as error:
            raise self.error(str(error), homes.get(error.argument or "", place)) from None

    def claim(self, study: Study, table: Mapping[str, Any], number: int) -> Claim:
        try:
            claim = Claim.make(table)
            study.check_claim(claim)
        except StudyError as error:
            raise self.error(str(error), ("claim", number, *([error.key] if error.key else []))) from None
        return claim

    def inside(self, value: Any, place: Place) -> Any:
        """A path as it is from anywhere; names of data sets and models as they are."""
        if not isinstance(value, str):
            return value
        try:
            name, redraw = split_name(value)
        except InputError as error:
            raise self.error(str(error), place) from None
        if redraw is not None:
            return redraw.named(self.inside(name, place))
        if not self._is_path(value):
            return value
        if self.folder is None:
            raise self.error(f"{value!r} is a path, and a study that comes along has none", place)
        home = self.folder.resolve()
        target = (home / Path(value).expanduser()).resolve()
        if not target.is_relative_to(home):
            raise self.error(
                f"the path {value!r} is outside the study's folder; put it there, or give it on the command line "
                "with --data or --encoder",
                place,
            )
        if not target.exists():
            raise self.error(f"there is no file or folder {value!r} in the study's folder", place)
        return str(target)

    def _is_path(self, value: str) -> bool:
        if value.startswith((".", "/", "~", "\\")) or ".." in Path(value).parts or Path(value).is_absolute():
            return True
        return value.endswith(_SUFFIXES) or (
            self.folder is not None and "/" in value and (self.folder / value).exists()
        )

    def error(self, message: str, place: Place) -> InputError:
        lines = _lines(self.text)
        while place and place not in lines:
            place = place[:-1]
        where = f", line {lines[place]}" if place in lines else ""
        return InputError(f"{self.name}{where}: {message}")


def _paths(measure: Any) -> tuple[str, ...]:
    """Fields of a kind of cell that may name a file or folder; a kind that is not known is an error elsewhere."""
    try:
        return kind_of(measure).paths if isinstance(measure, str) else Cell.paths
    except InputError:
        return Cell.paths


def _lines(text: str) -> dict[Place, int]:
    """The line of every table and key, as ("panel", 0, "n"); good enough for files as people write them."""
    found: dict[Place, int] = {}
    counts: dict[str, int] = {}
    place: Place = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if quote:
            quote = "" if quote in line else quote
            continue
        heading, key = _HEADING.match(line), _KEY.match(line)
        if heading:
            parts = [part.strip(" \"'") for part in heading[2].split(".")]
            if heading[1] == "[[":
                counts[parts[0]] = counts.get(parts[0], -1) + 1
            place = (parts[0], *((counts[parts[0]],) if parts[0] in counts else ()), *parts[1:])
            found.setdefault(place, number)
        elif key:
            found.setdefault((*place, key[1]), number)
        quote = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
    return found
