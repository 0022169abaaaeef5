"""The cell about whole encoders: how far one word of a text of n tokens moves each hidden state of a model."""

import math
import unicodedata
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.models.loading.locate import locate
from wordsway.models.loading.reinit import Redraw, split_name
from wordsway.studies.cells.base import WITH_MODEL, Outcome
from wordsway.studies.cells.grid_hooks import OfModel, OfTexts, OneTextForAllLengths
from wordsway.studies.panels.states_panel import PICTURE
from wordsway.support.errors import InputError, TextWarning
from wordsway.support.plain_checks import check_budget, check_size

if TYPE_CHECKING:
    from wordsway.models.running.model import Transformer
    from wordsway.tokens import Tokens

CONTENT, FUNCTION, PUNCTUATION = WORD_KINDS = ("content", "function", "punctuation")
SPECIAL, ANY = "special", "any"
KINDS = (ANY, *WORD_KINDS, SPECIAL)
POSITIONS = (ANY, "start", "middle", "end")
_AT_ONCE = 16  # texts to read for the first trial
_GLIDES = {"quick": 4, "default": 8, "thorough": 16}  # starts that climb for all layers at once
# Articles, pronouns, prepositions, conjunctions, auxiliary verbs, particles and plain adverbs of degree or place: words
# that every text has, whatever it is about. Negations are here too, though one of them may decide a text.
_FUNCTION = frozenset(
    """
    a an the this that these those each every either neither some any no none all both half such same other another
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself we us
    our ours ourselves they them their theirs themselves one ones who whom whose which what whoever whatever whichever
    somebody someone something anybody anyone anything nobody nothing everybody everyone everything
    about above across after against along among around as at before behind below beneath beside besides between beyond
    by despite down during except for from in inside into like near of off on onto out outside over past per since than
    through throughout till to toward towards under until up upon via with within without
    and but or nor so yet if unless because although though while whereas whether once when whenever where wherever why
    how lest
    am is are was were be been being do does did doing done have has had having can could may might must shall should
    will would ought need dare
    not n't never ever also too very just only even still again already always often quite rather almost then thus hence
    here there now more most less least much many few several enough
    s t d ll m re ve don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn mustn needn ain
    """.split()
)


