"""Minimal pairs: two texts that differ in one word, which decides the label, among sentences that take no side.

A pair is a deciding sentence (a frame with a subject and a judgement) with neutral sentences around it. To train and to
test, subjects and judgements are each parted in two: pairs to test on have other subjects, so that no context was seen,
and judgements that were seen in training or not.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import torch

from wordsway.datasets.labelled_texts import LabelledTexts, load_texts
from wordsway.datasets.text_sources import GENERATED, POSITIONS
from wordsway.support.errors import InputError
from wordsway.support.memory import require
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public
from wordsway.support.seeds import Key, generator

_PAIR_COLUMNS = ("pair", "batch_id")  # what files call the number that joins two texts
_LEAST_WORDS = 12  # judgements of each kind that an encoder must have as one token
_TRIES = 8  # sentences to try before one gives up filling a gap
_SLOT = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class MinimalPair:
    """A text with a place for the word that decides. `same` means the same as the positive or negative word that
    `anchor` names by its label, and may stand in its place."""

    before: str
    after: str
    words: Mapping[int, str]  # by label
    anchor: int
    same: str

    def text(self, word: str) -> str:
        return f"{self.before}{word}{self.after}"

    def sides(self) -> tuple[str, str]:
        """The negative text and the positive one."""
        return self.text(self.words[-1]), self.text(self.words[1])

    def compared(self) -> tuple[str, str, str]:
        """A text, the one with the opposite meaning, the one with the same."""
        return self.text(self.words[self.anchor]), self.text(self.words[-self.anchor]), self.text(self.same)


@dataclass(frozen=True)
class Material:
    """Parts of pairs: judgements by label, and subjects."""

    words: Mapping[int, Sequence[str]]
    subjects: Sequence[str]


@public
def minimal_pairs(
    count: int, n: int = 64, *, position: str = "random", encoder: str = "minilm", seed: int = 0
) -> LabelledTexts:
    """`count` minimal pairs (so twice as many texts), made of templates. Their texts have at least n tokens of
    `encoder`, special ones included, and the deciding word, one token, is among the first n: crop them to n, as
    `encode(texts, max_tokens=n)` does. The deciding sentence is at the "start", or anywhere ("random")."""
    check_size(count, "count")
    check_size(n, "n")
    check_size(seed, "seed", least=0)
    require(64.0 * count * n, f"{count:,} pairs of {n:,} tokens", "make fewer, or shorter ones")
    drawn = draw_pairs(count, n, encoder, position, material(encoder), (seed, "minimal_pairs"))
    texts, labels, spans = [], [], []
    for pair in drawn:
        for label, text in zip((-1, 1), pair.sides(), strict=True):
            texts.append(text)
            labels.append(label)
            spans.append((len(pair.before), len(pair.before) + len(pair.words[label])))
    numbers = tuple(k // 2 for k in range(2 * count))
    return LabelledTexts(tuple(texts), tuple(labels), numbers, tuple(spans), GENERATED)


def material(encoder: str) -> Material:
    """All judgements that are one token of the encoder, and all subjects."""
    content, lengths = _content(), _lengths(encoder)
    words = {
        label: [word for word in content[name] if lengths[word] == 1] for label, name in ((-1, "bad"), (1, "good"))
    }
    few = min(len(part) for part in words.values())
    if few < _LEAST_WORDS:
        raise InputError(
            f"encoder={encoder!r} has only {few} of the judgements of one kind as a single token, and minimal pairs "
            f"take at least {_LEAST_WORDS}; use another encoder",
            argument="encoder",
        )
    return Material(words, content["subjects"])


def parted(whole: Material, key: Key) -> tuple[Material, Material, Material]:
    """Two thirds of words and subjects to train on; the other subjects to test on, with the words that were seen and
    with those that were not."""
    words = {label: _cut(part, (*key, "words", label)) for label, part in whole.words.items()}
    subjects = _cut(whole.subjects, (*key, "subjects"))
    seen, new = ({label: words[label][k] for label in words} for k in (0, 1))
    return Material(seen, subjects[0]), Material(seen, subjects[1]), Material(new, subjects[1])


def draw_pairs(count: int, n: int, encoder: str, position: str, parts: Material, key: Key) -> list[MinimalPair]:
    """Pairs in the order of `key`: a larger count begins with those of a smaller one."""
    if position not in POSITIONS:
        raise InputError(f"position={position!r} is not known; use one of: {', '.join(POSITIONS)}", argument="position")
    check_size(n, "n")
    least = shortest(encoder)
    if n < least:
        raise InputError(
            f"n={n} is too short for every deciding sentence; {encoder} needs at least n={least} for them", argument="n"
        )
    return [_draw(n, encoder, position, parts, generator(*key, n, k)) for k in range(count)]


def shortest(encoder: str) -> int:
    """The smallest n for which every deciding sentence fits."""
    content, lengths = _content(), _lengths(encoder)
    frames = [
        frame.format(subject=subject, word="so") for frame in content["frames"] for subject in content["subjects"]
    ]
    return lengths[""] + max(_size(sentence, lengths) for sentence in frames)


def given_pairs(data: str, n: int, encoder: str) -> list[tuple[str, str, int]]:
    """(negative text, positive text, places where they differ) of a source that has pairs, where both have at least n
    tokens and the first n of them are not all the same."""
    from wordsway.models.loading.load import load_encoder
    from wordsway.models.loading.locate import locate

    column = None if data == "sample" else _PAIR_COLUMNS
    found = load_texts(data, shorter_than=None, at_least=n, balance=False, encoder=encoder, pair_column=column)
    pairs = found.pairs()
    pieces = load_encoder(locate(encoder), "cpu").tokenize([found.texts[k] for pair in pairs for k in pair], n)
    kept = []
    for k, (a, b) in enumerate(pairs):
        moved = sum(x != y for x, y in zip(pieces[2 * k].ids, pieces[2 * k + 1].ids, strict=True))
        if moved:
            kept.append((found.texts[a], found.texts[b], moved))
    return kept


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    return tomllib.loads((files("wordsway.datasets") / "bundled" / "minimal_pairs.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=4)
def _lengths(encoder: str) -> dict[str, int]:
    """Tokens of everything between two spaces; under "" the special tokens of a text."""
    from wordsway.models.loading.load import count_tokens

    content = _content()
    listed = [*content["fillers"], *content["frames"], *content["subjects"], *content["good"], *content["bad"], "so."]
    listed += [part for values in content["slots"].values() for part in values]
    chunks = dict.fromkeys(chunk for text in listed for chunk in text.split() if "{" not in chunk)
    # A slot's value may be followed by a full stop or a comma.
    ends = {values[-1] for part in (*content["slots"].values(), content["subjects"]) for values in map(str.split, part)}
    chunks |= dict.fromkeys(end + mark for end in ends for mark in ".,")
    chunks |= dict.fromkeys(word + "." for word in (*content["good"], *content["bad"]))
    one, two, *counts = count_tokens(["so", "so so", *(f"so {chunk}" for chunk in chunks)], encoder)
    return {"": 2 * one - two, "so": two - one, **{chunk: c - one for chunk, c in zip(chunks, counts, strict=True)}}


def _size(sentence: str, lengths: Mapping[str, int]) -> int:
    return sum(lengths[chunk] for chunk in sentence.split())


def _cut(items: Sequence[str], key: Key) -> tuple[list[str], list[str]]:
    order: list[int] = torch.randperm(len(items), generator=generator(*key)).tolist()
    most = 2 * len(items) // 3
    mixed = [items[k] for k in order]
    return mixed[:most], mixed[most:]


def _pick(items: Sequence[str], draw: torch.Generator) -> str:
    return items[int(torch.randint(len(items), (1,), generator=draw))]


def _filler(draw: torch.Generator) -> str:
    content = _content()
    return _SLOT.sub(lambda slot: _pick(content["slots"][slot[1]], draw), _pick(content["fillers"], draw))


def _draw(n: int, encoder: str, position: str, parts: Material, draw: torch.Generator) -> MinimalPair:
    lengths = _lengths(encoder)
    room = n - lengths[""]
    frame, subject = _pick(_content()["frames"], draw), _pick(parts.subjects, draw)
    words = {label: _pick(parts.words[label], draw) for label in (-1, 1)}
    anchor = 1 if int(torch.randint(2, (1,), generator=draw)) else -1
    same = _pick([word for word in parts.words[anchor] if word != words[anchor]], draw)
    head, tail = frame.format(subject=subject, word="\n").split("\n")
    own = _size(f"{head}so{tail}", lengths)
    first: list[str] = []
    used, tries = 0, 0
    start = 0 if position == "start" else int(torch.randint(room - own + 1, (1,), generator=draw))
    while tries < _TRIES:
        sentence = _filler(draw)
        size = _size(sentence, lengths)
        if used + size <= start:
            first.append(sentence)
            used += size
        else:
            tries += 1
    used += own
    rest: list[str] = []
    while used < room:
        rest.append(_filler(draw))
        used += _size(rest[-1], lengths)
    return MinimalPair(" ".join([*first, head]), " ".join([tail, *rest]), words, anchor, same)
