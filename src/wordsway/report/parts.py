"""Parts of a report. They say what to show; the templates say how."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from wordsway.measures.results import WordExplanation

MOST_ROWS = 20_000  # of a table in a page; a larger one is a file of its own
FIRST_ROWS = 50  # that are there without a script, and on a page of a table


@dataclass(frozen=True)
class Picture:
    """A vector figure. `caption` says what to see."""

    kind: ClassVar[str] = "picture"
    title: str
    svg: str  # markup, made by us
    caption: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A table that can be sorted, filtered and taken away as CSV. `note` says what is not in it."""

    kind: ClassVar[str] = "grid"
    title: str
    name: str  # of the CSV file
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    @staticmethod
    def of(
        title: str,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        hidden: Sequence[str] = (),
        more: str = "",
        fold: bool = False,
    ) -> "Grid":
        """From rows as dicts; columns in which nothing stands are left out. `more` says where the whole table is; with
        `fold`, a column that is the same in all rows becomes a word of the note."""
        columns = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in hidden]
        columns = [key for key in columns if any(row.get(key) is not None for row in rows)]
        said = []
        if fold and len(rows) > 1:
            same = [key for key in columns if all(row.get(key) == rows[0].get(key) for row in rows)]
            columns = [key for key in columns if key not in same]
            told = [f"{key} {value}" for key in same if (value := plain_value(rows[0][key])) not in ("", None)]
            said += ["The same in all rows: " + ", ".join(told) + "."] if told else []
        kept = rows[:MOST_ROWS]
        if len(kept) < len(rows):
            said.append(f"These are the first {len(kept):,} of {len(rows):,} rows.")
        said += [more] if more else []
        cells = [[plain_value(row.get(key)) for key in columns] for row in kept]
        return Grid(title, name, tuple(columns), cells, " ".join(said))

    @property
    def first(self) -> Sequence[Sequence[Any]]:
        return self.rows[:FIRST_ROWS]

    @property
    def data(self) -> dict[str, Any]:
        return {"name": self.name, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class Facts:
    """Names with what is known of them: how a result was made."""

    kind: ClassVar[str] = "facts"
    title: str
    facts: Sequence[tuple[str, str]]
    command: str | None = None


@dataclass(frozen=True)
class Words:
    """A text with each word on a shade. `ends` say what the palest and the darkest shade are, `stretched` what the
    palest is on a scale from the smallest value; `explains` whether details of words can be computed."""

    kind: ClassVar[str] = "words"
    title: str
    pieces: Sequence[Any]  # str between words, and Shaded words
    ends: tuple[str, str]
    stretched: str
    hint: str
    cropped: int
    details: Mapping[int, "Detail"]
    explains: bool
    bars: Sequence["Bar"] = ()
    caption: str = "What was found for each word (dark) and what is proven to be the most (pale)"  # of the bars


@dataclass(frozen=True)
class Shaded:
    """A word as it stands in the text. `notes` are what is known of it, a line each; where these are a lower and an
    upper bound, a line is drawn of them."""

    word: int
    text: str
    level: int  # on a scale from 0; words that are not separated share it
    stretched: int  # on a scale from the smallest value of the text
    rank: str  # "1", or "1-4" where four words tie
    top: bool  # one word of a text, where its keyboard focus begins
    of: int
    notes: tuple[str, ...]
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Bar:
    """A word with what was found and what is proven, and both as shares of the longest bar, in per cent."""

    text: str
    rank: str
    found: float
    proven: float | None
    full: float
    pale: float


@dataclass(frozen=True)
class Seen:
    """The weight that one token gives the word, before and after."""

    token: str
    before: float
    after: float


@dataclass(frozen=True)
class Detail:
    """Effects of one word's move, ready to be shown."""

    explained: WordExplanation
    seen: Sequence[Seen]
    hidden: int  # tokens that are not listed, as they changed least
    mass: tuple[float, float] | None


@dataclass(frozen=True)
class Claims:
    """Predictions beside what was measured."""

    kind: ClassVar[str] = "claims"
    title: str
    verdicts: Sequence[Any]


@dataclass(frozen=True)
class Heading:
    """A part of the page begins; `text` is a sentence or two about it."""

    kind: ClassVar[str] = "heading"
    title: str
    text: str = ""


@dataclass(frozen=True)
class Report:
    """A page: what it is about in a line, what was found in a sentence or two, and the parts."""

    title: str
    lead: Sequence[str]
    parts: Sequence[Any] = field(default_factory=tuple)


LEVELS = 9


def level_of(value: float, low: float, high: float) -> int:
    """The shade of a value between two others: 0 to 8."""
    share = float(high > 0) if high <= low else (value - low) / (high - low)
    return min(LEVELS - 1, int(share * LEVELS))


def plain_value(value: Any) -> Any:
    """A value for a table: numbers to six digits, nested values as text, nothing that JSON lacks."""
    if isinstance(value, bool) or value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)
