"""The public function `measure_texts`: how far each word of many texts can move a model, and what they have in common.

Each text is a cell of a study, so a run that was stopped goes on where it was, on any engine.
"""

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from wordsway import __version__
from wordsway.studies.cells.words_cell import STEP, WordsCell
from wordsway.studies.estimates import mean_interval
from wordsway.studies.run.runner import Silent, run
from wordsway.studies.run.tables import labelled_jobs
from wordsway.studies.run.worker import Report
from wordsway.studies.study import Job, Study
from wordsway.support.errors import InputError
from wordsway.support.plotting import dots
from wordsway.support.result import Result

_COLUMNS = ("word", "word_text", "word_kind", "effect", "relative", "change", "upper", "prediction", "probability",
            "probability_after", "prediction_after", "flips")  # fmt: skip
_ENOUGH = 200  # words of all texts from which a word must occur a few times to be listed
_FEW = 3  # those few times


@dataclass(frozen=True, repr=False)
class Corpus(Result):
    """The words of many texts: one row a word and `subject` (a model or a map).

    `effect` is the fall of the predicted class's (or next token's) probability, or where there are no classes the
    relative `change` of the output. `relative` is the effect over the mean of its text and subject: 1 is an average
    word there, so that texts of any length can be compared. `failed` has the error of each text (by its number from 1)
    that could not be measured, `empty` the numbers of empty ones.
    """

    format: ClassVar[str] = "wordsway.corpus/1"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("text_number", "word", "word_text"), "effect")

    subjects: tuple[str, ...]
    texts: int
    radius: float
    budget: str | int
    rows: tuple[dict[str, Any], ...]
    failed: dict[str, str] = field(default_factory=dict)
    empty: tuple[int, ...] = ()
    version: str = __version__
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say how much was measured."""
        names = ", ".join(self.subjects)
        more = f"; {len(self.failed)} texts failed" if self.failed else ""
        return f"{names}: {len(self.rows):,} words of {self.measured} texts, radius {self.radius:g}{more}"

    @property
    def measured(self) -> int:
        """The number of texts with results."""
        return len({row["text_number"] for row in self.rows})

    @property
    def unit(self) -> str:
        """The meaning of `effect`."""
        classes = bool(self.rows) and self.rows[0].get("probability") is not None
        return "fall of the predicted probability" if classes else "relative change of the output"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a word of a text, and a subject."""
        return [dict(row) for row in self.rows]

    def words(self, subject: str | None = None) -> list[dict[str, Any]]:
        """Rank the words that occur often enough by their `relative` effect: its mean, with an interval over their
        occurrences; the intervals of all words hold together with a probability of 95% (Bonferroni's). Of many words,
        the one with the largest lower end comes first, so that one that was seen a few times leads only where they
        agree. The case of letters makes no difference."""
        rows = self._of(subject)
        least = _FEW if len(rows) >= _ENOUGH else 1
        return self._ranked([(row["word_text"].casefold(), row) for row in rows], least)

    def kinds(self, subject: str | None = None) -> list[dict[str, Any]]:
        """Rank the kinds of words in the same way."""
        return self._ranked([(row["word_kind"], row) for row in self._of(subject)], 1)

    def by_text(self, subject: str | None = None) -> list[dict[str, Any]]:
        """Summarise each text: its largest and its mean effect, the word of the largest, and how many words flip the
        prediction."""
        groups: dict[int, list[dict[str, Any]]] = {}
        for row in self._of(subject):
            groups.setdefault(row["text_number"], []).append(row)
        found = []
        for number, rows in groups.items():
            top = max(rows, key=lambda row: row["effect"])
            line = {"text_number": number, "words": len(rows), "prediction": top.get("prediction")}
            line |= {"probability": top.get("probability"), "top_word": top["word_text"], "largest": top["effect"]}
            line["mean"] = statistics.fmean(row["effect"] for row in rows)
            flips = [row["flips"] for row in rows if row.get("flips") is not None]
            found.append(line | {"flips": sum(flips) if flips else None})
        return found

    def plot(self, ax: Any = None) -> Any:
        """Draw the words that move the first subject most, relative to the other words of their texts. Returns the
        axes."""
        ranked = self.words()[:20]
        names = [f"{each['text']} (x{each['occurrences']})" for each in ranked]
        spans = [None if each["low"] is None else (each["low"], each["high"]) for each in ranked]
        label = "effect relative to the mean of the word's text (1: an average word; line: 95%, all words together)"
        title = f"{self.subjects[0]}: words with the largest effect, {self.measured} texts"
        return dots(ax, names, [each["relative"] for each in ranked], spans, 1.0, label, title)

    def plot_texts(self, ax: Any = None) -> Any:
        """Draw how the largest and the mean change of a text are distributed over the texts. Returns the axes."""
        from wordsway.support.plotting import BLUE, GREY, new_axes, plain

        axes = ax or new_axes(7.4, 3.6)
        rows = self.by_text()
        for name, colour in (("mean", GREY), ("largest", BLUE)):
            axes.hist([row[name] for row in rows], bins=min(30, max(5, len(rows) // 4)), color=colour, alpha=0.7,
                      label=f"{name} effect of a word of the text")  # fmt: skip
        axes.set_xlabel(f"{self.unit}, radius {self.radius:g}")
        axes.set_ylabel("texts")
        axes.set_title(plain(f"{self.subjects[0]}: over {len(rows)} texts"), loc="left", fontsize=10, fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8.5)
        return axes

    def _of(self, subject: str | None) -> list[dict[str, Any]]:
        wanted = self.subjects[0] if subject is None else subject
        if wanted not in self.subjects:
            raise InputError(f"{wanted!r} was not measured; use one of: {', '.join(self.subjects)}", argument="subject")
        return [row for row in self.rows if row["subject"] == wanted]

    def _ranked(self, named: Sequence[tuple[str, dict[str, Any]]], least: int) -> list[dict[str, Any]]:
        groups: dict[str, list[dict[str, Any]]] = {}
        for name, row in named:
            groups.setdefault(name, []).append(row)
        kept = {name: rows for name, rows in groups.items() if len(rows) >= least}
        found = []
        for name, rows in kept.items():
            mean = mean_interval([row["relative"] for row in rows], len(kept))
            line = {"text": name, "occurrences": len(rows), "texts": len({row["text_number"] for row in rows})}
            line |= {"relative": mean.value, "low": mean.low, "high": mean.high}
            flips = [row["flips"] for row in rows if row.get("flips") is not None]
            line |= {"effect": statistics.fmean(row["effect"] for row in rows)}
            found.append(line | {"flips": statistics.fmean(flips) if flips else None})
        return sorted(found, key=lambda line: -(line["relative"] if line["low"] is None or least < 2 else line["low"]))


class _Told(Silent):
    """Passes (texts done, texts in all) on."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        self.progress, self.done, self.total = progress or (lambda done, total: None), 0, 0

    def begin(self, plan: Any, engine: Any) -> None:
        self.done, self.total = plan.done, len(plan.jobs)
        self.progress(self.done, self.total)

    def finished(self, job: Job, report: Report) -> None:
        self.done += 1
        self.progress(self.done, self.total)


def measure_texts(
    texts: Sequence[str],
    model: str | Sequence[str] | None = None,
    *,
    map: str | Sequence[str] | None = None,
    output: str | None = None,
    radius: float = 0.1,
    budget: str | int = STEP,
    max_tokens: int | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    engine: str = "processes",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Corpus:
    """Measure every word of many texts: how far it can move a model (or several), or a map.

    The budget "step" is one gradient step a word, for models: a change that was found, smaller than what a search
    finds, in one run of the model a word (200 reviews of 120 words: about 20 minutes of one core; short sentences:
    about one). A map is searched with "quick" then. Others are the budgets of `word_sensitivity`, which take hours for
    hundreds of reviews. `radius` is in units of each word's own norm: small, since words differ most there.

    With `store`, a folder, every text is kept there as soon as it is measured, and a call that was stopped goes on
    where it was. `engine` is one of `run`: all give the same table. Texts that are too long are errors of those texts
    (`failed`) unless `max_tokens` crops them; empty ones are counted. `progress` gets (texts done, texts in all).
    """
    listed = [(number, text) for number, text in enumerate(texts, 1) if text.strip()]
    if not listed:
        raise InputError("there is no text to measure", argument="texts")
    if (model is None) == (map is None):
        raise InputError("give a model or a map: ws.measure_texts(texts, 'sentiment')", argument="model")
    field_name, given = ("model", model) if model is not None else ("map", map)
    subjects = [given] if isinstance(given, str) else list(given or ())
    grid: dict[str, Any] = {"measure": "words", field_name: subjects, "text": list(dict.fromkeys(t for _, t in listed))}
    grid |= {"radius": float(radius), "budget": budget, "seed": seed}
    grid |= {name: value for name, value in (("output", output), ("max_tokens", max_tokens)) if value is not None}
    study = Study("words", grid)
    options: dict[str, Any] = {"workers": workers, "scheduler": scheduler, "watcher": _Told(progress)}
    table = run(study, store, engine, retry_failed=True, **options)
    if not table.rows:
        raise InputError(f"no text could be measured: {next(iter(table.failed.values()))}")
    errors: dict[tuple[str, str], str] = {}
    for label, _, job in labelled_jobs(study):
        if label in table.failed and isinstance(job.cell, WordsCell):
            errors[getattr(job.cell, field_name), job.cell.text] = table.failed[label]
    return _corpus(table, errors, listed, tuple(subjects), field_name, radius, budget, len(texts))


def _corpus(
    table: Any,
    errors: Mapping[tuple[str, str], str],
    listed: Sequence[tuple[int, str]],
    subjects: tuple[str, ...],
    field_name: str,
    radius: float,
    budget: str | int,
    count: int,
) -> Corpus:
    """Put the rows of a run into the order of the texts; `errors` are those of cells, by subject and text."""
    by_cell: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in table.rows:
        by_cell.setdefault((row[field_name], row["text"]), []).append(row)
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    for subject in subjects:
        for number, text in listed:
            found = by_cell.get((subject, text))
            if found is None:
                failed[str(number)] = errors.get((subject, text), "not measured")
                continue
            effects = [_effect(row) for row in found]
            mean = statistics.fmean(effects) or 1.0
            for row, effect in zip(found, effects, strict=True):
                known = {**row, "effect": effect, "relative": effect / mean}
                rows.append({"text_number": number, "subject": subject, **{k: known.get(k) for k in _COLUMNS}})
    numbers = {number for number, _ in listed}
    empty = tuple(number for number in range(1, count + 1) if number not in numbers)
    return Corpus(subjects, count, radius, budget, tuple(rows), failed, empty)


def _effect(row: dict[str, Any]) -> float:
    """Compute the effect of a word in its user's units."""
    if row.get("probability") is None or row.get("probability_after") is None:
        return row["change"]
    return row["probability"] - row["probability_after"]
