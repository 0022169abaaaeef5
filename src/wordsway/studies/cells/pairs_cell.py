"""The cell of minimal pairs: a readout learns from pairs of texts, and is asked about pairs that it has not seen."""

from dataclasses import asdict, dataclass, replace

from wordsway.datasets.text_sources import GENERATED, POSITIONS
from wordsway.maps.map_names import base_name, check_name
from wordsway.studies.cells.base import WITH_MODEL, Outcome
from wordsway.studies.cells.grid_hooks import SYNTHETIC, OfEncoder, OfMap, OfTexts
from wordsway.studies.panels.pairs_panel import PICTURE
from wordsway.support.errors import InputError
from wordsway.support.memory import require
from wordsway.support.plain_checks import check_size

# Beside the random maps: the model's last hidden states, their mean, and the mean of the embedding layer's rows.
STATES, POOLED, MEAN = "states", "pooled", "mean"
_OF_THE_MODEL = (MEAN, STATES, POOLED)
_SIDES = ("both", "one")


@dataclass(frozen=True)
class PairsCell(OfMap, OfTexts, OfEncoder):
    """A minimum-norm readout of `map`, trained on `pairs` pairs and asked about `test_pairs` others.

    The data "generated" are minimal pairs of `datasets`: texts of exactly n tokens that differ in one, whose deciding
    sentence is at the "start" or at a "random" place. Their test pairs have subjects that training had not, and
    deciding words that were seen in training or are new. Other data are a source with pairs (a column `pair` or
    `batch_id`), of which the first n tokens are taken. Rows tell apart the words of the test pairs ("seen", "new", or
    "given"), and whether training had both sides of every pair or one of them.
    """

    numbers = (
        *("width", "accuracy", "single", "permuted", "permuted_sd", "permuted_low", "permuted_high", "p_value"),
        *("auc", "closer", "change", "change_same", "moved_tokens", "available", "rank", "residual"),
    )
    names = ("words", "sides")
    within = ("words", "sides")
    first = "accuracy"
    picture = PICTURE

    map: str
    n: int
    pairs: int = 200
    test_pairs: int = 100
    d: int | None = None
    depth: int | None = None
    position: str = "random"
    encoder: str = "minilm"
    data: str = GENERATED

    def __post_init__(self) -> None:
        for name in ("n", "test_pairs"):
            check_size(getattr(self, name), name)
        check_size(self.pairs, "pairs", least=2)
        if self.d is not None:
            check_size(self.d, "d")
        for name in ("trial", "seed"):
            check_size(getattr(self, name), name, least=0)
        if self.map not in _OF_THE_MODEL:
            try:
                check_name(self.map, self.d, depth=self.depth)
            except InputError as error:
                raise InputError(f"{error} (or one of: {', '.join(_OF_THE_MODEL)})", argument="map") from None
        elif self.depth is not None:
            raise InputError(
                f"depth={self.depth} has no meaning for map={self.map!r}; it belongs to drf", argument="depth"
            )
        if self.position not in POSITIONS:
            raise InputError(
                f"position={self.position!r} is not known; use one of: {', '.join(POSITIONS)}", argument="position"
            )
        if self.encoder == SYNTHETIC:
            raise InputError(
                "encoder='synthetic' has no tokens to count; pairs need a pre-trained one, such as minilm",
                argument="encoder",
            )

    def settle(self) -> "PairsCell":
        """A model's states are taken whole; the place of the deciding word is not ours to choose in given pairs."""
        width = None if self.map in (STATES, POOLED) else self.d
        return replace(self, d=width, position=self.position if self.data == GENERATED else "random")

    def measure(self) -> Outcome:
        import torch

        from wordsway.studies.cells.pairs_readout import (
            asked_pairs,
            features_of,
            generated_texts,
            given_texts,
            trained_readout,
        )

        texts = generated_texts(self) if self.data == GENERATED else given_texts(self)
        require(
            8.0 * self._count() * self.n * (self.d or 384), "the features of all pairs", "use fewer or shorter texts"
        )
        features = features_of(self, texts.train + [text for part in texts.tests.values() for text in part])
        if not bool(torch.isfinite(features).all()):
            raise InputError(f"map={self.map!r} gives features that are NaN or infinite for some texts", argument="map")
        train, rest = features[: len(texts.train)], features[len(texts.train) :]
        found = {}
        for words, part in texts.tests.items():
            found[words], rest = rest[: len(part)], rest[len(part) :]
        rows = []
        for sides in _SIDES:
            readout, meaningless = trained_readout(train, sides, (self.seed, "pairs", self.trial, "labels", sides))
            for words, test in found.items():
                told, alike = asked_pairs(readout, meaningless, test, texts.anchors.get(words))
                more = {"words": words, "sides": sides, "rank": readout.rank, "residual": readout.residual}
                size = {"width": features.shape[1], "available": texts.available, "moved_tokens": texts.moved}
                rows.append({**asdict(told), **alike, **more, **size})
        return Outcome(rows)

    def memory(self) -> float:
        d = self.d or (384 if self.encoder == "minilm" else 768)
        return WITH_MODEL + (12.0 if base_name(self.map) in ("rf", "drf") else 3.5) * 8.0 * self._count() * self.n * d

    def seconds(self) -> float:
        d, tokens = self.d or 384, self._count() * self.n
        if self.map in (STATES, POOLED):
            return 1.0 + 5e-4 * tokens
        kernel = 2.5e-10 * tokens * d * self._count() if base_name(self.map) in ("rf", "drf") else 0.0
        mixing = 1.5e-10 * tokens * d * (d + 2 * self.n) if base_name(self.map) in ("raf", "relu-raf") else 0.0
        return 0.5 + 3e-5 * tokens + 1e-8 * tokens * d + kernel + mixing

    def _count(self) -> int:
        """Texts in all."""
        return 2 * self.pairs + (6 if self.data == GENERATED else 2) * self.test_pairs

    def texts(self) -> tuple[str, ...]:
        return () if self.data == GENERATED else super().texts()

    @property
    def label(self) -> str:
        return f"pairs, {self.map} n={self.n} trial {self.trial + 1}"
