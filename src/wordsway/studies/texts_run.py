"""The public function `measure_texts`: the answer about one text, for many texts.

Each text is a cell of a study, so a run that was stopped goes on where it was, on any engine.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from wordsway.measures.expected import time_of_texts
from wordsway.studies.cells.words_cell import WordsCell
from wordsway.studies.corpus import Corpus, check_columns
from wordsway.studies.run.engines import cores
from wordsway.studies.run.runner import Plan, Silent, make_plan, run
from wordsway.studies.run.store import Store, has_run
from wordsway.studies.run.worker import Report
from wordsway.studies.study import Job, Study
from wordsway.support.errors import InputError
from wordsway.support.progress import as_function, takes_progress
from wordsway.support.public_gate import public

Tell = Callable[[int, int, str], None]  # words done, words in all, the text that is measured


class _Told(Silent):
    """Counts the words of texts (by white space) that are done, and keeps the errors of those that failed."""

    def __init__(self, progress: Tell | None) -> None:
        self.progress = progress or (lambda done, total, label: None)
        self.done, self.total, self.most_told = 0, 0, 0
        self.texts, self.finished_texts = 0, 0
        self.running: dict[str, int] = {}  # words that are done of each text that is measured
        self.errors: dict[tuple[str, str], str] = {}

    def begin(self, plan: Plan, engine: Any) -> None:
        self.total, self.texts = sum(_words(job) for job in plan.pending), len(plan.pending)
        self._tell()

    def started(self, job: Job) -> None:
        self.running[job.key] = 0
        self._tell()

    def within(self, job: Job, share: float) -> None:
        self.running[job.key] = int(_words(job) * share)
        self._tell()

    def finished(self, job: Job, report: Report) -> None:
        self.done += _words(job)
        self.running.pop(job.key, None)
        self.finished_texts += 1
        cell = _cell(job)
        if report.error is not None:
            self.errors[cell.model or cell.map or "", cell.text] = report.error
        self._tell()

    def _tell(self) -> None:
        done = min(self.done + sum(self.running.values()), self.total)
        self.most_told = max(self.most_told, done)  # a text that is measured again does not count backwards
        first = min(self.finished_texts + 1, self.texts)
        last = min(self.finished_texts + len(self.running), self.texts)
        here = f"texts {first}-{last}" if last > first else f"text {first}"
        self.progress(self.most_told, self.total, f"{here} of {self.texts}")


_WORDS = re.compile(r"\w+|[^\w\s]")  # and marks, which are measured like words; a model's own words may differ a little


def _cell(job: Job) -> WordsCell:
    assert isinstance(job.cell, WordsCell)
    return job.cell


def _words(job: Job) -> int:
    count, most = len(_WORDS.findall(_cell(job).text)), _cell(job).max_tokens
    return count if most is None else min(count, most)  # of a cropped text about as many are measured


@dataclass(frozen=True)
class TextsRun:
    """Texts to measure with models (or maps): what is kept of them already, how long the rest takes, and the run."""

    texts: tuple[str, ...]
    field: str  # "model" or "map"
    subjects: tuple[str, ...]
    options: Mapping[str, Any]  # of each cell
    columns: Mapping[str, Sequence[Any]]
    store: str | os.PathLike[str] | None = None
    engine: str = "processes"
    workers: int | None = None
    scheduler: str | None = None

    @cached_property
    def study(self) -> Study:
        """The distinct texts that are not empty, as cells."""
        distinct = list(dict.fromkeys(text for text in self.texts if text.strip()))
        if not distinct:
            raise InputError("there is no text to measure", argument="texts")
        given = {name: value for name, value in self.options.items() if value is not None}
        return Study("words", {"measure": "answers", self.field: list(self.subjects), "text": distinct, **given})

    def plan(self) -> Plan:
        """List the cells that are still to be measured."""
        results: Mapping[str, Any] = {}
        if self.store is not None and has_run(Path(self.store)):
            with Store.read(self.store) as store:
                results = store.results(skip_damaged=True)  # what is damaged is measured again
        return make_plan(results, [self.study], retry_failed=True)

    def seconds(self, plan: Plan) -> float | None:
        """Estimate how long the pending texts take; None for maps, which soon show their pace."""
        if self.field == "map" or not plan.pending:
            return None
        side_by_side = min(1 if self.engine == "inline" else self.workers or cores(), len(plan.pending))
        total = 0.0
        for subject in self.subjects:
            cells = [cell for job in plan.pending if (cell := _cell(job)).model == subject]
            if cells:
                options = {"radius": cells[0].radius, "budget": cells[0].budget, "max_tokens": cells[0].max_tokens}
                total += time_of_texts(cells[0].opened(), [cell.text for cell in cells], **options)
        return total / side_by_side

    def measure(self, progress: Tell | None = None) -> Corpus:
        """Measure what is missing, and put everything into the order of the texts."""
        told = _Told(progress)
        options: dict[str, Any] = {"workers": self.workers, "scheduler": self.scheduler, "watcher": told}
        table = run(self.study, self.store, self.engine, retry_failed=True, **options)
        if not table.rows:
            raise InputError(f"no text could be measured: {next(iter(table.failed.values()))}")
        by_cell: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in table.rows:
            by_cell.setdefault((row[self.field], row["text"]), []).append(row)
        return Corpus.of(self.texts, self.subjects, by_cell, told.errors, self.columns, str(table.rows[0]["budget"]))


@public
@takes_progress("word")
def measure_texts(
    texts: Iterable[str],
    model: str | Sequence[str] | None = None,
    *,
    map: str | Sequence[str] | None = None,
    columns: Any = None,
    output: str | None = None,
    radius: float | None = None,
    budget: str | int | None = None,
    max_tokens: int | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    engine: str = "inline",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Tell | bool | None = None,
) -> Corpus:
    """Measure every word of many texts with a model (or several), or with a map: the answer that `wordsway measure`
    gives about one text, for each.

    Of a classifier or a causal model: what it takes to change the prediction, with moves of up to `radius` (1 unless
    given) of each word's own norm. Of an encoder: the change of its output at a small radius (0.1). Of a map: the
    largest change found (radius 1). `budget` is that of `word_sensitivity`, or "step", for models: one gradient step of
    0.1 a word, which is tens of times quicker and finds smaller changes.

    `columns` are columns of your own, a dict of lists or a data frame, with a value for each text; they are carried
    over. With `store`, a folder, every text is kept there as soon as it is measured, and a call that was stopped goes
    on where it was. `engine`, `workers` and `scheduler` are those of `run`: all give the same table, and "processes" is
    quicker for many texts (in a script, call it below `if __name__ == "__main__":`). Texts that are too long are errors
    of those texts (`failed`) unless `max_tokens` crops them; empty ones are counted. `progress` gets (words done, words
    in all, the text that is measured), of the texts that are still to be measured; True shows it.
    """
    options = {"output": output, "radius": radius, "budget": budget, "max_tokens": max_tokens, "seed": seed}
    place: dict[str, Any] = {"store": store, "engine": engine, "workers": workers, "scheduler": scheduler}
    return texts_run(texts, model, map, columns, options, **place).measure(as_function(progress))


def texts_run(
    texts: Iterable[str],
    model: str | Sequence[str] | None,
    map: str | Sequence[str] | None,
    columns: Any,
    options: Mapping[str, Any],
    **place: Any,
) -> TextsRun:
    """Check what `measure_texts` was given."""
    if (model is None) == (map is None):
        raise InputError("give a model or a map: ws.measure_texts(texts, 'sentiment')", argument="model")
    field, given = ("model", model) if model is not None else ("map", map)
    subjects = (given,) if isinstance(given, str) else tuple(given or ())
    if isinstance(texts, str):
        raise InputError("texts must be a list of texts; give one text in brackets", argument="texts")
    listed: tuple[Any, ...] = tuple(texts)
    wrong = next((number for number, text in enumerate(listed, 1) if not isinstance(text, str)), None)
    if wrong is not None:
        raise InputError(f"text {wrong} is no text: {listed[wrong - 1]!r}", argument="texts")
    radius = options.get("radius")
    settled = {**options, "radius": None if radius is None else float(radius)}
    made = TextsRun(
        listed, field, subjects, settled, check_columns({} if columns is None else columns, len(listed)), **place
    )
    _ = made.study  # so that what is wrong is an error now
    return made
