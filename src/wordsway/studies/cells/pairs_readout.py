"""Texts, features and readouts of the cell of minimal pairs: what torch does for a `PairsCell`."""

import warnings
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.datasets.minimal_pairs import draw_pairs, given_pairs, material, parted
from wordsway.learning.pairwise import Told, compare_features, relative_change, shuffled, swapped, tell_apart
from wordsway.learning.readout import Readout
from wordsway.maps.named import named_map
from wordsway.models.encoding.encode import encode
from wordsway.studies.cells.pairs_cell import MEAN, POOLED, STATES, PairsCell
from wordsway.support.errors import InputError, TextWarning
from wordsway.support.seeds import Key, generator, stream
from wordsway.tokens import Tokens


@dataclass(frozen=True)
class _Texts:
    """Texts of a cell. `train` are negative, positive, negative, ...; of every kind of test pairs, those with anchors
    (the label of the first) are triples (text, flipped, same meaning), else (negative, positive)."""

    train: list[str]
    tests: dict[str, list[str]]
    anchors: dict[str, list[int]]
    available: int | None
    moved: float


def generated_texts(cell: PairsCell) -> _Texts:
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


def given_texts(cell: PairsCell) -> _Texts:
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


def features_of(cell: PairsCell, texts: list[str]) -> Float[Tensor, "b k"]:
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


def trained_readout(train: Float[Tensor, "N k"], sides: str, key: Key) -> tuple[Readout, Float[Tensor, "r _"]]:
    """A readout of both sides of all pairs, or of one side of each (as many of either label), with labels to train on
    that mean nothing."""
    labels = torch.tensor([-1.0, 1.0], dtype=train.dtype).repeat(len(train) // 2)
    draw = generator(*key)
    if sides == "both":
        return Readout.fit(train, labels), swapped(labels, draw)
    chosen = 2 * torch.arange(len(train) // 2) + torch.randperm(len(train) // 2, generator=draw) % 2
    return Readout.fit(train[chosen], labels[chosen]), shuffled(labels[chosen], draw)


def asked_pairs(
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
