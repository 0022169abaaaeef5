"""The result of a call with a list of texts: the results of all of them, one after the other."""

from dataclasses import dataclass
from typing import Any, ClassVar

from wordsway import __version__
from wordsway.support.digits import count_of
from wordsway.support.plotting import dots
from wordsway.support.result import Result, result_of

_MOST_DOTS = 40


@dataclass(frozen=True, eq=False, repr=False)
class TextResults(Result):
    """The results of several `texts`, in their order: `results[0]` is that of the first. The table of all,
    `.to_dataframe()`, has their tables below one another, with the number of the text from 1 as `text_number`."""

    format: ClassVar[str] = "wordsway.texts/1"

    texts: tuple[str, ...]
    results: tuple[Any, ...]
    version: str = __version__
    made: dict[str, Any] | None = None

    @property
    def compared(self) -> tuple[tuple[str, ...], str] | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The columns that tell rows apart, and the one that is compared."""
        keys, column = self.results[0].compared
        return ("text_number", *keys), column

    def summary(self) -> str:
        """Say how much was measured."""
        kind, texts, rows = type(self.results[0]).__name__, len(self.texts), len(self.records())
        return f"{kind} of {count_of(texts, 'text')}, {count_of(rows, 'row')}"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: that of each text below one another."""
        return [
            {"text_number": number, **row} for number, result in enumerate(self.results, 1) for row in result.records()
        ]

    def attributes(self) -> dict[str, Any]:
        """Say what the table is about: also the texts, in their order."""
        return super().attributes() | {"texts": list(self.texts)}

    def plot(self, ax: Any = None) -> Any:
        """Draw a dot for each row (the first 40), text by text; `results[0].plot()` draws one. Returns the axes."""
        keys, column = self.compared or ((), "")
        rows = [row for row in self.records() if row.get(column) is not None]
        shown = rows[:_MOST_DOTS]
        names = [f"text {row['text_number']}: {_name(row, keys[1:])}" for row in shown]
        more = "" if len(rows) <= len(shown) else f" (the first {len(shown)} of {len(rows)} rows)"
        title = f"{column} in {len(self.texts)} texts{more}"
        return dots(ax, names, [row[column] for row in shown], [None] * len(shown), 0.0, column, title)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but what is in memory only, as JSON values."""
        own = {"format": self.format, "texts": list(self.texts), "version": self.version, "made": self.made}
        return own | {"results": [result.to_dict() for result in self.results]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TextResults":
        """Make a result from what `to_dict` gave."""
        texts, parts = values["texts"], values["results"]
        if not isinstance(texts, list) or not isinstance(parts, list) or len(texts) != len(parts):
            raise TypeError("texts and results must be two lists of one length")
        results = tuple(result_of(part, f"result {number}") for number, part in enumerate(parts, 1))
        return cls(tuple(texts), results, values.get("version", __version__), values.get("made"))


def _name(row: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Name a row by a word where it has one, else by what tells it apart."""
    return str(row["word_text"]) if "word_text" in keys else ", ".join(f"{key} {row[key]}" for key in keys)
