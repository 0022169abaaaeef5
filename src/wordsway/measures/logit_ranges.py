"""The public function `logit_ranges`: how far any move of a word, however large, can take a classifier's logits."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from wordsway import __version__
from wordsway.measures.best_words import encoded_for
from wordsway.measures.opening import over_texts
from wordsway.models.loading.load import open_model
from wordsway.models.moving.map import PretrainedMap, PretrainedText
from wordsway.models.moving.norm_bound import ranges_of
from wordsway.support.errors import InputError
from wordsway.support.plotting import ranges
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.support.result import Result
from wordsway.tokens import Tokens, find_word


@dataclass(frozen=True)
class WordRanges:
    """The certified ranges for one word, whose tokens all move: of each class's logit (`low`, `high`), and of the
    predicted class's logit minus each class's (`margin_low`, `margin_high`; 0 for the predicted class itself).
    `flips_never` is true where the ranges prove that no move of the word, of any size, changes the prediction."""

    word: int
    text: str
    span: tuple[int, int]
    tokens: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    margin_low: tuple[float, ...]
    margin_high: tuple[float, ...]
    flips_never: bool


@dataclass(frozen=True, repr=False)
class LogitRanges(Result):
    """Proven ranges of a classifier's logits, which no move of a word can leave, for each word of a text. `logits` are
    those of the text as it is, `prediction` the label of the largest."""

    format: ClassVar[str] = "wordsway.logit_ranges/2"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("word", "word_text", "label"), "margin_low")

    model: str
    text: str
    at: str
    labels: tuple[str, ...]
    logits: tuple[float, ...]
    prediction: str
    words: tuple[WordRanges, ...]
    version: str = __version__
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say what is proven in a line."""
        never = sum(each.flips_never for each in self.words)
        return f"{self.prediction!r}; {never} of {len(self.words)} words can never change it"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row for each word and class."""
        return [
            {
                "subject": self.model,
                "word": each.word,
                "word_text": each.text,
                "prediction": self.prediction,
                "label": label,
                "logit": self.logits[k],
                "low": each.low[k],
                "high": each.high[k],
                "margin_low": each.margin_low[k],
                "margin_high": each.margin_high[k],
                "flips_never": each.flips_never,
            }
            for each in self.words
            for k, label in enumerate(self.labels)
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw a line a word and class: the range that the logit cannot leave; dotted: the logits as they are. Returns
        the axes."""
        series = {label: [(each.low[k], each.high[k]) for each in self.words] for k, label in enumerate(self.labels)}
        names = [f"{each.text} (#{each.word})" for each in self.words]
        title = f"{self.model}: where its logits can go when a word changes"
        return ranges(ax, names, series, self.logits, "logit", title)


@public
@over_texts
@takes_progress("word")
def logit_ranges(
    model: Any,
    text: str | Tokens,
    word: str | int | None = None,
    *,
    at: str = "embeddings",
    tokenizer: Any = None,
    max_tokens: int | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = None,
) -> LogitRanges:
    """Bound the logits of a classifier, and their differences, over all moves of a word, of any size.

    `word` is a word of the text or its number from 1; None is for all of them. A list of texts gives `TextResults`.
    The ranges come from the norm that ends the model, not from a search: nothing outside of them can be reached, and
    not all of what is inside. Where a model does not end so, an InputError says why. `progress` is called with (words
    done, words in all), or True to show it.
    """
    opened = open_model(model, tokenizer, device)
    if not opened.classifies or opened.labels is None:
        raise InputError(f"{opened.name} classifies no texts, so it has no logits of classes", argument="model")
    phi = PretrainedMap(opened, "logits", at=at)
    tokens = encoded_for(phi, text, max_tokens)
    places = range(len(tokens.words)) if word is None else [find_word(tokens, word)]
    prepared = PretrainedText(phi, tokens.X)
    logits = prepared.base.cpu().double()
    tell, words = as_function(progress) or (lambda done, total: None), []
    for place in places:
        words.append(_ranges(prepared, tokens, place))
        tell(len(words), len(places))
    return LogitRanges(
        model=opened.name,
        text=tokens.text,
        at=phi.at,
        labels=opened.labels,
        logits=tuple(logits.tolist()),
        prediction=opened.labels[int(logits.argmax())],
        words=tuple(words),
    )


def _ranges(prepared: PretrainedText, tokens: Tokens, place: int) -> WordRanges:
    """Compute the ranges of one word."""
    top, count = int(prepared.base.argmax()), len(prepared.base)
    each = torch.eye(count, dtype=torch.float64)
    pieces = tuple(tokens.pieces[place])
    ranges = ranges_of(prepared, pieces, torch.cat([each, each[top] - each]))
    if isinstance(ranges, str):
        raise InputError(f"no range of its logits is proven: {ranges}", argument="model")
    low, high = (side.tolist() for side in ranges)
    low[count + top] = high[count + top] = 0.0  # a logit minus itself
    return WordRanges(
        word=place + 1,
        text=tokens.words[place],
        span=tokens.spans[place],
        tokens=pieces,
        low=tuple(low[:count]),
        high=tuple(high[:count]),
        margin_low=tuple(low[count:]),
        margin_high=tuple(high[count:]),
        flips_never=all(low[count + k] > 0 for k in range(count) if k != top),
    )
