"""A question about a text: how far can its words move a map or a model? It checks itself and measures itself.

The command, the page and the cells of studies all make a `Question` of what they were asked and hand it on. What can be
told to be wrong before a model is loaded is told when the question is made.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from wordsway.maps.base import FeatureMap
from wordsway.maps.map_names import check_name
from wordsway.maps.named import named_map
from wordsway.measures.results import Sensitivity, TokenSensitivity
from wordsway.measures.sensitivity import word_sensitivity
from wordsway.measures.several_tokens import several_of
from wordsway.measures.words import radii_in_norms
from wordsway.models.encoding.encode import encode
from wordsway.models.moving.map import PretrainedMap
from wordsway.models.running.encoder import check_text
from wordsway.models.running.model import find_at
from wordsway.support.cancelling import Cancel
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError
from wordsway.support.names import ENCODER
from wordsway.support.plain_checks import check_effort, check_size
from wordsway.support.progress import Progress
from wordsway.support.public_gate import public
from wordsway.tokens import Tokens, as_text, find_words

AT = "embeddings"  # where moves enter a model, unless given


class QuestionError(InputError):
    """A field of a question that is wrong. `fault` is the message after the field's name, so that a command can put
    the name of its option there."""

    def __init__(self, name: str, fault: str) -> None:
        super().__init__(name + fault, argument=name)
        self.field, self.fault = name, fault


@public
@dataclass(frozen=True, eq=False)
class Question:
    """A question about a `text`: how far can its words move the features of a `map` or the `output` of a `model`?

    text       a text to encode, an encoded one (`Tokens`), or rows X (n, d) without words
    map        a name with options (raf:heads=4; `recipe` may hold further ones), or a map with weights
    encoder    of a text for a map: what embeds it, at which `layer`; `raw` rows keep their norms
    n, d       of a map: keep the first n tokens and d coordinates of an encoded text
    model      a name, folder, hub id or opened model; what is observed is its `output` (logits where it has them, else
               last), and moves enter it `at`
    max_tokens where the tokenizer crops a text
    word       the word to move: itself, or its number from 1; else `token` as for `word_sensitivity`, which also has
               `joint`, `special`, `tokens_at_once`, `choose`, `ball`, `certificate` and `random_draws`
    radius     how far a token may move, as a share of sqrt(d); of its own norm where rows were not rescaled
    budget     of the search of a token: a name or a number of evaluations
    seed       of the search, and of the weights of a map that is given by name
    device     where the search and the model run
    """

    text: str | Tokens | Tensor
    map: str | FeatureMap | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    encoder: Any = ENCODER
    layer: int = 0
    raw: bool = False
    n: int | None = None
    d: int | None = None
    model: Any = None
    output: str | None = None
    at: str = AT
    max_tokens: int | None = None
    word: str | int | None = None
    token: int | Sequence[int] | Literal["all"] | None = None
    joint: bool = False
    special: bool = False
    tokens_at_once: int | None = None
    choose: str | None = None
    ball: str = "each"
    radius: float = 1.0
    budget: int | str | None = None
    certificate: bool = True
    random_draws: int = 100
    seed: int = 0
    device: str | torch.device = "cpu"

    def __post_init__(self) -> None:
        if (self.map is None) == (self.model is None):
            raise QuestionError("map", " or model: a question is about a map or about a model, so give one of the two")
        self._check_text()
        self._check_numbers()
        if isinstance(self.map, str):
            check_name(self.map, **self.recipe)
        elif self.recipe:
            raise QuestionError("recipe", " has options of a map that is given by its name")
        find_at(self.at)
        if self.model is None and (self.output is not None or self.at != AT):
            raise QuestionError("output" if self.output is not None else "at", " belongs to a model, not to a map")
        several_of(self.tokens_at_once, self.choose, self.ball, self.joint, candidates=self.tokens_at_once or 0)
        check_effort(self.budget)
        find_device(self.device)

    def _check_text(self) -> None:
        """Check the text, and that no field asks for what only another kind of text has."""
        if isinstance(self.text, str):
            check_text(self.text, "the text")
        else:
            as_text(self.text, "text")
            crops = {"n": self.n, "d": self.d, "max_tokens": self.max_tokens}
            given = next((name for name, value in crops.items() if value is not None), None)
            if given is not None:
                raise QuestionError(given, " crops a text that is encoded here; this one is given by its rows")
        if isinstance(self.word, bool) or not isinstance(self.word, str | int | None):
            raise QuestionError("word", f" must be a word or its number from 1, got {self.word!r}")
        if self.word is not None and self.token is not None:
            raise QuestionError("word", " and token both say what moves; give one of them")
        if self.word is not None and not isinstance(self.text, str | Tokens):
            raise QuestionError("word", " needs a text: rows alone have no words")
        if self.model is not None:
            of_a_map = {"encoder": self.encoder != ENCODER, "layer": self.layer != 0, "raw": self.raw}
            of_a_map |= {"n": self.n is not None, "d": self.d is not None}
            for name, used in of_a_map.items():
                if used:
                    raise QuestionError(name, " belongs to a map, not to a model")

    def _check_numbers(self) -> None:
        """Check every field that is a number, or true or false."""
        for name in ("n", "d", "max_tokens", "tokens_at_once"):
            if getattr(self, name) is not None:
                check_size(getattr(self, name), name)
        for name in ("layer", "seed", "random_draws"):
            check_size(getattr(self, name), name, least=0)
        for name in ("raw", "joint", "special", "certificate"):
            if not isinstance(getattr(self, name), bool):
                raise QuestionError(name, f" must be true or false, got {getattr(self, name)!r}")
        radius = self.radius
        if isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 < radius < math.inf:
            raise QuestionError("radius", f" must be a positive number, got {radius!r}")

    def open(self) -> "OpenQuestion":
        """Load the model or draw the map's weights, and encode the text."""
        if self.model is not None:
            phi = PretrainedMap(self.model, self.output, at=self.at, device=self.device)
            X = phi.encode(self.text, self.max_tokens) if isinstance(self.text, str) else self.text
            return OpenQuestion(self, phi, X)
        X = self.encode(self.text) if isinstance(self.text, str) else self.text
        if isinstance(self.map, FeatureMap):
            return OpenQuestion(self, self.map, X)
        assert self.map is not None
        n, d = (X.X if isinstance(X, Tokens) else X).shape
        return OpenQuestion(self, named_map(self.map, n, d, self.seed, device=self.device, **self.recipe), X)

    def encode(self, text: str) -> Tokens:
        """Encode a text for the map, cropped as asked; the same for both texts of a comparison."""
        options: dict[str, Any] = {"layer": self.layer, "normalize": not self.raw, "device": self.device}
        tokens = encode(text, self.encoder, max_tokens=self.max_tokens, **options)
        assert isinstance(tokens, Tokens)
        if self.n is not None:
            have = len(tokens)
            if self.n > have:
                raise QuestionError("n", f"={self.n} is more than the {have} tokens of the text; use at most {have}")
            tokens = tokens[: self.n]
        return tokens if self.d is None else tokens.first_dims(self.d)

    def measure(
        self,
        *,
        progress: Progress = None,
        each: Callable[[TokenSensitivity], None] | None = None,
        cancel: Cancel | None = None,
    ) -> Sensitivity:
        """Answer the question; the callbacks are those of `word_sensitivity`."""
        return self.open().measure(progress=progress, each=each, cancel=cancel)