@dataclass(frozen=True)
class StatesCell(OfModel, OfTexts, OneTextForAllLengths):
    """Relative change of every hidden state of `model` when one word of the first n tokens of a text (special ones
    included, with a closing one where the model has it) moves, `radius` of its own norms far at most: searched,
    attention-attracting, and noise. One row a layer.

    The word is drawn by seed and trial from those of a `kind` ("content", "function", "punctuation", "any" of these;
    "special" is the first special token, such as [CLS]) in a third of the text (`position`: "start", "middle", "end",
    "any"). All its pieces move together; the last word of a text that was cut is never drawn, as it may be cut too. A
    trial's text is its own: the next one of `data`, of those with `at_least` so many tokens, that has such a word.
    Where `model` is "reinit:NAME" without a seed, each trial has weights of its own too.
    """

    numbers = ("layer", "remaining", "searched", "attracting", "noise", "noise_sd", "moved_token", "pieces",
               "evaluations")  # fmt: skip
    names = ("base", "weights", "word", "word_kind")
    within = ("layer",)
    first = "searched"
    picture = PICTURE

    n: int
    model: str = "minilm"
    data: str = "imdb"
    at_least: int | None = None
    kind: str = ANY
    position: str = ANY
    radius: float = 1.0
    noise_draws: int = 10
    budget: str = "quick"

    def __post_init__(self) -> None:
        check_size(self.n, "n", least=4)
        check_size(self.noise_draws, "noise_draws", least=2)
        for name in ("trial", "seed"):
            check_size(getattr(self, name), name, least=0)
        if self.at_least is not None:
            check_size(self.at_least, "at_least")
            if self.at_least < self.n:
                raise InputError(
                    f"at_least={self.at_least} is fewer than the n={self.n} tokens that are looked at",
                    argument="at_least",
                )
        for name, known in (("kind", KINDS), ("position", POSITIONS)):
            if getattr(self, name) not in known:
                raise InputError(f"{name}={getattr(self, name)!r} is not known; use: {', '.join(known)}", argument=name)
        if not 0 < self.radius < math.inf:
            raise InputError(
                f"radius must be a positive number, in norms of the word, got {self.radius!r}", argument="radius"
            )
        try:
            split_name(self.model)
        except InputError as error:
            raise InputError(f"model: {error}", argument="model") from None
        check_budget(self.budget)

    def settle(self) -> "StatesCell":
        position = ANY if self.kind == SPECIAL else self.position
        return replace(self, at_least=self.at_least or self.n, position=position)

    @property
    def drawn_model(self) -> str:
        """The model with the weights of this trial."""
        base, redraw = split_name(self.model)
        if redraw is None or redraw.seed is not None:
            return self.model
        return Redraw(redraw.kind, self.trial).named(base)

    def measure(self) -> Outcome:
        from wordsway.models.loading.load import open_model
        from wordsway.models.moving.layer_changes import layer_changes

        base, redraw = split_name(self.model)
        model = open_model(self.drawn_model)
        limit = model.encoder.limit
        if limit is not None and self.n > limit:
            raise InputError(f"n={self.n} is more than the {limit} tokens that {base} takes", argument="n")
        tokens, moving = self._text(model, base)
        X = tokens.X.double()
        reach = self.radius * float(X[list(moving)].norm(dim=1).max())
        settings: dict[str, Any] = {
            "noise_draws": self.noise_draws,
            "budget": self.budget,
            "glides": _GLIDES[self.budget],
        }
        found = layer_changes(model, X, moving, reach, **settings, seed=self.seed + self.trial)
        word = "".join(tokens.tokens[k] for k in moving)
        if self.kind != SPECIAL:
            word = tokens.words[tokens.pieces.index(moving)]
        common: dict[str, Any] = {
            "moved_token": moving[0],
            "pieces": len(moving),
            "evaluations": found.evaluations,
            "base": base,
            "weights": "trained" if redraw is None else redraw.kind,
            "word": word,
            "word_kind": SPECIAL if self.kind == SPECIAL else word_kind(word),
        }
        curves = {"searched": found.searched, "attracting": found.attracting}
        curves |= {"noise": found.noise.mean(0), "noise_sd": found.noise.std(0)}
        rows = [
            {"layer": layer, "remaining": model.layers - layer}
            | {name: float(curve[layer]) for name, curve in curves.items()}
            | common
            for layer in range(model.layers + 1)
        ]
        return Outcome(rows)

    def _text(self, model: "Transformer", base: str) -> "tuple[Tokens, tuple[int, ...]]":
        """The trial's text, cut to n tokens, and the tokens that move."""
        import torch

        from wordsway.models.moving.map import PretrainedMap

        phi, count, missing = PretrainedMap(model), _AT_ONCE, self.trial
        tried, complete = 0, False
        while not complete:
            texts, complete = _pool(self.data, base, self.at_least or self.n, self.seed, count)
            for text in texts[tried:]:
                (pieces,) = model.encoder.tokenize([text], self.n)
                if self.kind == SPECIAL and not any(pieces.special):
                    raise InputError(
                        f"kind={SPECIAL!r}: the tokenizer of {base} adds no special tokens to a text", argument="kind"
                    )
                words = self._words(model.encoder.as_tokens(pieces, torch.zeros(len(pieces.ids), 0), {}))
                missing -= bool(words)
                if words and missing < 0:
                    with warnings.catch_warnings():  # what lies beyond n tokens is not asked for
                        warnings.filterwarnings("ignore", "kept only", TextWarning)
                        return phi.encode(text, self.n), self._drawn(words)
            tried, count = len(texts), 2 * count
        kind = "" if self.kind == ANY else f" {self.kind}"
        place = "" if self.position == ANY else f" in the {self.position} of their first {self.n}"
        raise InputError(
            f"{self.data!r} has {self.trial - missing} texts of at least {self.at_least or self.n} tokens with a{kind} "
            f"word{place}, but trial {self.trial + 1} needs one more; use fewer trials, a smaller n or more texts"
        )

    def _words(self, tokens: "Tokens") -> list[tuple[int, ...]]:
        """The sets of tokens that may move."""
        if self.kind == SPECIAL:
            return [(int(k),) for k in tokens.special.nonzero()[:1]]
        whole = list(zip(tokens.pieces, tokens.words, strict=True))
        whole = whole[:-1] if tokens.full_length is not None else whole
        third = {"start": 0, "middle": 1, "end": 2}.get(self.position)
        return [
            pieces
            for pieces, word in whole
            if self.kind in (ANY, word_kind(word)) and third in (None, 3 * pieces[0] // len(tokens))
        ]

    def _drawn(self, words: list[tuple[int, ...]]) -> tuple[int, ...]:
        """By one number a trial, so that the same place of a text is drawn whatever its length and the model."""
        import torch

        from wordsway.support.seeds import generator

        place = torch.rand((), generator=generator(self.seed, "states", self.trial), dtype=torch.float64)
        return words[int(place * len(words))]

    def memory(self) -> float:
        d, layers, heads = self._size()
        block = 4.0 * self.n * 24 * d + 8.0 * heads * self.n**2
        at_once = min(self.noise_draws, max(1, 2304 // self.n))  # without a gradient
        return WITH_MODEL + (min(_GLIDES[self.budget], at_once) * layers + 2 * at_once) * block

    def seconds(self) -> float:
        from wordsway.models.moving.layer_changes import evaluations_of

        d, layers, _ = self._size()
        once = 12.0 * d * d * self.n + 2.0 * d * self.n**2  # multiplications of one block
        blocks = _GLIDES[self.budget] * 32 * layers + evaluations_of(self.budget) * layers * (layers + 1) / 2
        return 0.3 + (6e-6 * d + 4.7e-11 * once) * blocks

    def _size(self) -> tuple[int, int, int]:
        from wordsway.models.loading.load import size

        try:
            return size(locate(self.model))
        except InputError:
            return 768, 12, 12  # the error comes when it is carried out

    def models(self) -> tuple[str, ...]:
        return (self.drawn_model,)

    @property
    def label(self) -> str:
        kind = "" if self.kind == ANY else f" {self.kind}"
        place = "" if self.position == ANY else f" {self.position}"
        return f"{Path(self.model).name} n={self.n}{kind}{place} trial {self.trial + 1}"


@lru_cache(maxsize=8)
def _pool(data: str, encoder: str, at_least: int, seed: int, count: int) -> tuple[tuple[str, ...], bool]:
    """The first texts in the order of `seed`, and whether there are no more: a larger count begins as a smaller one."""
    from wordsway.datasets.labelled_texts import ShortageError, load_texts

    options: dict[str, Any] = {"seed": seed, "shorter_than": None, "at_least": at_least, "balance": False}
    try:
        return load_texts(data, count=count, encoder=encoder, **options).texts, False
    except ShortageError as error:
        if not error.found:
            return (), True
        return load_texts(data, count=error.found, encoder=encoder, **options).texts, True


def word_kind(word: str) -> str:
    """Say what kind of word a word of an English text is.

    Punctuation has no letter and no digit in it; function words are a list of ours, in any case, with the parts that
    tokenizers make of contractions; everything else has content, numbers too.
    """
    if not any(unicodedata.category(char)[0] in "LN" for char in word):
        return PUNCTUATION
    return FUNCTION if word.lower().replace("\u2019", "'").strip("'") in _FUNCTION | {"n't"} else CONTENT
