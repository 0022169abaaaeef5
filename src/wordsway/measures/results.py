"""Results of a measurement: numbers and their origin, as JSON."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wordsway.measures.checked import Check
from wordsway.support.digits import three
from wordsway.support.json_values import KeptAsList, read_fields
from wordsway.support.plotting import found_and_proven
from wordsway.support.result import Result, subject_of_map

if TYPE_CHECKING:
    from torch import Tensor  # results are read and shown without it


@dataclass(frozen=True)
class TokenSensitivity:
    """The bounds for one token, or for `tokens` that move together (`token` is then the first of them). `upper` is None
    where there is no certificate; `upper_reason` then says why."""

    token: int
    tokens: tuple[int, ...]
    radius: float
    lower: float
    upper: float | None
    upper_failure: float
    upper_reason: str | None
    evaluations: int


@dataclass(frozen=True)
class WordSensitivity:
    """The bounds for one word of a text, `word` being its number from 1: of its best single token, or of all of its
    tokens moved together. Ranks from `rank` on, `tied` of them, are possible for it, 1 being the largest effect: a word
    may be before or behind those that it is not separated from. Two words are separated where the lower bound of one is
    above the upper bound of the other or, of a deep model, where their numbers differ by more than the search's spread.
    `span` are the characters of the text that the word takes, `tokens` what moves for `lower`."""

    word: int
    text: str
    span: tuple[int, int]
    rank: int
    tokens: tuple[int, ...]
    lower: float
    upper: float | None
    upper_failure: float
    upper_reason: str | None
    tied: int = 1


@dataclass(frozen=True)
class RealWord:
    """A word of the vocabulary in the place of another: what that changes, and how far it moves the word, in radii.
    `flips` and `prediction` are there for a classifier."""

    text: str
    change: float
    size: float | None = None
    prediction: str | None = None
    flips: bool | None = None


@dataclass(frozen=True)
class WordExplanation:
    """The effects of the best move found for one word.

    `attention_before` and `attention_after` have a number for each token of the text: the weight that it gives the
    word, in the first layer, averaged over heads (None where a map has no attention weights; 0 where it sees nothing).
    `layers` is the relative change of every hidden state, 0 first. `replacements` are the real words that change the
    features most among those tried; `tried` says which these were.
    """

    word: int
    tokens: tuple[int, ...]
    attention_before: tuple[float, ...] | None
    attention_after: tuple[float, ...] | None
    layers: tuple[float, ...] | None
    replacements: tuple[RealWord, ...]
    tried: str


@dataclass(frozen=True)
class RandomChange:
    """The average case: relative change under deltas that are uniform on the sphere of the same radius, or under random
    words of a vocabulary."""

    mean: float
    sd: float
    quantiles: dict[str, float]
    draws: int


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Result):
    """The word sensitivity of a map at a text: what a search found (`lower`), and what no delta can exceed (`upper`,
    except with probability `upper_failure` over the draw of lazy weights).

    `token` and `delta` are where `lower` is attained (`tokens`, and a delta with a row for each, where several move
    together); `check` is how `lower` was evaluated in the end, and `checked` says so as text. `words` and `text` are
    there for an encoded text: `text` says what it was, its tokens and what encoded it. `together` is there where
    several tokens moved at once: how they were chosen, and whether each had a ball of its own. `deltas` are the moves
    found for `per_token` (in memory only, not in a file), `explained` what they do to some words (`ws.explain`), `made`
    how it was made. `spread` is by how much the search's answer for one token varies over seeds and processors,
    relative to it.
    """

    format: ClassVar[str] = "wordsway.sensitivity/3"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("word", "word_text"), "lower")
    in_memory: ClassVar[tuple[str, ...]] = ("deltas", "check")

    lower: float
    upper: float | None
    upper_failure: float
    upper_reason: str | None
    token: int
    delta: "Tensor"
    radius: float
    per_token: tuple[TokenSensitivity, ...]
    random: RandomChange | None
    evaluations: int
    check: Check
    map: dict[str, Any]
    n: int
    d: int
    seed: int
    seconds: float
    version: str
    tokens: tuple[int, ...] = ()
    words: tuple[WordSensitivity, ...] | None = None
    together: dict[str, str] | None = None
    text: dict[str, Any] | None = None
    deltas: "tuple[Tensor, ...]" = ()
    explained: tuple[WordExplanation, ...] | None = None
    made: dict[str, Any] | None = None
    spread: float = 0.0

    def summary(self) -> str:
        """Say the bounds in a line."""
        name = self.map["map"] if "model" not in self.map else f"{self.map['output']} of {self.map['model']}"
        where, top = f"token {self.token}", self.top_words
        if top:
            where = f"word {top[0].text!r}" if len(top) == 1 else f"one of {len(top)} words that tie"
        count = f", {len(self.per_token)} moves" if len(self.per_token) > 1 else ""
        most = "no upper bound" if self.upper is None else f"at most {three(self.upper)}"
        return f"relative change of at least {three(self.lower)} at {where}, {most}; {name}{count}"

    @property
    def checked(self) -> str:
        """The text of `check`: by which way, and in which precision, `lower` was evaluated in the end."""
        return str(self.check)

    @property
    def top_word(self) -> WordSensitivity | None:
        """The word with the largest effect found; others may tie with it (`top_words`)."""
        return max(self.words, key=lambda word: word.lower) if self.words else None

    @property
    def top_words(self) -> tuple[WordSensitivity, ...]:
        """The words that may be the first, the largest effect found first; one only where it is separated from all
        others."""
        return tuple(word for word in self.ranked_words if word.rank == 1)

    @property
    def ranked_words(self) -> tuple[WordSensitivity, ...]:
        """The words from the largest effect found to the smallest."""
        return tuple(sorted(self.words or (), key=lambda word: (-word.lower, word.rank)))

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a word, the largest effect found first, or a move where there are no words."""
        if self.words is not None:
            return [
                {
                    "subject": subject_of_map(self.map),
                    "word": each.word,
                    "word_text": each.text,
                    "rank": each.rank,
                    "tied": each.tied,
                    "lower": each.lower,
                    "upper": each.upper,
                    "upper_failure": each.upper_failure,
                    "upper_reason": each.upper_reason,
                    "tokens": list(each.tokens),
                }
                for each in self.ranked_words
            ]
        return [{**asdict(each), "tokens": list(each.tokens)} for each in self.per_token]

    def plot(self, ax: Any = None) -> Any:
        """Draw a bar a word, the largest change found first, with a line up to the bound. Returns the axes."""
        if self.words is not None:
            entries = [(f"{each.text} (#{each.word})", each.lower, each.upper) for each in self.ranked_words]
        else:
            ordered = sorted(self.per_token, key=lambda each: -each.lower)
            entries = [(f"tokens {', '.join(map(str, each.tokens))}", each.lower, each.upper) for each in ordered]
        name = self.map.get("model", self.map["map"])
        typical = None if self.random is None else self.random.mean
        return found_and_proven(ax, entries, typical, f"{name}: largest change that each word can cause")

    def to_dict(self) -> dict[str, Any]:
        """Return everything but `deltas`, as JSON values."""
        return super().to_dict() | {"checked": self.checked}

    @classmethod
    def read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the fields from JSON values."""
        rest = {name: value for name, value in values.items() if name != "checked"}
        return read_fields(cls, rest, given=("check",)) | {"check": Check.of(values["checked"])}


# A file's delta becomes a tensor when somebody asks for it: a report, for one, does not, and then needs no torch.
Sensitivity.delta = KeptAsList("delta")  # pyright: ignore[reportAttributeAccessIssue]


def summarize(changes: "Tensor") -> RandomChange:
    """Mean, standard deviation and quantiles of relative changes."""
    import torch

    changes = changes.double()
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    values = torch.quantile(changes, torch.tensor(levels, dtype=torch.float64)).tolist()
    sd = float(changes.std()) if len(changes) > 1 else math.nan
    return RandomChange(
        float(changes.mean()),
        0.0 if math.isnan(sd) else sd,
        {f"{level:g}": value for level, value in zip(levels, values, strict=True)},
        len(changes),
    )