@dataclass(frozen=True, eq=False)
class OpenQuestion:
    """A question with its map or model loaded and its text encoded."""

    question: Question
    phi: FeatureMap
    X: Tokens | Tensor

    @property
    def radii(self) -> tuple[float, ...]:
        """The largest norm of a move, for each token."""
        rows = self.X.X if isinstance(self.X, Tokens) else as_text(self.X, "text")
        own_norms = isinstance(self.X, Tokens) and not self.X.normalized
        return radii_in_norms(self.question.radius, rows, own_norms or self.question.raw)

    @property
    def moving(self) -> Any:
        """The tokens that move, as `word_sensitivity` takes them."""
        asked = self.question
        if asked.word is not None and isinstance(self.X, Tokens):
            return [piece for word in find_words(self.X, asked.word) for piece in self.X.pieces[word]]
        return "all" if asked.token is None else asked.token

    @property
    def search(self) -> dict[str, Any]:
        """Options of the search, as `word_sensitivity` takes them."""
        names = ("seed", "budget", "device", "certificate")
        return {"radius": self.radii, **{name: getattr(self.question, name) for name in names}}

    def measure(
        self,
        *,
        progress: Progress = None,
        each: Callable[[TokenSensitivity], None] | None = None,
        cancel: Cancel | None = None,
    ) -> Sensitivity:
        """Answer the question; the callbacks are those of `word_sensitivity`."""
        names = ("joint", "special", "tokens_at_once", "choose", "ball", "random_draws")
        moves = {name: getattr(self.question, name) for name in names}
        callbacks = {"progress": progress, "each": each, "cancel": cancel}
        return word_sensitivity(self.phi, self.X, self.moving, **self.search, **moves, **callbacks)
