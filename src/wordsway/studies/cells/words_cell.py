"""The cell of many texts: the answer about one text, one row a word."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.maps.map_names import base_name, check_name
from wordsway.measures.flip_radii import FlipRadii
from wordsway.measures.profile_result import RadiusProfile
from wordsway.studies.cells.base import GB, WITH_MODEL, Cell, Outcome
from wordsway.studies.cells.states_cell import word_kind
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS, ENCODER, STEP
from wordsway.support.plain_checks import check_effort, check_size
from wordsway.support.progress import tell_within

if TYPE_CHECKING:
    from wordsway.models.moving.map import PretrainedMap


@dataclass(frozen=True)
class WordsCell(Cell):
    """The answer that `measure` gives about one `text`, one row a word: of a `model` (its `output`: logits where it has
    them, else last) or of a `map` with weights drawn by seed, when the word's embedding moves by up to `radius` of its
    own norm; the column `allowed` has the usual radius where none is given. Of a prediction, rows say what it takes to
    change it; else they have the change. The `budget` "step" is one gradient step a word (models only), others are
    those of a search."""

    numbers = ("word", "rank", "probability", "allowed", "flips_at", "real_distance", "tried", "probability_after",
               "best_probability", "flips", "change", "upper")  # fmt: skip
    names = ("word_text", "word_kind", "prediction", "flips_to", "real_word", "best_word", "prediction_after")
    within = ("word",)
    first = "change"

    text: str
    model: str | None = None
    map: str | None = None
    output: str | None = None
    radius: float | None = None
    budget: str | int | None = None
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
            if self.budget == STEP:
                raise InputError("the budget step is a gradient step of a model; a map is searched", argument="budget")
        if self.budget != STEP:
            check_effort(self.budget)
        if self.radius is not None and not 0 < self.radius < float("inf"):
            raise InputError(f"radius must be a positive number, got {self.radius!r}", argument="radius")
        if self.max_tokens is not None:
            check_size(self.max_tokens, "max_tokens")

    def settle(self) -> "WordsCell":
        """Write down the usual budget, which is one recipe with the one that was not given."""
        return replace(self, budget="default") if self.budget is None else self

    def measure(self) -> Outcome:
        from wordsway.measures.text_answer import answer_text

        if self.map is not None:
            rows = self._of_map(self.map)
        elif self.budget == STEP:
            rows = self._stepped()
        else:
            phi = self.opened()
            answer = answer_text(
                phi,
                phi.encode(self.text, self.max_tokens),
                radius=self.radius,
                budget=self.budget,
                seed=self.seed,
                progress=tell_within,
            )
            rows = _of_flips(answer) if isinstance(answer, FlipRadii) else _of_profile(answer)
        return Outcome([{**row, "word_kind": word_kind(row["word_text"])} for row in rows])

    def opened(self) -> "PretrainedMap":
        """Open the model with the output that is measured."""
        from wordsway.models.loading.load import open_model
        from wordsway.models.moving.map import PretrainedMap

        return PretrainedMap(open_model(self.model), self.output)

    def _stepped(self) -> list[dict[str, Any]]:
        from wordsway.measures.one_step import word_steps
        from wordsway.measures.text_answer import SMALL

        phi, radius = self.opened(), SMALL if self.radius is None else self.radius
        rows = []
        for step in word_steps(phi, phi.encode(self.text, self.max_tokens), radius, self.seed):
            row = {"word": step.word, "word_text": step.text, "allowed": radius, "change": step.change}
            if step.prediction is not None:
                row |= {"prediction": step.prediction, "probability": step.probability}
                row |= {"probability_after": step.probability_after, "prediction_after": step.prediction_after}
                row["flips"] = int(step.prediction != step.prediction_after)
            rows.append(row)
        return rows

    def _of_map(self, map: str) -> list[dict[str, Any]]:
        from wordsway.measures.question import Question
        from wordsway.measures.text_answer import WHOLE

        radius = WHOLE if self.radius is None else self.radius
        options: dict[str, Any] = {"radius": radius, "budget": self.budget, "max_tokens": self.max_tokens}
        question = Question(self.text, map=map, **options, random_draws=0, seed=self.seed)
        found = question.measure(progress=tell_within)
        return [
            {"word": each.word, "word_text": each.text, "allowed": radius, "change": each.lower, "upper": each.upper}
            for each in found.words or ()
        ]

    def memory(self) -> float:
        return WITH_MODEL + 0.5 * GB

    def seconds(self) -> float:
        """Expect some runs of the model for each word, of about 5 characters: one for a step, else a search."""
        words = len(self.text) / 5
        runs = 1.0 if self.budget == STEP or self.model is None else 200 * BUDGETS.get(str(self.budget), 1.0)
        return max(0.05, words * (0.005 + 0.0003 * words) * runs)

    def models(self) -> tuple[str, ...]:
        return (self.model,) if self.model is not None else (ENCODER,)

    def maps(self) -> tuple[str, ...]:
        return () if self.map is None else (self.map,)

    @property
    def label(self) -> str:
        name = Path(self.model).name if self.model is not None else base_name(self.map or "")
        return f"{name}: {' '.join(self.text.split())[:40]}"


def _of_flips(answer: FlipRadii) -> list[dict[str, Any]]:
    """List the words in the order of one text's answer: the nearest real word that changes the prediction first."""
    records = {row["word"]: row for row in answer.records()}
    rows = []
    for each, (rank, _) in zip(answer.by_real, answer.real_ranks, strict=True):
        row = records[each.word]
        rows.append({"word": row["word"], "word_text": each.text, "rank": rank, "prediction": answer.prediction,
                     "probability": answer.probability, "allowed": answer.limit, "flips_at": each.radius,
                     "flips_to": each.to, "real_word": row["real_word"], "real_distance": row["real_distance"],
                     "tried": each.tried, "probability_after": each.lowest, "best_word": row["best_word"],
                     "best_probability": row["best_probability"]})  # fmt: skip
    return rows


def _of_profile(answer: RadiusProfile) -> list[dict[str, Any]]:
    """List the words with their change at the largest radius that was asked for."""
    radius, rows = answer.radii[-1], []
    for row in answer.records():
        if row["radius"] == radius:
            about = {"word": row["word"], "word_text": row["word_text"], "allowed": radius}
            rows.append(about | {"change": row["lower"], "upper": row["upper"]})
    return rows
