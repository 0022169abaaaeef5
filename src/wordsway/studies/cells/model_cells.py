"""The cells of Figures 1, 3c and 3d: what a pre-trained model does when one word changes or moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordsway.studies.cells.base import GB, WITH_MODEL, Cell, Outcome
from wordsway.studies.cells.grid_hooks import OfModel
from wordsway.studies.panels.model_panels import ANSWERS, ATTENTION, LAYERS
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_budget, check_size


@dataclass(frozen=True)
class LayersCell(OfModel):
    """Relative change of every layer's output when the word at token `token` of a text moves, `radius` of its own norms
    far: searched, attention-attracting, and noise. One row a layer."""

    numbers = ("layer", "searched", "attracting", "noise", "noise_sd", "real_word", "replaced")
    names = ("word",)
    within = ("layer",)
    first = "attracting"
    picture = LAYERS

    text: str
    token: int
    model: str = "minilm"
    radius: float = 1.0
    noise_draws: int = 50
    budget: str = "quick"
    real_words: bool = False

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_size(self.token, "token", least=0)
        check_size(self.noise_draws, "noise_draws", least=2)

    def measure(self) -> Outcome:
        from wordsway.measures.layer_profile import layer_profile

        found = layer_profile(
            self.model,
            self.text,
            word_at(self.model, self.text, self.token),
            radius=self.radius,
            noise_draws=self.noise_draws,
            real_words=self.real_words,
            budget=self.budget,
            seed=self.seed + self.trial,
            progress=lambda done, total: None,
        )
        return Outcome([{**row, "word": found.word_text} for row in found.records()])

    def memory(self) -> float:
        return WITH_MODEL + 2 * GB

    def seconds(self) -> float:
        return 60.0 if self.model == "minilm" else 400.0

    @property
    def label(self) -> str:
        return f"layers of {Path(self.model).name}, token {self.token}"


@dataclass(frozen=True)
class AttentionCell(OfModel):
    """Attention weights of one layer, of one head or (0) their mean, before and after: for two texts (`against`), or
    for one whose word at token `token` moves so that it draws attention. The maps are kept as arrays."""

    numbers = ("mass_before", "mass_after", "largest_change")
    names = ("before_tokens", "after_tokens", "word")
    first = "largest_change"
    picture = ATTENTION

    text: str
    against: str | None = None
    token: int | None = None
    model: str = "minilm"
    layer: int = 1
    head: int = 0
    special: bool = False
    radius: float = 1.0
    budget: str = "default"

    def __post_init__(self) -> None:
        check_budget(self.budget)
        if (self.against is None) == (self.token is None):
            raise InputError(
                "an attention cell has either a second text, against, or a token that moves", argument="against"
            )

    def measure(self) -> Outcome:
        from wordsway.measures.attention_maps import attention_maps

        moves = self.against is None
        assert self.token is not None or not moves
        found = attention_maps(
            self.model,
            self.text,
            self.against,
            word=word_at(self.model, self.text, self.token) if self.token is not None else None,
            attract=moves,
            layer=self.layer,
            head=self.head or "mean",
            special=self.special,
            radius=self.radius,
            budget=self.budget,
            seed=self.seed + self.trial,
        )
        (before, names), (after, other) = found.shown(), found.shown(True)
        row: dict[str, Any] = {
            "before_tokens": " ".join(names),
            "after_tokens": " ".join(other),
            "word": found.word_text,
        }
        if moves:
            which = slice(None) if self.head == 0 else slice(self.head - 1, self.head)
            assert found.mass_before is not None and found.mass_after is not None
            row["mass_before"] = float(found.mass_before[self.layer - 1][which].mean())
            row["mass_after"] = float(found.mass_after[self.layer - 1][which].mean())
        if before.shape == after.shape:
            row["largest_change"] = float((after - before).abs().max())
        return Outcome([row], {"before": before.contiguous(), "after": after.contiguous()})

    def memory(self) -> float:
        return WITH_MODEL + 1 * GB

    def seconds(self) -> float:
        return 10.0

    @property
    def label(self) -> str:
        return f"attention of {Path(self.model).name}, layer {self.layer}"


@dataclass(frozen=True)
class PromptsCell(Cell):
    """A chat model's greedy answers to two prompts, and how far its next-token distribution moves."""

    numbers = ("differs", "kl")
    names = ("answer_before", "answer_after")
    first = "kl"
    picture = ANSWERS

    model: str
    before: str
    after: str
    answer_tokens: int = 60

    def __post_init__(self) -> None:
        check_size(self.answer_tokens, "answer_tokens")

    def measure(self) -> Outcome:
        from wordsway.measures.prompts import compare_prompts

        found = compare_prompts(self.model, self.before, self.after, answer_tokens=self.answer_tokens)
        row = {
            "answer_before": found.answer_before,
            "answer_after": found.answer_after,
            "differs": float(found.answer_before != found.answer_after),
            "kl": found.kl,
        }
        return Outcome([row])

    def memory(self) -> float:
        return WITH_MODEL + 6 * GB

    def seconds(self) -> float:
        return 90.0

    def models(self) -> tuple[str, ...]:
        return (self.model,)

    @classmethod
    def adapt(cls, values: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
        """Take the chat model that a command names, with which the panel can be run; encoders do not chat."""
        changes = super().adapt(values, asked)
        return changes | ({"model": asked["chat_model"], "skip": None} if "chat_model" in asked else {})

    @property
    def label(self) -> str:
        return f"answers of {Path(self.model).name}"


def word_at(model: str, text: str, token: int) -> int:
    """The number, from 1, of the word that a token belongs to; token 0 is the opening special one, if there is one."""
    from wordsway.models.loading.load import open_model
    from wordsway.models.moving.map import PretrainedMap

    tokens = PretrainedMap(open_model(model)).encode(text)
    if token >= len(tokens):
        raise InputError(
            f"token {token} is not there: {model} makes {len(tokens)} tokens of the text", argument="token"
        )
    word = tokens.word_ids[token]
    if word is None:
        raise InputError(
            f"token {token} is {tokens.tokens[token]!r}, which is no word; choose another one", argument="token"
        )
    return word + 1
