"""The cell of Figures 2 and 3: word sensitivity of one map on one text."""

import math
from dataclasses import dataclass, replace
from typing import Any

from wordsway.datasets.training_sets import PADDINGS, PUBLISHED_LENGTH
from wordsway.maps import theory
from wordsway.maps.named import base_name, check_name, named_map
from wordsway.measures.sensitivity import word_sensitivity
from wordsway.measures.several_tokens import Several
from wordsway.search.ascent import check_budget
from wordsway.studies.cells.base import PROCESS, WITH_MODEL, Cell, Outcome
from wordsway.studies.cells.passages import passage
from wordsway.support.errors import InputError, ZeroError
from wordsway.support.seeds import stream
from wordsway.tokens import STRUCTURES, check_correlation, check_size, check_tokens, synthetic_tokens

SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class SensitivityCell(Cell):
    """Word sensitivity of `map` on one text of n tokens and d coordinates (None: all that the encoder has; 384 of
    synthetic rows), when `token` moves by up to `radius` times sqrt(d).

    The encoder "synthetic" gives independent Gaussian rows. Others embed texts of `data` that have `at_least` so many
    tokens (n unless given), or with padding "published" those below 240 with padding up to 256; with `center`, without
    their mean. Synthetic rows may be correlated (`synthetic_tokens` has the structures). The token is a position, or
    "word" for the first one that is not special; with `tokens_at_once`, so many of all tokens move together (see
    `word_sensitivity`). Every trial has a text and weights of its own.
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
    names = ("checked", "chosen")
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
    center: bool = False
    correlation: float = 0.0
    structure: str = "mean"
    token: int | str = 0
    tokens_at_once: int | None = None
    choose: str | None = None
    ball: str = "each"
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
        width = self.d or (384 if self.encoder == SYNTHETIC else None)
        check_name(self.map, width, depth=self.depth, temperature=self.temperature)
        if not 0 < self.radius < math.inf:
            raise InputError(
                f"radius must be a positive number, in units of sqrt(d), got {self.radius!r}", argument="radius"
            )
        check_text_source(self.padding, self.layer, self.token, self.n)
        check_correlation(self.correlation)
        if self.structure not in STRUCTURES:
            raise InputError(
                f"structure={self.structure!r} is not known; use one of: {', '.join(STRUCTURES)}", argument="structure"
            )
        if self.encoder != SYNTHETIC and self.correlation:
            raise InputError(
                "correlation is about synthetic rows; those of real texts are as they are", argument="correlation"
            )
        if self.center and self.n < 2:
            raise InputError(
                "center takes the mean row away, which leaves nothing of a single token", argument="center"
            )
        if self.tokens_at_once is not None:
            Several.of(self.tokens_at_once, self.choose, self.ball, self.n)
        elif self.choose is not None or self.ball != "each":
            raise InputError(
                "choose and ball are about tokens that move together; say how many in tokens_at_once", argument="choose"
            )
        if self.at_least is not None and self.at_least < self.n:
            raise InputError(
                f"at_least={self.at_least} is fewer than the n={self.n} tokens that are looked at", argument="at_least"
            )

    def settle(self) -> "SensitivityCell":
        width = self.d
        if self.encoder == SYNTHETIC:
            token = 0 if self.token == "word" else self.token
            cell = replace(self, d=width or 384, data=None, layer=0, padding="none", at_least=None, token=token)
            cell = replace(cell, center=False, structure=self.structure if self.correlation else "mean")
        else:
            least = None if self.padding == "published" else self.at_least or self.n
            cell = replace(self, at_least=least, structure="mean")
        return cell if cell.tokens_at_once is None else replace(cell, token=0)

    def measure(self) -> Outcome:
        if self.encoder == SYNTHETIC:
            d = self.d or 384
            seed = stream(self.seed, "curve", d, self.n, self.trial, "text")
            X: Any = synthetic_tokens(self.n, d, seed, self.correlation, self.structure)
            token = 0 if self.token == "word" else self.token
        else:
            assert self.data is not None
            text = passage(
                self.data, self.encoder, self.layer, self.padding, self.at_least or self.n, self.seed, self.trial
            )[: self.n]
            X = text if self.d is None else text.first_dims(self.d)
            X = X.centered() if self.center else X
            d = X.X.shape[1]
            token = int((~X.special).nonzero()[0]) if self.token == "word" else self.token
        assert isinstance(token, int)
        weights = stream(self.seed, "curve", d, self.n, self.trial, "weights")
        phi = named_map(self.map, self.n, d, weights, depth=self.depth, temperature=self.temperature)
        radius = self.radius * math.sqrt(d)
        together: dict[str, Any] = {}
        if self.tokens_at_once is not None:
            together = {"tokens_at_once": self.tokens_at_once, "choose": self.choose, "ball": self.ball}
            together |= {"special": True} if self.encoder != SYNTHETIC else {}
        options: dict[str, Any] = {"radius": radius, "certificate": self.certificate, "budget": self.budget, **together}
        which: Any = "all" if together else token
        try:
            r = word_sensitivity(phi, X, which, seed=self.seed, **options)
        except ZeroError as error:
            if not self.correlation:
                raise
            # Rows that share a direction can all have negative scores: with ReLU that is a finding, not a failure.
            return Outcome([{**dict.fromkeys(self.numbers), "width": d, "checked": str(error), "chosen": None}])
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
            "chosen": None if r.together is None else r.together["by"],
        }
        return Outcome([row], {"delta": r.delta} if self.keep_delta else {})

    def _predicted(self, d: int, radius: float) -> float | None:
        """The law of random features depends on the rows' norms alone; the prediction for attention is for independent
        rows, which those of a real text are not."""
        if self.temperature != 1.0 or (self.encoder != SYNTHETIC and self.map not in ("rf", "drf")):
            return None
        moved = self.tokens_at_once or 1
        if self.map != "rf" and self.correlation and self.structure != "mean":
            return None
        radius = radius / math.sqrt(moved) if self.ball == "shared" else radius  # what each has when all have as much
        return theory.predict(self.map, self.n, d, radius, self.correlation, moved)

    def memory(self) -> float:
        n, d, moved = self.n, self.d or 768, self.tokens_at_once or 1
        base = PROCESS if self.encoder == SYNTHETIC else WITH_MODEL
        layers = {"rf": 1, "drf": self.depth or 2}.get(base_name(self.map), 0)
        if base_name(self.map) == "transformer":
            return base + 8.0 * (self.depth or 1) * (24.0 * d * d + 60.0 * n * d + 20.0 * n * n)
        text = 40.0 * n * d * 8 + 60.0 * n**2 * 8 + 30.0 * d**2 * 8
        return base + 2500.0 * n * d * layers * moved + text * (1 + moved / 8)

    def seconds(self) -> float:
        n, d, moved = self.n, self.d or 768, self.tokens_at_once or 1
        kind = base_name(self.map)
        if kind == "rf":
            return 0.1 + 7e-9 * n * d * d * moved
        if kind == "drf":
            return 0.1 + 8e-6 * n * d * (self.depth or 2)
        if kind == "transformer":
            return 0.1 + 8e-9 * n * d * (d + n / 8) * (self.depth or 1)
        return 0.1 + 2e-6 * n * d * (1 + moved / 2)

    def models(self) -> tuple[str, ...]:
        return () if self.encoder == SYNTHETIC else (self.encoder,)

    @property
    def label(self) -> str:
        depth = f" depth {self.depth}" if self.depth else ""
        more = f" rho={self.correlation:g}" if self.correlation else ""
        more += f" m={self.tokens_at_once}" if self.tokens_at_once else ""
        return f"{self.map}{depth} d={self.d or 'all'} n={self.n}{more} trial {self.trial + 1}"


def check_text_source(padding: str, layer: int, token: int | str, n: int) -> None:
    """What cells with texts have in common."""
    if padding not in PADDINGS:
        raise InputError(f"padding={padding!r} is not known; use: {', '.join(PADDINGS)}", argument="padding")
    if padding == "published" and n > PUBLISHED_LENGTH:
        raise InputError(
            f"n={n} is more than the {PUBLISHED_LENGTH} tokens that texts are padded to as published", argument="n"
        )
    if padding == "published" and layer:
        raise InputError(
            f"padding as published is for the embedding layer's output, not for layer={layer}", argument="padding"
        )
    if isinstance(token, str):
        if token != "word":
            raise InputError(f'token={token!r} is not known; use a position, or "word" for the first one that is no '
                             "special token", argument="token")  # fmt: skip
    else:
        check_tokens([token], n)
