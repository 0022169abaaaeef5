"""A request of the page: parsed, checked against what the page offers, and made a question or a command."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from wordsway.app.offers import Offer
from wordsway.measures.compare_draws import MAPS
from wordsway.models.loading.sentiment import NAME as SENTIMENT
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS, SIMPLE_OUTPUTS

if TYPE_CHECKING:
    from wordsway.measures.question import Question
    from wordsway.tokens import Tokens

MOST_CHARACTERS = 20_000
MOST_TOKENS = 512
MOST_WEIGHTS = 50


@dataclass(frozen=True)
class PageRequest:
    """A text with a whole model (`model`), or with a map on its embeddings over draws of its weights: `map`, or
    attention and random features side by side. One draw (`weights`) is a single map. `n` keeps the first tokens."""

    text: str
    map: str | None = None
    encoder: str = "minilm"
    layer: int = 0
    certificate: bool = True
    weights: int | None = None
    model: str | None = None
    output: str | None = None
    radius: float = 1.0
    n: int | None = None
    budget: str = "default"
    seed: int = 0

    @staticmethod
    def of(values: Any, offers: Mapping[str, Offer]) -> "PageRequest":
        """Parse what a client sent; an InputError says what is wrong with it."""
        from wordsway.maps.map_names import is_own
        from wordsway.maps.named import named_recipe

        if not isinstance(values, dict):
            raise InputError("a question is a JSON object")
        unknown = sorted(set(values) - {field.name for field in fields(PageRequest)})
        if unknown:
            raise InputError(f"a question has no {unknown[0]!r}")
        asked = PageRequest(
            text=_text(values.get("text")),
            map=_one(values, "map", str, None),
            encoder=_one(values, "encoder", str, "minilm"),
            layer=_one(values, "layer", int, 0),
            certificate=_one(values, "certificate", bool, True),
            weights=_one(values, "weights", int, None),
            model=_one(values, "model", str, None),
            output=_one(values, "output", str, None),
            radius=float(_one(values, "radius", float, 1.0)),
            n=_one(values, "n", int, None),
            budget=_one(values, "budget", str, "default"),
            seed=_one(values, "seed", int, 0),
        )
        if asked.model is not None and (asked.map is not None or asked.weights is not None):
            raise InputError("a question is about draws of a map or about a model, not about both")
        if asked.map is not None:
            if is_own(asked.map):  # a page must not make anybody's machine run code
                raise InputError(f"map={asked.map!r} is not known here; code of your own: wordsway measure --own")
            named_recipe(asked.map)
        _known(asked.encoder if asked.model is None else asked.model, offers)
        if asked.model is None and asked.encoder == SENTIMENT:
            raise InputError(f"{SENTIMENT!r} is a model, not an encoder; its encoder is 'minilm'")
        if asked.budget not in BUDGETS or asked.output not in (None, *SIMPLE_OUTPUTS):
            raise InputError(f"budget is one of {', '.join(BUDGETS)}; output one of {', '.join(SIMPLE_OUTPUTS)}")
        if not 0 < asked.radius <= 1000:
            raise InputError("the radius must be a positive number, at most 1000")
        if asked.n is not None and not 1 <= asked.n <= MOST_TOKENS:
            raise InputError(f"tokens to keep: from 1 to {MOST_TOKENS}, or leave it empty")
        if asked.weights is not None and not 1 <= asked.weights <= MOST_WEIGHTS:
            raise InputError(f"draws of the weights: from 1 to {MOST_WEIGHTS}, or leave it empty")
        if not 0 <= asked.seed < 2**31 or not 0 <= asked.layer < 1000:
            raise InputError("seed and layer are whole numbers from 0")
        return asked

    @property
    def maps(self) -> tuple[str, ...]:
        """The maps that are compared; of a single one, the first is measured."""
        return MAPS if self.map is None else (self.map,)

    @property
    def cropped_at(self) -> int | None:
        """The number of tokens at which the tokenizer crops. A model keeps special tokens at the end of what is left of
        a text; of a map's text the first tokens are taken afterwards, which must not fail because all of them are too
        many."""
        if self.model is not None or self.n is None:
            return self.n
        return MOST_TOKENS if len(self.text) > MOST_TOKENS // 2 else None  # a shorter text has fewer tokens than that

    def question(self) -> "Question":
        """Make the question, as `wordsway measure` makes it."""
        from wordsway.measures.question import Question

        common: dict[str, Any] = {"radius": self.radius, "budget": self.budget, "seed": self.seed}
        common["max_tokens"] = self.cropped_at
        if self.model is not None:
            return Question(self.text, model=self.model, output=self.output, **common)
        rows: dict[str, Any] = {"encoder": self.encoder, "layer": self.layer, "n": self.n}
        return Question(self.text, map=self.maps[0], certificate=self.certificate, **rows, **common)

    def arguments(self, draws: int | None = None) -> list[str]:
        """Write the options of `wordsway measure`; what is usual is left out. `draws` is how many were made, where a
        number was not asked for: a command that is given it takes no account of the time."""
        if self.model is not None:
            given = {"--model": self.model, "--of": self.output}
        else:
            given = {"--map": self.map, "--encoder": None if self.encoder == "minilm" else self.encoder}
            given |= {"--layer": self.layer or None, "--n": self.n}
            alone = draws == 1 and self.weights is None  # --weights 1 would ask for a single map
            given["--weights"] = None if alone else draws or self.weights
        given["--max-tokens"] = self.cropped_at
        given["--radius"] = None if self.radius == 1 else f"{self.radius!r}"
        given["--budget"] = None if self.budget == "default" else self.budget
        given["--seed"] = self.seed or None
        found = [part for option, value in given.items() if value is not None for part in (option, str(value))]
        return found + ([] if self.certificate or self.model is not None else ["--no-certificate"])

    def command(self, draws: int | None = None) -> str:
        """Write one line (of a POSIX shell) that measures the same."""
        options = self.arguments(draws)
        if self.text == "-":  # which the command would take for stdin
            return shlex.join(["echo", "-"]) + " | " + shlex.join(["wordsway", "measure", "-", *options])
        if self.text.startswith("-"):
            return shlex.join(["wordsway", "measure", *options, "--", self.text])
        return shlex.join(["wordsway", "measure", self.text, *options])


def check_length(tokens: "Tokens") -> None:
    if len(tokens) > MOST_TOKENS:
        raise InputError(
            f"the text has {len(tokens)} tokens, and this page measures at most {MOST_TOKENS}: keep the first ones, or "
            "use wordsway measure --file"
        )


def _text(value: Any) -> str:
    from wordsway.models.running.encoder import check_text

    text = check_text(value, "the text")
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"the text has {len(text):,} characters, and this page takes at most {MOST_CHARACTERS:,}")
    if "\0" in text:
        raise InputError("the text has a NUL character, which no command line can hold")
    return text


def _one(values: dict[str, Any], key: str, kind: type, unless: Any) -> Any:
    value = values.get(key)
    if value is None:
        return unless
    right = isinstance(value, (int, float) if kind is float else kind) and (kind is bool) == isinstance(value, bool)
    if not right or (kind is float and not abs(value) < 1e300):
        names = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
        raise InputError(f"{key} must be {names[kind]}")
    return value


def _known(name: str, offers: Mapping[str, Offer]) -> None:
    if name not in offers:
        raise InputError(f"the model {name!r} is not offered here; start the page with --models FOLDER to offer yours")
