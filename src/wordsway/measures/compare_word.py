"""The effect of one given substitution of a word, compared with the worst case and with random words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from wordsway.measures.opening import Source
from wordsway.measures.results import RandomChange, Sensitivity, summarize
from wordsway.measures.sensitivity import change, word_sensitivity
from wordsway.support.errors import InputError
from wordsway.support.json_values import read_fields
from wordsway.support.plotting import bars
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.support.result import Result
from wordsway.tokens import Tokens


@dataclass(frozen=True, repr=False)
class Substitution(Result):
    """`change` is what replacing the word does. `size` is how far that moves the word's rows, in units of the radius.
    `share` is the change as a share of the supremum over moves within the radius: at most `share`, since the
    supremum is at least what was found, and at least `share_at_least`, where there is a certificate. A substitution
    with `size` above 1 lies outside of that ball; `share_same_size` compares it with moves as long as its own.
    `random` is the change under random words of the vocabulary; `above_random` the share of them that change less.
    """

    format: ClassVar[str] = "wordsway.substitution/2"
    in_memory: ClassVar[tuple[str, ...]] = ("worst",)  # a result of its own, which is added as it saves itself

    word: int
    before: str
    after: str
    change: float
    size: float
    share: float
    share_at_least: float | None
    share_same_size: float
    worst: Sensitivity
    random: RandomChange | None
    above_random: float | None
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say the change in a line."""
        share = f"at most {self.share:.1%} of the worst case"
        return f"{self.before!r} -> {self.after!r} changes {self.change:.3g}, {share}"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row."""
        names = ("before", "after", "change", "size", "share", "share_at_least", "share_same_size", "above_random")
        row: dict[str, Any] = {"word": self.word, **{name: getattr(self, name) for name in names}}
        row |= {"worst_lower": self.worst.lower, "worst_upper": self.worst.upper}
        return [row | {"random_mean": None if self.random is None else self.random.mean}]

    def plot(self, ax: Any = None) -> Any:
        """Draw the change beside the worst case and random words. Returns the axes."""
        entries: dict[str, float | None] = {
            f"{self.before} \u2192 {self.after}": self.change,
            "worst case, found": self.worst.lower,
            "worst case, proven": self.worst.upper,
            "random words (mean)": None if self.random is None else self.random.mean,
        }
        values = {name: value for name, value in entries.items() if value is not None}
        title = f"One substitution, {self.size:.2f} radii long, beside the worst case within the radius"
        return bars(ax, list(values), list(values.values()), [False] * len(values), "relative change", title)

    @classmethod
    def read(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the fields from JSON values."""
        rest = {name: value for name, value in values.items() if name != "worst"}
        return read_fields(cls, rest, given=("worst",)) | {"worst": Sensitivity.from_dict(values["worst"])}

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON values."""
        return super().to_dict() | {"worst": self.worst.to_dict()}


@public
@takes_progress("step")
def substitution(
    phi: Any, before: Any, after: Any, others: Sequence[Any] = (), *, progress: Progress = None, **options: Any
) -> Substitution:
    """Compare two texts that differ in one word of equally many pieces. The model or map and the texts are given as for
    `word_sensitivity`. `others` are texts with random words in that place (`ws.random_words`); `options` go to
    `word_sensitivity`, which moves all pieces of the word together. `progress` is called with (steps done, steps in
    all), or True to show it: a step is a search, or one of `others`.
    """
    names = ("output", "at", "tokenizer", "encoder", "max_tokens")
    given = {name: options.pop(name) for name in names if name in options}
    source = Source(**given, seed=options.get("seed", 0), device=options.get("device", "cpu"))
    phi, (before, after, *others) = source.open(phi, before, after, *others)
    if not (isinstance(before, Tokens) and isinstance(after, Tokens)):
        raise InputError("a substitution compares two texts, not rows: give texts, or what ws.encode makes of them")
    word = changed_word(before, after)
    pieces = before.pieces[word]
    options = {"random_draws": 0, **options, "joint": len(pieces) > 1}
    worst = word_sensitivity(phi, before, list(pieces), **options)
    (bounds,) = [entry for entry in worst.words or () if entry.word == word + 1]
    radius = max(entry.radius for entry in worst.per_token)
    made = change(phi, before, after)
    size = float((after.X - before.X)[list(pieces)].double().norm()) / radius
    same, searches = bounds.lower, 2 if size > 1 else 1
    tell = as_function(progress) or (lambda done, total: None)
    tell(1, searches + len(others))
    if size > 1:
        longer = {**options, "radius": size * radius, "certificate": False}
        same = max(w.lower for w in word_sensitivity(phi, before, list(pieces), **longer).words or ())
    found = []
    for other in others:
        found.append(change(phi, before, other))
        tell(searches + len(found), searches + len(others))
    changes = torch.tensor(found, dtype=torch.float64)
    return Substitution(
        word=word + 1,
        before=before.words[word],
        after=after.words[word],
        change=made,
        size=size,
        share=made / bounds.lower,
        share_at_least=None if bounds.upper is None else made / bounds.upper,
        share_same_size=made / same,
        worst=worst,
        random=summarize(changes) if len(changes) else None,
        above_random=float((changes < made).double().mean()) if len(changes) else None,
    )


def changed_word(before: Tokens, after: Tokens) -> int:
    """The one word in which two texts differ, or an InputError that says how else they do."""
    if before.word_ids != after.word_ids:
        raise InputError(
            f"the two texts have {len(before)} and {len(after)} tokens in {len(before.words)} and {len(after.words)} "
            f"words ({' '.join(before.tokens)!r} and {' '.join(after.tokens)!r}); a substitution "
            "replaces one word by one of as many pieces, so that both texts have the same shape"
        )
    old, new = before.ids or before.tokens, after.ids or after.tokens
    differ = sorted({before.word_ids[k] for k in range(len(old)) if old[k] != new[k]}, key=str)
    if not differ:
        raise InputError(
            "the two texts are the same to the encoder, so nothing was substituted; replace one word in the second"
        )
    words = [k for k in differ if k is not None]
    if len(words) != 1 or len(differ) != 1:
        pairs = ", ".join(f"{before.words[k]!r} and {after.words[k]!r}" for k in words[:5])
        raise InputError(f"the two texts differ in {len(differ)} words ({pairs}); a substitution changes one")
    return words[0]
