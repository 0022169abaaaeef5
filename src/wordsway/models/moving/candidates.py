"""Which real words could stand in the place of one: the vocabulary's whole words, its pieces, or a user's list."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.encoding.vocabulary import letters_of, replacements_of
from wordsway.models.running.model import Transformer
from wordsway.support.errors import InputError
from wordsway.tokens import Tokens


@dataclass(frozen=True)
class Candidates:
    """Words for one place, each with the ids of the whole new text. `points` are their word embeddings (the mean over
    a word's pieces), `similarity` the cosines of these with the old word's. `skipped` says which were left out, and
    why."""

    words: tuple[str, ...]
    ids: tuple[tuple[int, ...], ...]
    points: Float[Tensor, "v d"]
    similarity: Float[Tensor, " v"]
    skipped: dict[str, str]

    def __len__(self) -> int:
        return len(self.words)


def find_candidates(
    model: Transformer,
    tokens: Tokens,
    word: int,
    *,
    allowed: Sequence[str] | None = None,
    pieces: bool = False,
    similar: float | None = None,
    same_length: bool = False,
) -> Candidates:
    """Find the words that may replace a word; see `substitutions` for the options."""
    assert tokens.ids is not None
    places = tokens.pieces[word]
    start, end = places[0], places[-1] + 1
    if places != tuple(range(start, end)):
        raise InputError(f"the pieces of the word {tokens.words[word]!r} do not stand together, so it is not replaced")
    skipped: dict[str, str] = {}
    if allowed is None:
        names = model.encoder.tokenizer.convert_ids_to_tokens
        found = replacements_of(model.encoder, tokens.tokens[start], pieces)
        found = [number for number in found if (number,) != tokens.ids[start:end]]
        parts = [(number,) for number in found]
        words = list(names(found)) if pieces else [letters_of(piece) for piece in names(found)]
    else:
        words, parts = _tokenized(model, tokens, word, allowed, skipped)
    if same_length:
        for name in (name for name, part in zip(words, parts, strict=True) if len(part) != end - start):
            skipped[name] = f"not {end - start} token{'s' * (end - start > 1)} long, as the old word"
        words, parts = _kept(words, parts, [len(part) == end - start for part in parts])
    points, old = _points(model, parts), _points(model, [tokens.ids[start:end]])
    closeness = torch.nn.functional.cosine_similarity(points, old) if parts else torch.empty(0)
    if similar is not None:
        near = (closeness >= similar).tolist()
        far = [name for name, keep in zip(words, near, strict=True) if not keep]
        if allowed is not None:
            skipped |= dict.fromkeys(far, f"less similar than {similar:g}")
        words, parts = _kept(words, parts, near)
        points, closeness = points[near], closeness[near]
    ids = [tokens.ids[:start] + part + tokens.ids[end:] for part in parts]
    return Candidates(tuple(words), tuple(ids), points, closeness, skipped)


def _kept(words: list[str], parts: list[tuple[int, ...]], keep: list[bool]) -> tuple[list[str], list[tuple[int, ...]]]:
    pairs = [pair for pair, kept in zip(zip(words, parts, strict=True), keep, strict=True) if kept]
    return [word for word, _ in pairs], [part for _, part in pairs]


def _tokenized(
    model: Transformer, tokens: Tokens, word: int, allowed: Sequence[str], skipped: dict[str, str]
) -> tuple[list[str], list[tuple[int, ...]]]:
    """The user's words, by the ids that they get in the place of the old one."""
    assert tokens.ids is not None
    start, end = tokens.pieces[word][0], tokens.pieces[word][-1] + 1
    low, high = tokens.spans[word]
    text = tokens.text[: max(stop for _, stop in tokens.offsets)]  # a text that was cropped ends here
    (old,) = model.encoder.tokenize([text])
    names = [name for name in dict.fromkeys(allowed) if name.strip()]
    texts = [text[:low] + name + text[high:] for name in names]
    words, parts = [], []
    for name, new in zip(names, model.encoder.tokenize(texts) if texts else [], strict=True):
        tail = len(old.ids) - end
        part = new.ids[start : len(new.ids) - tail]
        around = new.ids[:start] + new.ids[len(new.ids) - tail :]
        if new.unknown:
            skipped[name] = "unknown to the tokenizer"
        elif around != old.ids[:start] + old.ids[end:] or not part:
            skipped[name] = "changes how the words around it are split"
        elif part == tokens.ids[start:end]:
            skipped[name] = "the word itself"
        else:
            words.append(name)
            parts.append(part)
    return words, parts


def _points(model: Transformer, parts: Sequence[tuple[int, ...]]) -> Float[Tensor, "v d"]:
    table = model.base.get_input_embeddings().weight.detach()
    if not parts:
        return torch.empty(0, table.shape[1])
    if all(len(part) == 1 for part in parts):
        return table[torch.tensor([part[0] for part in parts], device=table.device)].float().cpu()
    return torch.stack([table[list(part)].mean(0) for part in parts]).float().cpu()
