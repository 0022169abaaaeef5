"""The cell of minimal pairs: a readout learns from pairs of texts, and is asked about pairs that it has not seen."""

import warnings
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.datasets.minimal_pairs import GENERATED, POSITIONS, draw_pairs, given_pairs, material, parted
from wordsway.learning.pairwise import Told, compare_features, relative_change, shuffled, swapped, tell_apart
from wordsway.learning.readout import Readout
from wordsway.maps.named import base_name, check_name, named_map
from wordsway.models.encoding.encode import encode
from wordsway.studies.cells.base import WITH_MODEL, Outcome
from wordsway.studies.cells.grid_hooks import SYNTHETIC, OfEncoder, OfMap, OfTexts
from wordsway.studies.panels.pairs_panel import PICTURE
from wordsway.support.errors import InputError, TextWarning
from wordsway.support.memory import require
from wordsway.support.seeds import Key, generator, stream
from wordsway.tokens import Tokens, check_size

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
        texts = _generated(self) if self.data == GENERATED else _given(self)
        require(
            8.0 * self._count() * self.n * (self.d or 384), "the features of all pairs", "use fewer or shorter texts"
        )
        features = _features(self, texts.train + [text for part in texts.tests.values() for text in part])
        if not bool(torch.isfinite(features).all()):
            raise InputError(f"map={self.map!r} gives features that are NaN or infinite for some texts", argument="map")
        train, rest = features[: len(texts.train)], features[len(texts.train) :]
        found = {}
        for words, part in texts.tests.items():
            found[words], rest = rest[: len(part)], rest[len(part) :]
        rows = []
        for sides in _SIDES:
            readout, meaningless = _trained(train, sides, (self.seed, "pairs", self.trial, "labels", sides))
            for words, test in found.items():
                told, alike = _asked(readout, meaningless, test, texts.anchors.get(words))
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


@dataclass(frozen=True)
class _Texts:
    """Texts of a cell. `train` are negative, positive, negative, ...; of every kind of test pairs, those with anchors
    (the label of the first) are triples (text, flipped, same meaning), else (negative, positive)."""

    train: list[str]
    tests: dict[str, list[str]]
    anchors: dict[str, list[int]]
    available: int | None
    moved: float


def _generated(cell: PairsCell) -> _Texts:
    key: Key = (cell.seed, "pairs", cell.trial)
    training, seen, new = parted(material(cell.encoder), key)

    def drawn(count: int, parts: Any, name: str) -> Any:
        return draw_pairs(count, cell.n, cell.encoder, cell.position, parts, (*key, name))

    train = [text for pair in drawn(cell.pairs, training, "train") for text in pair.sides()]
    tests = {"seen": drawn(cell.test_pairs, seen, "seen"), "new": drawn(cell.test_pairs, new, "new")}
    return _Texts(
        train,
        {name: [text for pair in part for text in pair.compared()] for name, part in tests.items()},
        {name: [pair.anchor for pair in part] for name, part in tests.items()},
        None,
        1.0,
    )


def _given(cell: PairsCell) -> _Texts:
    known = _pairs_of(cell.data, cell.n, cell.encoder)
    wanted = cell.pairs + cell.test_pairs
    if len(known) < wanted:
        raise InputError(
            f"{cell.data!r} has {len(known)} pairs of at least n={cell.n} tokens that differ in the first {cell.n}, "
            f"but pairs={cell.pairs} and test_pairs={cell.test_pairs} take {wanted}; use fewer, or a smaller n"
        )
    order = torch.randperm(len(known), generator=generator(cell.seed, "pairs", cell.trial, "order")).tolist()[:wanted]
    texts = [text for k in order for text in known[k][:2]]
    moved = sum(known[k][2] for k in order) / wanted
    return _Texts(texts[: 2 * cell.pairs], {"given": texts[2 * cell.pairs :]}, {}, len(known), moved)


@lru_cache(maxsize=4)
def _pairs_of(data: str, n: int, encoder: str) -> list[tuple[str, str, int]]:
    """Kept, as all maps and trials ask for them."""
    return given_pairs(data, n, encoder)


def _features(cell: PairsCell, texts: list[str]) -> Float[Tensor, "b k"]:
    if cell.map in (STATES, POOLED):
        rows = _encoded(cell, texts, last=True)
        if cell.map == POOLED:
            return torch.stack([tokens.X.double().mean(0) for tokens in rows])
        return torch.stack([tokens.X.double().flatten() for tokens in rows])
    rows = _encoded(cell, texts, last=False)
    size = rows[0].X.shape[1]
    d = cell.d or size
    if d > size:
        raise InputError(f"d={d} is more than the {size} coordinates that {cell.encoder} gives", argument="d")
    X = torch.empty(len(rows), cell.n, d, dtype=torch.float64)
    for place, tokens in zip(X, rows, strict=True):
        place.copy_(tokens.first_dims(d).X)
    if cell.map == MEAN:
        return X.mean(1)
    del rows
    weights = stream(cell.seed, "pairs", d, cell.n, cell.trial, "weights")
    # All at once: a map that remembers would compare later texts with all before them.
    return named_map(cell.map, cell.n, d, weights, depth=cell.depth).features(X)


def _encoded(cell: PairsCell, texts: list[str], last: bool) -> list[Tokens]:
    """Exactly n tokens of each text: the embedding layer's rows of norm sqrt(d), or the last hidden states as they
    are."""
    from wordsway.models.loading.load import load_encoder
    from wordsway.models.loading.locate import locate

    layer = load_encoder(locate(cell.encoder), "cpu").layers if last else 0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "kept only|cropped", TextWarning)  # texts are made to be cropped at n
        found = encode(texts, cell.encoder, layer=layer, normalize=not last, max_tokens=cell.n, cache=False)
    short = next((tokens for tokens in found if len(tokens) != cell.n), None)
    if short is not None:
        raise InputError(
            f"encoder={cell.encoder!r} makes {len(short)} tokens of a text that should have n={cell.n}",
            argument="encoder",
        )
    return found


def _trained(train: Float[Tensor, "N k"], sides: str, key: Key) -> tuple[Readout, Float[Tensor, "r _"]]:
    """A readout of both sides of all pairs, or of one side of each (as many of either label), with labels to train on
    that mean nothing."""
    labels = torch.tensor([-1.0, 1.0], dtype=train.dtype).repeat(len(train) // 2)
    draw = generator(*key)
    if sides == "both":
        return Readout.fit(train, labels), swapped(labels, draw)
    chosen = 2 * torch.arange(len(train) // 2) + torch.randperm(len(train) // 2, generator=draw) % 2
    return Readout.fit(train[chosen], labels[chosen]), shuffled(labels[chosen], draw)


def _asked(
    readout: Readout, meaningless: Tensor, test: Float[Tensor, "t k"], anchors: list[int] | None
) -> tuple[Told, dict[str, float | None]]:
    if anchors is None:
        negative, positive = test[0::2], test[1::2]
        alike: dict[str, float | None] = dict.fromkeys(("auc", "closer", "change_same"))
        alike["change"] = relative_change(negative, positive)
        return tell_apart(readout, negative, positive, meaningless), alike
    text, flipped, same = test[0::3], test[1::3], test[2::3]
    first = (torch.tensor(anchors) > 0)[:, None]
    negative, positive = torch.where(first, flipped, text), torch.where(first, text, flipped)
    return tell_apart(readout, negative, positive, meaningless), asdict(compare_features(text, flipped, same))
