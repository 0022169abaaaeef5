"""The result of `measure_texts`: the words of many texts, and what they have in common."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from wordsway import __version__
from wordsway.studies.corpus_findings import about_texts, about_words
from wordsway.studies.corpus_pictures import draw_texts, draw_words, height_of, panels
from wordsway.studies.word_ranking import ranked, with_easier_than
from wordsway.support.digits import count_of
from wordsway.support.errors import InputError
from wordsway.support.plotting import new_axes
from wordsway.support.result import Result

# Columns of the table in their order, and what each of them says. A table has those that apply to what was measured.
COLUMNS = {
    "text_number": "number of the text, from 1: its row in your table",
    "text": "the text",
    "subject": "the model or map",
    "word": "number of the word in its text, from 1",
    "word_text": "the word",
    "word_kind": "content, function (such as the, of, not) or punctuation",
    "rank": "rank in its text by real_distance, 1 first; words that no real word flips share the last one",
    "prediction": "the class (or next token) that the model predicts for the text as it is",
    "probability": "the probability of that prediction",
    "radius": "the largest change of the word's embedding that was allowed, in units of the embedding's own norm",
    "flips_at": "the smallest change found that flips the prediction, in the same units; empty: none found",
    "flips_to": "the prediction after that change",
    "easier_than": "share of the other words of its text that need a larger change to flip it: 0.5 is an average word, "
    "words without a flip need more than those with one; empty: nothing to compare with",
    "real_word": "the nearest real word that flips the prediction in its place; empty: none of those tried",
    "real_distance": "the distance of that real word, in the same units",
    "tried": "how many real words were tried in its place, the nearest first",
    "probability_after": "the lowest probability of the prediction found within the radius",
    "best_word": "of the real words tried, the one that lowers that probability most",
    "best_probability": "the probability with that real word",
    "prediction_after": "the prediction after the step",
    "flips": "1 where the step flips the prediction",
    "fall": "by how much the step lowers the probability of the prediction",
    "change": "the largest relative change of the output found; more may be possible",
    "upper": "no change within the radius can exceed this",
    "relative": "fall or change over its mean in the text: 1 is an average word there",
}


@dataclass(frozen=True, repr=False)
class Corpus(Result):
    """The words of many `texts`: one row a word and subject (a model or a map); in each text in the order of its
    answer, what flips first or the largest change. `columns` are the user's own, with a value for each text. `failed`
    has the error of each text (by its number from 1) that could not be measured, `empty` the numbers of empty ones.
    `COLUMNS` says what each column means."""

    format: ClassVar[str] = "wordsway.corpus/2"

    subjects: tuple[str, ...]
    texts: tuple[str, ...]
    budget: str
    rows: tuple[dict[str, Any], ...]
    columns: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    empty: tuple[int, ...] = ()
    version: str = __version__
    made: dict[str, Any] | None = None

    @staticmethod
    def of(
        texts: Sequence[str],
        subjects: Sequence[str],
        by_cell: Mapping[tuple[str, str], Sequence[dict[str, Any]]],
        errors: Mapping[tuple[str, str], str],
        columns: Mapping[str, Sequence[Any]],
        budget: str,
    ) -> "Corpus":
        """Put the rows of (subject, text) into the order of the texts."""
        rows: list[dict[str, Any]] = []
        failed: dict[str, str] = {}
        for subject in subjects:
            for number, text in enumerate(texts, 1):
                answer = by_cell.get((subject, text))
                if answer is None and text.strip():
                    failed[str(number)] = errors.get((subject, text), "not measured")
                about = {"text_number": number, "subject": subject}
                rows += [about | row for row in _completed(answer or ())]
        empty = tuple(number for number, text in enumerate(texts, 1) if not text.strip())
        own = {name: list(values) for name, values in columns.items()}
        return Corpus(tuple(subjects), tuple(texts), budget, tuple(rows), own, failed, empty)

    @property
    def compared(self) -> tuple[tuple[str, ...], str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The columns that tell rows apart, and the one that separates words."""
        return ("text_number", "word", "word_text"), self.separating()

    @property
    def measured(self) -> int:
        """The number of texts with results."""
        return len({row["text_number"] for row in self.rows})

    def separating(self, subject: str | None = None) -> str:
        """Name the column that separates the words of a subject: "flips_at" (the smaller, the easier to flip), "fall"
        or "change"."""
        row = self._of(subject)[0]
        return next(name for name in ("flips_at", "fall", "change") if name in row)

    def summary(self) -> str:
        """Say how much was measured."""
        names = ", ".join(self.subjects)
        more = f"; {count_of(len(self.failed), 'text')} failed" if self.failed else ""
        return f"{names}: {count_of(len(self.rows), 'word')} of {count_of(self.measured, 'text')}{more}"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a word of a text and a subject, with the text and the user's own columns."""
        found = []
        for row in self.rows:
            place = row["text_number"] - 1
            own = {name: values[place] for name, values in self.columns.items()}
            rest = {name: value for name, value in row.items() if name != "text_number"}
            found.append({"text_number": place + 1, **own, "text": self.texts[place], **rest})
        return found

    def words(self, subject: str | None = None) -> list[dict[str, Any]]:
        """Rank the words that occur often enough, without regard to case. `value` compares a word with the others of
        its own text, so it does not depend on how near the text is to a tie: the mean over texts of `easier_than` of a
        prediction (`flipped` is the share of occurrences with a flip, `real` that with a real word), else of
        `relative`. From three texts on it has an interval (`low` to `high`), by which words are ranked; all of them
        hold together with a probability of 95% (Bonferroni's). `compared` counts the texts that have a value."""
        return ranked(self._of(subject), lambda row: row["word_text"].casefold(), rare=False)

    def kinds(self, subject: str | None = None) -> list[dict[str, Any]]:
        """Rank the kinds of words in the same way."""
        return ranked(self._of(subject), lambda row: row["word_kind"], rare=True)

    def shared_words(self, subject: str | None = None) -> list[dict[str, Any]]:
        """Return the words that can be compared in several texts, in the order of `words`."""
        return [line for line in self.words(subject) if line["compared"] > 1]

    def by_text(self, subject: str | None = None) -> list[dict[str, Any]]:
        """Summarise each text: its prediction, the nearest real word that flips it (`real_word` for `real_of`), the
        `first_word`, which needs the smallest change (or makes the largest), and for how many words a flip was
        found."""
        separating = self.separating(subject)
        groups: dict[int, list[dict[str, Any]]] = {}
        for row in self._of(subject):
            groups.setdefault(row["text_number"], []).append(row)
        found = []
        for number, rows in groups.items():
            line: dict[str, Any] = {"text_number": number, "text": self.texts[number - 1], "words": len(rows)}
            line |= {name: rows[0][name] for name in ("prediction", "probability") if name in rows[0]}
            if separating == "flips_at":
                near = min(rows, key=lambda row: math.inf if row["flips_at"] is None else row["flips_at"])
                real = rows[0]  # the first of the answer
                line |= {"real_of": real["word_text"] if real["real_word"] is not None else None}
                line |= {"real_word": real["real_word"], "real_distance": real["real_distance"]}
                line |= {"first_word": near["word_text"] if near["flips_at"] is not None else None}
                line |= {"flips_at": near["flips_at"], "flips_to": near["flips_to"]}
                line |= {"flipped": _count(rows, "flips_at"), "real_flips": _count(rows, "real_word")}
                found.append(line)
                continue
            top = max(rows, key=lambda row: row[separating])
            line |= {"first_word": top["word_text"], separating: top[separating]}
            line["mean"] = statistics.fmean(row[separating] for row in rows)
            found.append(line | ({"flips": sum(row["flips"] for row in rows)} if "flips" in top else {}))
        return found

    def finding(self, subject: str | None = None) -> str:
        """Say how many texts flip, and the median and spread over texts of what one word can do."""
        limit = self._of(subject)[0]["radius"]  # the same in all rows
        about = about_texts(self.by_text(subject), self.separating(subject), limit)
        return f"{subject or self.subjects[0]}: {about}"

    def leading(self, subject: str | None = None) -> str:
        """Say which words are separated from an average word of their texts over three texts or more; empty where no
        word occurs in as many."""
        return about_words(self.words(subject), self.separating(subject))

    def plot(self, ax: Any = None) -> Any:
        """Draw the texts of the first subject, and beside them the words that occur in several. On a given `ax`, only
        the texts. Returns the axes of the texts."""
        if ax is not None:
            return self.plot_texts(ax)
        shared = self.shared_words()
        places = panels(len(shared), height_of(len(self.by_text())))
        if shared:
            draw_words(places[1], shared, self.separating())
        return self.plot_texts(places[0])

    def plot_texts(self, ax: Any = None) -> Any:
        """Draw the smallest flip (or the largest fall or change) of each text with the word that needs it, or of more
        than 40 texts how it is distributed. Returns the axes."""
        lines = self.by_text()
        axes = ax or new_axes(8.0, 1.7 + 0.28 * height_of(len(lines)))
        title = self.finding().replace("; ", "\n").replace(": median", ":\nmedian")
        return draw_texts(axes, lines, self.separating(), self.rows[0]["radius"], title)

    def plot_words(self, ax: Any = None) -> Any:
        """Draw the words that occur in several texts. Returns the axes."""
        shared = self.shared_words()
        if not shared:
            raise InputError("no word can be compared in several texts")
        return draw_words(ax, shared, self.separating())

    def _of(self, subject: str | None) -> list[dict[str, Any]]:
        wanted = self.subjects[0] if subject is None else subject
        if wanted not in self.subjects:
            raise InputError(f"{wanted!r} was not measured; use one of: {', '.join(self.subjects)}", argument="subject")
        rows = [row for row in self.rows if row["subject"] == wanted]
        if not rows or "flips_at" not in rows[0] or "easier_than" in rows[0]:
            return rows
        texts: dict[int, list[dict[str, Any]]] = {}  # of a file of an earlier version
        for row in rows:
            texts.setdefault(row["text_number"], []).append(row)
        return [row for each in texts.values() for row in with_easier_than(each)]


