"""One map on one text: the part that word sensitivity, random changes and a user's own measures have in common."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from wordsway.datasets.text_sources import PADDINGS, PUBLISHED_LENGTH
from wordsway.maps.map_names import base_name, check_name
from wordsway.studies.cells.base import PROCESS, WITH_MODEL
from wordsway.studies.cells.grid_hooks import SYNTHETIC, OfEncoder, OfMap, OfTexts, OneTextForAllLengths
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import STRUCTURES, check_correlation, check_size, check_tokens

if TYPE_CHECKING:
    from wordsway.studies.cells.drawn_text import Drawn

_TextCell = TypeVar("_TextCell", bound="TextCell")


@dataclass(frozen=True)
class TextCell(OfMap, OfTexts, OfEncoder, OneTextForAllLengths):
    """`map` on one text of n tokens and d coordinates (None: all that the encoder has; 384 of synthetic rows), of which
    `token` moves by up to `radius` times sqrt(d).

    The encoder "synthetic" gives independent Gaussian rows. Others embed texts of `data` that have `at_least` so many
    tokens (n unless given), or with padding "published" those below 240 with padding up to 256; with `center`, without
    their mean. Synthetic rows may be correlated (`synthetic_tokens` has the structures). The token is a position, or
    "word" for the first one that is not special. Every trial has a text and weights of its own, and all kinds of cells
    with these fields have the same ones.
    """

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

    def __post_init__(self) -> None:
        check_size(self.n, "n")
        for name in ("d", "at_least"):
            if getattr(self, name) is not None:
                check_size(getattr(self, name), name)
        for name in ("layer", "trial", "seed"):
            check_size(getattr(self, name), name, least=0)
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
        if self.at_least is not None and self.at_least < self.n:
            raise InputError(
                f"at_least={self.at_least} is fewer than the n={self.n} tokens that are looked at", argument="at_least"
            )

    def settle(self: _TextCell) -> _TextCell:
        if self.encoder == SYNTHETIC:
            token = 0 if self.token == "word" else self.token
            cell = replace(self, d=self.d or 384, data=None, layer=0, padding="none", at_least=None, token=token)
            return replace(cell, center=False, structure=self.structure if self.correlation else "mean")
        least = None if self.padding == "published" else self.at_least or self.n
        return replace(self, at_least=least, structure="mean")

    def drawn(self) -> "Drawn":
        """Draw the text and the map's weights."""
        from wordsway.studies.cells.drawn_text import draw  # needs torch, which a plan of cells does without

        return draw(self)

    def check_texts(self) -> None:
        if self.encoder != SYNTHETIC:
            from wordsway.studies.cells.drawn_text import draw_text

            draw_text(self)

    def memory(self) -> float:
        return self.bytes_for(1)

    def bytes_for(self, moved: int) -> float:
        """Bytes that searching so many tokens together needs, which is more than anything else we do with a text."""
        n, d = self.n, self.d or 768
        base = PROCESS if self.encoder == SYNTHETIC else WITH_MODEL
        layers = {"rf": 1, "drf": self.depth or 2}.get(base_name(self.map), 0)
        if base_name(self.map) == "transformer":
            return base + 8.0 * (self.depth or 1) * (24.0 * d * d + 60.0 * n * d + 20.0 * n * n)
        text = 40.0 * n * d * 8 + 60.0 * n**2 * 8 + 30.0 * d**2 * 8
        return base + 2500.0 * n * d * layers * moved + text * (1 + moved / 8)

    @property
    def label(self) -> str:
        depth = f" depth {self.depth}" if self.depth else ""
        more = f" rho={self.correlation:g}" if self.correlation else ""
        return f"{self.map}{depth} d={self.d or 'all'} n={self.n}{more}{self._more()} trial {self.trial + 1}"

    def _more(self) -> str:
        """Add to the label of a kind."""
        return ""


def check_text_source(padding: str, layer: int, token: int | str, n: int) -> None:
    """Check the fields that all cells with texts have."""
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
