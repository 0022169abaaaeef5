"""Labelled texts: from files, folders, the Hugging Face hub, an optional package, or the sample that comes along.

A source is read into rows of (text, label); then texts are shuffled by seed, those that are too long are left out, and
as many of each label are kept. What was left out is counted in `dropped`: nothing goes missing silently.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wordsway.datasets.readers import Row, read_file, read_folder, read_hub, read_imdb, read_sample, read_sentences
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public

SAMPLE_LONGEST = 120  # tokens: no text of the sample has more, so it needs no tokenizer to know
_CHUNK = 256  # texts to tokenize at a time
_MEANINGS = {
    **dict.fromkeys(("1", "+1", "1.0", "pos", "positive", "true"), 1),
    **dict.fromkeys(("0", "0.0", "false"), 0),
    **dict.fromkeys(("-1", "-1.0"), -1),
    **dict.fromkeys(("neg", "negative"), -1),
}
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@public
@dataclass(frozen=True)
class LabelledTexts:
    """Texts with labels +1 and -1. In a minimal pair two texts differ in one word: both have the same number in `pair`,
    and `deciding` is the span of that word in each. `dropped` counts what was left out, by reason."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]
    pair: tuple[int | None, ...]
    deciding: tuple[tuple[int, int] | None, ...]
    source: str
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, items: slice) -> "LabelledTexts":
        """Some of the texts, as `data[:100]`."""
        parts = {name: getattr(self, name)[items] for name in ("texts", "labels", "pair", "deciding")}
        return replace(self, **parts)

    def __repr__(self) -> str:
        counts = Counter(self.labels)
        out = "".join(f", {count} {reason}" for reason, count in self.dropped.items())
        return f"LabelledTexts({len(self)} from {self.source}: {counts[1]} positive, {counts[-1]} negative{out})"

    def pairs(self) -> list[tuple[int, int]]:
        """The minimal pairs that are whole, as (index of the negative text, index of the positive one)."""
        sides: dict[int, dict[int, int]] = {}
        for index, (number, label) in enumerate(zip(self.pair, self.labels, strict=True)):
            if number is not None:
                sides.setdefault(number, {})[label] = index
        return [(both[-1], both[1]) for both in sides.values() if len(both) == 2]


class ShortageError(InputError):
    """There are fewer texts than were asked for: `found` of them."""

    def __init__(self, name: str, count: int, found: int, dropped: Counter[str]) -> None:
        self.found = found
        out = ", ".join(f"{number} {reason}" for reason, number in dropped.items())
        super().__init__(f"{name!r} has {found} such texts, fewer than count={count}" + (f" ({out})" if out else ""))


@public
def load_texts(
    source: str | os.PathLike[str],
    *,
    count: int | None = None,
    shorter_than: int | None = 240,
    at_least: int | None = None,
    balance: bool = True,
    seed: int = 0,
    text_column: str = "text",
    label_column: str = "label",
    split: str = "train",
    encoder: str | os.PathLike[str] = "minilm",
    where: Callable[[Row], bool] | None = None,
    pair_column: str | Sequence[str] | None = None,
) -> LabelledTexts:
    """Labelled texts from "sample" (comes along), "imdb" (an installed package, else the hub), "sentences" (short ones,
    from the same), a data set's id on the hub, an `aclImdb` folder, or a CSV, TSV, JSONL or Parquet file.

    Keeps texts of fewer than `shorter_than` tokens of `encoder`, special ones included (None: no limit), and of
    `at_least` so many, as many of each
    label (`balance`), in an order that `seed` decides, and `count` of them if given. Labels become +1 and -1 from 0/1,
    -1/1, true/false, pos/neg or positive/negative. `where` picks rows by what they hold. Texts with the same value in
    `pair_column` (the first that there is, of several) are the two sides of a pair.
    """
    if count is not None:
        check_size(count, "count")
    check_size(seed, "seed", least=0)
    if shorter_than is not None:
        check_size(shorter_than, "shorter_than", least=2)
    if at_least is not None:
        check_size(at_least, "at_least")
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise InputError(f"a source of texts is a name or a path, got {source!r}")
    name = os.fspath(source)
    rows = list(_rows(name, text_column, label_column, split))
    if where is not None:
        rows = [row for row in rows if where(row)]
    if not rows:
        raise InputError(f"{name!r} has no rows; it needs one for each text, in columns text and label")
    if pair_column is not None:
        rows = _joined(rows, [pair_column] if isinstance(pair_column, str) else pair_column, name)
    labels = _labels([row.label for row in rows], name)
    if balance and len(set(labels)) < 2:
        raise InputError(f"{name!r} has texts of one label only, so they cannot be balanced; balance=False keeps them")
    dropped: Counter[str] = Counter()
    if name == "sample" and shorter_than is not None and shorter_than > SAMPLE_LONGEST:
        shorter_than = None
    if balance and count is not None and count % 2:
        raise InputError(
            f"count={count} cannot be balanced, as it is odd; use an even count or balance=False", argument="count"
        )
    lengths = _Lengths(at_least or 0, math.inf if shorter_than is None else shorter_than, encoder)
    kept = _pick(rows, labels, lengths, count, balance, seed, dropped)
    if count is not None and len(kept) < count:
        raise ShortageError(name, count, len(kept), dropped)
    if not kept:
        raise InputError(f"no text of {name!r} is left: {dict(dropped)}")
    return LabelledTexts(
        texts=tuple(rows[k].text for k in kept),
        labels=tuple(labels[k] for k in kept),
        pair=tuple(rows[k].pair for k in kept),
        deciding=tuple(rows[k].deciding for k in kept),
        source=name,
        dropped=dict(dropped),
    )


