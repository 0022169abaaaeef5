"""The cell of Figures 2 and 3: word sensitivity of one map on one text."""

import math
from dataclasses import dataclass, replace
from typing import Any

from wordsway import theory
from wordsway.cells.base import PROCESS, WITH_MODEL, Cell, Outcome
from wordsway.cells.passages import passage
from wordsway.errors import InputError
from wordsway.maps.named import named_map, named_recipe
from wordsway.search.ascent import check_budget
from wordsway.seeds import stream
from wordsway.sensitivity import word_sensitivity
from wordsway.tasks import PADDINGS, PUBLISHED_LENGTH
from wordsway.tokens import check_size, check_tokens, synthetic_tokens

SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class SensitivityCell(Cell):
    """Word sensitivity of `map` on one text of n tokens and d coordinates (None: all that the encoder has; 384 of
    synthetic rows), when `token` moves by up to `radius` times sqrt(d).

    The encoder "synthetic" gives independent Gaussian rows. Others embed texts of `data` that have `at_least` so many
    tokens (n unless given), or with padding "published" those below 240 with padding up to 256. The token is a
    position, or "word" for the first one that is not special. Every trial has a text and weights of its own.
    """

    numbers = (
        "width",
        "lower",
        "upper",
        "upper_failure",
        "random_mean",
        "predicted",
        "moved_token",
        "evaluations",
    )
    names = ("checked",)
    first = "lower"

    map: str
    n: int
    d: int | None = None
    depth: int | None = None
    temperature: float = 1.0
    radius: float = 1.0
    encoder: str = SYNTHETIC
    data: str | None = "imdb"
    layer: int = 0
    padding: str = "none"
    at_least: int | None = None
    token: int | str = 0
    certificate: bool = True
    budget: str = "default"
    keep_delta: bool = False

    def __post_init__(self) -> None:
        check_size(self.n, "n")
        for name in ("d", "at_least"):
            if getattr(self, name) is not None:
                check_size(getattr(self, name), name)
        for name in ("layer", "trial", "seed"):
            check_size(getattr(self, name), name, least=0)
        check_budget(self.budget)
        named_recipe(self.map, depth=self.depth, temperature=self.temperature)
        if not 0 < self.radius < math.inf:
            raise InputError(f"radius must be a positive number, in units of sqrt(d), got {self.radius!r}")
        check_text_source(self.padding, self.layer, self.token, self.n)
        if self.at_least is not None and self.at_least < self.n:
            raise InputError(f"at_least={self.at_least} is fewer than the n={self.n} tokens that are looked at")

    def settle(self) -> "SensitivityCell":
        width = self.d
        if self.encoder == SYNTHETIC:
            token = 0 if self.token == "word" else self.token
            return replace(self, d=width or 384, data=None, layer=0, padding="none", at_least=None, token=token)
        least = None if self.padding == "published" else self.at_least or self.n
        return replace(self, at_least=least)

    def measure(self) -> Outcome:
        if self.encoder == SYNTHETIC:
            d = self.d or 384
            X: Any = synthetic_tokens(self.n, d, stream(self.seed, "curve", d, self.n, self.trial, "text"))
            token = 0 if self.token == "word" else self.token
        else:
            assert self.data is not None
            text = passage(
                self.data, self.encoder, self.layer, self.padding, self.at_least or self.n, self.seed, self.trial
            )[: self.n]
            X = text if self.d is None else text.first_dims(self.d)
            d = X.X.shape[1]
            token = int((~X.special).nonzero()[0]) if self.token == "word" else self.token
        assert isinstance(token, int)
        weights = stream(self.seed, "curve", d, self.n, self.trial, "weights")
        phi = named_map(self.map, self.n, d, weights, depth=self.depth, temperature=self.temperature)
        radius = self.radius * math.sqrt(d)
        r = word_sensitivity(
            phi, X, token, seed=self.seed, radius=radius, certificate=self.certificate, budget=self.budget
        )
        assert r.random is not None
        row = {
            "width": d,
            "lower": r.lower,
            "upper": r.upper,
            "upper_failure": r.upper_failure if r.upper is not None else None,
            "random_mean": r.random.mean,
            "predicted": self._predicted(d, radius),
            "moved_token": r.token,
            "evaluations": r.evaluations,
            "checked": r.checked,
        }
        return Outcome([row], {"delta": r.delta} if self.keep_delta else {})

    def _predicted(self, d: int, radius: float) -> float | None:
        """The law of random features depends on the rows' norms alone; the prediction for attention is for independent
        rows, which those of a real text are not."""
        if self.temperature != 1.0 or (self.encoder != SYNTHETIC and self.map not in ("rf", "drf")):
            return None
        return theory.predict(self.map, self.n, d, radius)

    def memory(self) -> float:
        d = self.d or 768
        layers = {"rf": 1, "drf": self.depth or 2}.get(self.map, 0)
        base = PROCESS if self.encoder == SYNTHETIC else WITH_MODEL
        return base + 2500.0 * self.n * d * layers + 40.0 * self.n * d * 8 + 60.0 * self.n**2 * 8 + 30.0 * d**2 * 8

    def seconds(self) -> float:
        d = self.d or 768
        if self.map == "rf":
            return 0.1 + 7e-9 * self.n * d * d
        if self.map == "drf":
            return 0.1 + 8e-6 * self.n * d * (self.depth or 2)
        return 0.1 + 2e-6 * self.n * d

    def models(self) -> tuple[str, ...]:
        return () if self.encoder == SYNTHETIC else (self.encoder,)

    @property
    def label(self) -> str:
        depth = f" depth {self.depth}" if self.depth else ""
        return f"{self.map}{depth} d={self.d or 'all'} n={self.n} trial {self.trial + 1}"


def check_text_source(padding: str, layer: int, token: int | str, n: int) -> None:
    """What cells with texts have in common."""
    if padding not in PADDINGS:
        raise InputError(f"padding={padding!r} is not known; use: {', '.join(PADDINGS)}")
    if padding == "published" and n > PUBLISHED_LENGTH:
        raise InputError(f"n={n} is more than the {PUBLISHED_LENGTH} tokens that texts are padded to as published")
    if padding == "published" and layer:
        raise InputError(f"padding as published is for the embedding layer's output, not for layer={layer}")
    if isinstance(token, str):
        if token != "word":
            raise InputError(f'token={token!r} is not known; use a position, or "word" for the first one that is no '
                             "special token")  # fmt: skip
    else:
        check_tokens([token], n)