def _completed(answer: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a text with the columns that they have, in their order, and what follows from them."""
    rows: list[dict[str, Any]] = []
    for row in answer:
        full = {**row, "radius": row["allowed"]}
        if "prediction_after" in row:
            full["fall"] = row["probability"] - row["probability_after"]
        rows.append({name: full[name] for name in COLUMNS if name in full and name not in ("text", "subject")})
    separating = next((name for name in ("flips_at", "fall", "change") if rows and name in rows[0]), "flips_at")
    if separating == "flips_at":
        rows = with_easier_than(rows)
        rows = [{name: row[name] for name in COLUMNS if name in row} for row in rows]  # in their order
    else:
        mean = statistics.fmean(row[separating] for row in rows) or 1.0
        rows = sorted((row | {"relative": row[separating] / mean} for row in rows), key=lambda row: -row[separating])
    if all(row.get("upper") is None for row in rows):
        rows = [{name: value for name, value in row.items() if name != "upper"} for row in rows]
    return rows


def _count(rows: Sequence[dict[str, Any]], column: str) -> int:
    return sum(row[column] is not None for row in rows)


def check_columns(columns: Any, count: int) -> dict[str, list[Any]]:
    """Check a user's own columns: one value a text. One that is called like a column of ours gets "your_" before its
    name; values that are neither numbers nor strings become strings."""
    found: dict[str, list[Any]] = {}
    for name, values in columns.items():  # of a dict or a data frame
        listed = [_plain_value(value) for value in values]
        if len(listed) != count:
            raise InputError(f"column {name!r} has {len(listed)} values for {count} texts", argument="columns")
        own = f"your_{name}" if str(name) in COLUMNS else str(name)
        if own in found or (own != str(name) and own in columns):
            raise InputError(f"two columns would be called {own!r}; rename one of them", argument="columns")
        found[own] = listed
    return found


def _plain_value(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if isinstance(value, str | int | float | None) else str(value)