def _rows(name: str, text_column: str, label_column: str, split: str) -> Iterator[Row]:
    path = Path(name).expanduser()
    if split != "train" and (name == "sample" or path.is_file()):
        raise InputError(f"split={split!r} has no meaning for {name!r}, which has no splits", argument="split")
    if name == "sample":
        return read_sample()
    if name == "imdb":
        return read_imdb(split)
    if name == "sentences":
        return read_sentences(split)
    if path.is_dir():
        return read_folder(path, split)
    if path.is_file():
        return read_file(path, text_column, label_column)
    check_source(name)
    return read_hub(name, text_column, label_column, split)


def check_source(name: str) -> None:
    """Raise an InputError if this can be no source of texts; the hub is not asked."""
    path = Path(name).expanduser()
    if name in ("sample", "imdb", "sentences") or path.is_dir() or path.is_file():
        return
    if path.suffix in (".csv", ".tsv", ".jsonl", ".parquet") or not _HUB_ID.fullmatch(name) or name.startswith("."):
        raise InputError(
            f"there is no file or folder {name!r}, and it is no data set; use 'sample', 'imdb', 'sentences', "
            "a path or a hub id"
        )


@dataclass(frozen=True)
class _Lengths:
    """Which texts have the right number of tokens."""

    least: float
    below: float
    encoder: str | os.PathLike[str]

    def reasons(self, texts: Sequence[str]) -> list[str | None]:
        """For each text why it is left out, or None."""
        if not texts or (self.least <= 1 and self.below == math.inf):
            return [None] * len(texts)
        from wordsway.models.loading.load import count_tokens

        counts = count_tokens(texts, self.encoder)
        return ["too long" if n >= self.below else "too short" if n < self.least else None for n in counts]


def _pick(
    rows: Sequence[Row],
    labels: Sequence[int],
    lengths: _Lengths,
    count: int | None,
    balance: bool,
    seed: int,
    dropped: Counter[str],
) -> list[int]:
    """Indices in a random order. Texts are tokenized until there are enough, no further."""
    import torch

    from wordsway.support.seeds import generator

    order = torch.randperm(len(rows), generator=generator(seed, "load_texts")).tolist()
    by_label: dict[int, list[int]] = {-1: [], 1: []}
    for start in range(0, len(order), _CHUNK):
        part = order[start : start + _CHUNK]
        chunk = [index for index in part if rows[index].text.strip()]
        if len(chunk) < len(part):
            dropped["empty"] += len(part) - len(chunk)
        for index, reason in zip(chunk, lengths.reasons([rows[k].text for k in chunk]), strict=True):
            if reason is None:
                by_label[labels[index]].append(index)
            else:
                dropped[reason] += 1
        enough = [len(part) for part in by_label.values()]
        if count is not None and (min(enough) * 2 >= count if balance else sum(enough) >= count):
            break
    if balance:
        most = min(len(part) for part in by_label.values())
        most = most if count is None else min(most, count // 2)
        surplus = sum(len(part) - most for part in by_label.values())
        if surplus and count is None:
            dropped["for balance"] = surplus
        by_label = {label: part[:most] for label, part in by_label.items()}
    place = {index: k for k, index in enumerate(order)}
    kept = sorted((index for part in by_label.values() for index in part), key=lambda index: place[index])
    return kept[:count]


def _joined(rows: Sequence[Row], columns: Sequence[str], name: str) -> list[Row]:
    """Rows that know their pair, numbered in the order in which pairs are first met."""
    column = next((column for column in columns if column in rows[0].others), None)
    if column is None:
        known = ", ".join(repr(key) for key in rows[0].others) or "none"
        wanted = " or ".join(repr(column) for column in columns)
        raise InputError(f"{name} has no column {wanted} that says which texts are a pair; its other columns: {known}")
    numbers: dict[Any, int] = {}
    found = []
    for row in rows:
        value = row.others.get(column)
        found.append(replace(row, pair=None if value is None else numbers.setdefault(value, len(numbers))))
    return found


def _labels(values: Sequence[Any], name: str) -> list[int]:
    """+1 and -1 from what a source calls its labels."""
    found = [_MEANINGS.get(str(value).strip().lower()) for value in values]
    if None in found or {0, -1} <= set(found):
        shown = sorted({repr(value) for value in values})
        raise InputError(
            f"the labels of {name!r} are {', '.join(shown[:5])}{', ...' if len(shown) > 5 else ''}; they must be 0/1, "
            "-1/1, true/false, pos/neg or positive/negative (another column: label_column=; fewer rows: where=)"
        )
    return [1 if value == 1 else -1 for value in found]
