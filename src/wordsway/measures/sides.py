"""Sides of a comparison: for each kind of result, what its numbers are and what is known about each of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordsway.measures.differences import Measured, ranks_of
from wordsway.measures.draws_result import DrawComparison
from wordsway.measures.flip_radii import FlipRadii
from wordsway.measures.profile_result import RadiusProfile
from wordsway.measures.results import Sensitivity
from wordsway.support.errors import InputError
from wordsway.support.names import RESULT_SUBJECTS
from wordsway.support.result import Result

_IN_FILES = {"word_text": "text", "subject": "map"}  # columns of tables, by their names in saved comparisons
OF_MODELS = (FlipRadii, RadiusProfile)  # two answers about the words of a text, which have ranks in common


@dataclass(frozen=True)
class Side:
    """One of the results that are compared: what it is about, and what its numbers are (`quantity`; `short` heads a
    column, `axis` stands at a picture's axis). `nothing` is how a missing number is shown, and `first` what is ranked
    first: the largest, or the smallest."""

    name: str
    about: str
    quantity: str
    short: str
    axis: str
    nothing: str = "-"
    first: str = "largest"


@dataclass(frozen=True)
class Entry:
    """One row of a side. Rows with equal `key` are compared; `span` are the characters of a word in its text, and
    `group` tells apart what words do not (the map, the radius)."""

    shown: dict[str, Any]
    measured: Measured | None
    rank: tuple[int, int] | None = None
    span: tuple[int, int] | None = None
    group: tuple[Any, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """The values that the row shows, to be matched with rows of other sides."""
        return tuple(self.shown.values())


@dataclass(frozen=True)
class Table:
    """The rows of a side. Two sides have the same quantity where `same` is equal."""

    side: Side
    entries: tuple[Entry, ...]
    same: tuple[Any, ...]
    text: str | None = None


def subject_of(result: Result) -> str:
    """Say in plain words what a result is about."""
    if isinstance(result, FlipRadii):
        return "flips of a classifier" if result.kind == "class" else f"flips of the {result.kind} of a model"
    return RESULT_SUBJECTS[result.format.rpartition("/")[0]]


def sides_of(results: Sequence[Result], names: Sequence[str], column: str | None) -> list[Table]:
    """Read results of one kind, or answers about the words of a text by several models, as sides."""
    kinds = {type(result) for result in results}
    mixed = all(isinstance(result, OF_MODELS) for result in results)
    if len(kinds) > 1 and not mixed:
        subjects = [subject_of(result) for result in results]
        first, other = subjects[0], next(each for each in subjects if each != subjects[0])
        message = f"one result is about {first}, another about {other}: only results of one kind can be compared"
        raise InputError(message, argument="results")
    if len(kinds) > 1 and column is not None:
        raise InputError("a column is of results of one kind; these are of several", argument="column")
    if results[0].compared is None:
        raise InputError(f"results about {subject_of(results[0])} have no rows in common", argument="results")
    if column is not None and column != results[0].compared[1]:
        return [_plain(result, name, column) for result, name in zip(results, names, strict=True)]
    radii = _radii(results)
    maps = _maps(results)
    tables = []
    for result, name in zip(results, names, strict=True):
        if isinstance(result, FlipRadii):
            tables.append(_flips(result, name))
        elif isinstance(result, RadiusProfile):
            tables.append(_profile(result, name, radii))
        elif isinstance(result, Sensitivity) and result.words:
            tables.append(_sensitivity(result, name))
        elif isinstance(result, DrawComparison):
            tables.append(_draws(result, name, maps))
        else:
            tables.append(_plain(result, name, results[0].compared[1]))
    return tables


def _radii(results: Sequence[Result]) -> list[float]:
    """The radii of profiles that are compared: those that all have; beside flips, the smallest of them."""
    profiles = [result for result in results if isinstance(result, RadiusProfile)]
    if not profiles:
        return []
    shared = [radius for radius in profiles[0].radii if all(radius in each.radii for each in profiles[1:])]
    if len(profiles) == len(results) and shared:
        return shared
    return shared[:1] if shared else []


def _maps(results: Sequence[Result]) -> bool:
    """Whether rows of draws are told apart by their maps: not where each result has one map, of another name."""
    named = [[each.name for each in result.maps] for result in results if isinstance(result, DrawComparison)]
    return not (named and all(len(each) == 1 for each in named) and len({each[0] for each in named}) > 1)


def _flips(result: FlipRadii, name: str) -> Table:
    sure = "" if result.probability is None else f", probability {result.probability:.3g}"
    what = "prediction" if result.kind == "class" else result.kind
    side = Side(
        name,
        f"{what} {result.prediction!r}{sure}",
        f"flips at: the smallest change of a word's embedding found to change the {what}, in units of the word's own "
        f"norm (searched up to {result.limit:g})",
        "flips at",
        f"smallest change found that changes the {what},\nin units of the word's own norm",
        nothing=f"none to {result.limit:g}",
        first="smallest",
    )
    entries = []
    for word, rank in zip(result.words, result.flip_ranks, strict=True):
        found = None if word.radius is None else result.known(word)
        entries.append(Entry({"word": word.word, "text": word.text}, found, rank, word.span))
    return Table(side, tuple(entries), ("flips", result.kind), _text(result.text))


def _profile(result: RadiusProfile, name: str, radii: Sequence[float]) -> Table:
    chosen = [radius for radius in result.radii if radius in radii] or [result.radii[0]]
    output = result.map.get("output", "features")
    at = f"radius {chosen[0]:g}" if len(chosen) == 1 else "each radius"
    short = f"change at {chosen[0]:g}" if len(chosen) == 1 else "change"
    side = Side(
        name,
        f"output {output}" if "output" in result.map else f"map {result.map['map']}",
        f"change at {at}: the largest relative change of the output found when a word's embedding may change by "
        + (f"{chosen[0]:g} of its own norm" if len(chosen) == 1 else "the radius, in units of its own norm"),
        short,
        f"largest relative change of the output found,\nat {at} (1: the word's own norm)",
    )
    entries: list[Entry] = []
    for radius in chosen:
        k = result.radii.index(radius)
        known = [
            Measured(word.lower[k], word.lower[k], _top(word.upper[k]), result.search_spread) for word in result.words
        ]
        ranks = ranks_of(known, smallest_first=False)
        beside = {"radius": radius} if len(chosen) > 1 else {}
        group = (radius,) if len(chosen) > 1 else ()
        rows = [
            Entry({"word": word.word, "text": word.text} | beside, measured, rank, word.span, group)
            for word, measured, rank in zip(result.words, known, ranks, strict=True)
        ]
        entries += sorted(rows, key=lambda row: -_value(row))
    return Table(side, tuple(entries), ("change", output, tuple(chosen)), _text(result.text))


def _sensitivity(result: Sensitivity, name: str) -> Table:
    output = result.map.get("output", "features")
    about = f"output {output}" if "output" in result.map else f"map {result.map['map']}, one draw of its weights"
    radius = result.radius / math.sqrt(result.d)
    rescaled = result.text is None or bool(result.text.get("normalized"))
    reach = f"{radius:.3g} of its own norm" if rescaled else "the radius that was asked for"
    side = Side(
        name,
        about,
        f"change: the largest relative change of the output found when a word's embedding may change by {reach}",
        "change",
        "largest relative change of the output found",
    )
    entries = []
    for word in result.words or ():
        measured = Measured(word.lower, word.lower, _top(word.upper), result.spread)
        shown = {"word": word.word, "text": word.text}
        entries.append(Entry(shown, measured, (word.rank, word.tied), word.span))
    ordered = tuple(sorted(entries, key=lambda row: -_value(row)))
    # Where rows were not rescaled, the radius is in a model's own units: equal numbers mean the same in one model only.
    asked = (f"{radius:.6g}", None if rescaled else str(result.map.get("model", result.text)))
    return Table(side, ordered, ("change", output, *asked), _text(result.text))


def _draws(result: DrawComparison, name: str, maps: bool) -> Table:
    count = len(result.seeds)
    several = f"{count} draws of the weights" if count > 1 else "1 draw of the weights"
    named = ", ".join(each.name for each in result.maps)
    reach = "its own norm" if result.radius == 1 else f"{result.radius:g} of its own norm"
    side = Side(
        name,
        f"{named}; {several}, seed {result.seeds[0]}",
        f"change: the mean over draws of the largest relative change of a map's features found when a word's embedding "
        f"may change by {reach}",
        "mean change",
        "largest relative change of the features found,\nmean over draws",
    )
    entries = []
    for each in result.maps:
        for word in each.ranked:
            measured = Measured(
                word.mean, sd=word.sd, count=count, draws=word.lower, seeds=result.seeds, known=count > 1
            )
            beside = {"map": each.name} if maps else {}
            shown = beside | {"word": word.word, "text": word.text}
            entries.append(Entry(shown, measured, (word.rank, word.tied), word.span, tuple(beside.values())))
    return Table(side, tuple(entries), ("draws", result.radius), _text(result.text))


def _plain(result: Result, name: str, column: str) -> Table:
    """Read a column of any result's table. A mean over trials keeps its sd."""
    keys, usual = result.compared or ((), column)
    rows = result.records()
    if rows and not any(key in rows[0] for key in keys):  # moves of tokens, which are no words
        keys = ("token",)
    if rows and column not in rows[0]:
        known = ", ".join(each for each in rows[0] if each not in keys)
        raise InputError(f"there is no column {column!r}; the results have: {known}", argument="column")
    entries = []
    for row in rows:
        value = row[column]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"the column {column!r} has no numbers, but {value!r}", argument="column")
        averaged = column == usual == "mean" and "sd" in row and "trials" in row
        more: dict[str, Any] = {"sd": row["sd"], "count": row["trials"]} if averaged else {"known": False}
        measured = None if value is None else Measured(float(value), **more)
        entries.append(Entry({_key(key, row): row.get(key) for key in keys}, measured))
    what = subject_of(result)
    side = Side(name, what, f"{column}: a column of the table of results about {what}", column, column)
    return Table(side, tuple(entries), (column,))


def _key(column: str, row: Mapping[str, Any]) -> str:
    """Name what tells rows apart as saved comparisons do: their word is `text`, unless that is the whole text."""
    return _IN_FILES.get(column, column) if "word_text" in row and "text" not in row else column


def _value(entry: Entry) -> float:
    return 0.0 if entry.measured is None else entry.measured.value


def _top(bound: float | None) -> float:
    return math.inf if bound is None else bound


def _text(about: dict[str, Any] | None) -> str | None:
    return None if about is None else str(about.get("text"))
