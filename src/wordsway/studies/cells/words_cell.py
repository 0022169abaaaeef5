"""The cell of many texts: how far each word of one text can move a model or a map."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wordsway.maps.named import base_name, check_name
from wordsway.measures.one_step import word_steps
from wordsway.measures.question import ENCODER, Question
from wordsway.measures.sensitivity import check_effort
from wordsway.models.loading.load import open_model
from wordsway.models.moving.map import PretrainedMap
from wordsway.studies.cells.base import GB, WITH_MODEL, Cell, Outcome
from wordsway.studies.cells.states_cell import word_kind
from wordsway.support.errors import InputError
from wordsway.tokens import check_size

STEP = "step"  # the budget of one gradient step a word


@dataclass(frozen=True)
class WordsCell(Cell):
    """The change that each word of `text` was found to cause, one row a word: of a `model` (its `output`: logits where
    it has them, else last) or of a `map` with weights drawn by seed, when the word's embedding moves by up to `radius`
    of its own norm. The `budget` "step" is one gradient step a word (models only), others are those of a search."""

    numbers = ("word", "change", "upper", "probability", "probability_after", "flips")
    names = ("word_text", "word_kind", "prediction", "prediction_after")
    within = ("word",)
    first = "change"

    text: str
    model: str | None = None
    map: str | None = None
    output: str | None = None
    radius: float = 0.1
    budget: str | int = STEP
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InputError("text is empty", argument="text")
        if (self.model is None) == (self.map is None):
            raise InputError("a cell is about a model or about a map: give one of the two", argument="model")
        if self.map is not None:
            check_name(self.map)
            if self.output is not None:
                raise InputError("output belongs to a model, not to a map", argument="output")
        if self.budget != STEP:
            check_effort(self.budget)
        if not 0 < self.radius < float("inf"):
            raise InputError(f"radius must be a positive number, got {self.radius!r}", argument="radius")
        if self.max_tokens is not None:
            check_size(self.max_tokens, "max_tokens")

    def settle(self) -> "WordsCell":
        """Give a map, which has no gradient step, the budget that it is searched with instead."""
        return replace(self, budget="quick") if self.map is not None and self.budget == STEP else self

    def measure(self) -> Outcome:
        rows = self._stepped() if self.budget == STEP else self._searched()
        for row in rows:
            row["word_kind"] = word_kind(row["word_text"])
        return Outcome(rows)

    def _stepped(self) -> list[dict[str, Any]]:
        opened = open_model(self.model)
        phi = PretrainedMap(opened, self.output)
        return [
            {
                "word": step.word,
                "word_text": step.text,
                "change": step.change,
                "prediction": step.prediction,
                "probability": step.probability,
                "probability_after": step.probability_after,
                "prediction_after": step.prediction_after,
                "flips": None if step.prediction is None else int(step.prediction != step.prediction_after),
            }
            for step in word_steps(phi, phi.encode(self.text, self.max_tokens), self.radius, self.seed)
        ]

    def _searched(self) -> list[dict[str, Any]]:
        subject: dict[str, Any] = {"map": self.map}
        if self.model is not None:
            subject = {"model": self.model, "output": self.output}
        options: dict[str, Any] = {"radius": self.radius, "budget": self.budget, "max_tokens": self.max_tokens}
        found = Question(self.text, **subject, **options, random_draws=0, seed=self.seed).measure()
        return [
            {"word": each.word, "word_text": each.text, "change": each.lower, "upper": each.upper}
            for each in found.words or ()
        ]

    def memory(self) -> float:
        return WITH_MODEL + 0.5 * GB

    def seconds(self) -> float:
        """Expect a run of the model for each word, of about 5 characters, or tens of them for a search."""
        words = len(self.text) / 5
        return max(0.05, words * (0.0003 * words) * (1 if self.budget == STEP else 60 if self.model is not None else 1))

    def models(self) -> tuple[str, ...]:
        return (self.model,) if self.model is not None else (ENCODER,)

    def maps(self) -> tuple[str, ...]:
        return () if self.map is None else (self.map,)

    @property
    def label(self) -> str:
        name = Path(self.model).name if self.model is not None else base_name(self.map or "")
        return f"{name}: {' '.join(self.text.split())[:40]}"
