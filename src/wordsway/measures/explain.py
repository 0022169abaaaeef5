"""The public function `explain`: what the moves that a search found do, and which real words come near them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap, moved
from wordsway.maps.from_callable import as_map
from wordsway.measures.best_words import substitutions
from wordsway.measures.results import RealWord, Sensitivity, WordExplanation, WordSensitivity
from wordsway.measures.sensitivity import change
from wordsway.models.encoding.encode import find_encoder
from wordsway.models.encoding.vocabulary import letters_of, random_words, replacements_of
from wordsway.models.moving.map import PretrainedMap, rows_of
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.support.cancelling import Cancel, asked_by_modules
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import FEWEST, check_size
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.support.seeds import generator
from wordsway.tokens import Tokens, normalize_rows

_EMBEDDED = 1_000_000  # tokens to embed for the replacements of one word: some seconds
_ENCODED = 100  # whole texts to encode for it, where a word changes every row
_REVEALED = 100  # questions to a map that reveals its weights as it is asked
_ASKED = 500  # questions to a map of several layers, each of which is a run through all of them
_BATCH = 512


@public
@takes_progress("word")
def explain(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    tokens: Tokens,
    result: Sensitivity,
    words: int | Sequence[int] = 10,
    *,
    replacements: int = 5,
    encoder: Any = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: Progress = None,
    cancel: Cancel | None = None,
) -> Sensitivity:
    """`result` with `explained`: for the `words` of the highest rank, or those given by their numbers from 1, the
    attention that the move found draws, the change of every layer, and the real words that change most.

    `phi` and `tokens` are what `result` was measured on, a moment ago: a result that was read from a file no longer has
    its moves. `replacements` is how many real words to keep (0: none are tried). `encoder` is what made `tokens`, where
    its name is not enough. `progress` is called with (words done, words in all), or True to show it; `cancel` (without
    arguments) between batches of words that are tried and, within a model, before each of its modules; what either
    raises ends it.
    """
    phi = as_map(phi)
    if result.words is None or result.text is None:
        raise InputError("only the words of an encoded text are explained: measure one (ws.encode)")
    if not result.deltas:
        raise InputError("this result no longer has the moves that were found; explain it before it is saved")
    if result.text["tokens"] != list(tokens.tokens) or (result.n, result.d) != tokens.X.shape:
        raise InputError("the result is about another text than the one given")
    check_size(replacements, "replacements", least=0)
    known = {word.word: word for word in result.words}
    if isinstance(words, int):
        chosen = list(result.ranked_words[: check_size(words, "words")])
    else:
        for number in words:
            if number not in known:
                raise InputError(f"word {number} was not measured; the words are {min(known)} to {max(known)}")
        chosen = [known[number] for number in words]
    vocabulary = _Vocabulary(phi, tokens, encoder, seed, device, cancel)
    found, tell = [], as_function(progress)
    with phi.cancellable(cancel):
        for word in chosen:
            found.append(_explained(phi, tokens, result, word, vocabulary, replacements))
            if tell:
                tell(len(found), len(chosen))
    before = {each.word: each for each in result.explained or ()}
    merged = before | {each.word: each for each in found}
    return replace(result, explained=tuple(merged[number] for number in sorted(merged)))


def _explained(
    phi: FeatureMap,
    tokens: Tokens,
    result: Sensitivity,
    word: WordSensitivity,
    vocabulary: "_Vocabulary",
    count: int,
) -> WordExplanation:
    index = next(k for k, entry in enumerate(result.per_token) if entry.tokens == word.tokens)
    delta, radius = result.deltas[index], result.per_token[index].radius
    X = tokens.X.double()
    after = moved(X, word.tokens, delta)
    attention = [phi.attention_to(text, word.tokens) for text in (X, after)]
    states = [phi.states_of(text) for text in (X, after)]
    layers = None
    if states[0] is not None and states[1] is not None:
        pairs = zip(states[0], states[1], strict=True)
        layers = tuple(float((new - old).norm() / old.norm()) for old, new in pairs)
    words, tried = vocabulary.best(word.word - 1, radius, count) if count else ((), "not asked for")
    return WordExplanation(
        word=word.word,
        tokens=word.tokens,
        attention_before=None if attention[0] is None else tuple(attention[0].tolist()),
        attention_after=None if attention[1] is None else tuple(attention[1].tolist()),
        layers=layers,
        replacements=words,
        tried=tried,
    )


class _Vocabulary:
    """Real words for the places of one text. Answers are (words, how they were found, or why there are none)."""

    def __init__(
        self,
        phi: FeatureMap,
        tokens: Tokens,
        encoder: Any,
        seed: int,
        device: torch.device | str,
        cancel: Cancel | None = None,
    ) -> None:
        self.phi, self.tokens, self.seed, self.cancel = phi, tokens, seed, cancel
        self.device = find_device(device)
        self.encoder = encoder if encoder is not None else tokens.source.get("encoder")

    def best(self, word: int, radius: float, count: int) -> tuple[tuple[RealWord, ...], str]:
        name = self.tokens.words[word]
        if not any(letter.isalnum() for letter in name):
            return (), "punctuation is not replaced"
        try:
            if isinstance(self.phi, PretrainedMap):
                return self._by_model(self.phi, word, radius, count)
            encoder = self._encoder()
            if encoder is None:
                return (), f"{self.tokens.source.get('encoder')} has no vocabulary"
            pieces = len(self.tokens.pieces[word])
            if pieces > 1:
                return (), f"it is {pieces} pieces, and no single word of the vocabulary is as long"
            by_words = self._by_rows if self.tokens.source.get("layer") == 0 else self._by_texts
            with asked_by_modules(encoder.model, self.cancel):
                return by_words(encoder, word, radius, count)
        except InputError as error:
            return (), str(error)

    def _encoder(self) -> PretrainedEncoder | None:
        if not isinstance(self.encoder, PretrainedEncoder):
            self.encoder = find_encoder(self.encoder, None, self.device)
        return self.encoder if isinstance(self.encoder, PretrainedEncoder) and self.tokens.ids is not None else None

    def _by_model(self, phi: PretrainedMap, word: int, radius: float, count: int) -> tuple[tuple[RealWord, ...], str]:
        """Through the whole model, which is asked about few words, chosen by what it answers."""
        plain = self.tokens
        if phi.at != "embeddings":
            plain = PretrainedMap(phi.model).encode(self.tokens.text, len(self.tokens))
        output = phi.output.name if phi.output.name != "all-layers" else "last"
        found = substitutions(phi.model, plain, word + 1, output=output, top=count, search="guided", budget="quick",
                              seed=self.seed, progress=lambda done, total: None)  # fmt: skip
        (tried,) = found.tried
        made = [
            RealWord(each.after, each.change, self._size(phi, each.text, word, radius), each.prediction, each.flips)
            for each in found.top
        ]
        how = "all" if tried.exhaustive else "a guided search among"
        return tuple(
            made
        ), f"{tried.evaluated:,} words tried, {how} {tried.candidates:,} of the vocabulary, by {output}"

    def _size(self, phi: PretrainedMap, text: str, word: int, radius: float) -> float | None:
        """Return a word's distance from the one it replaces, in radii; None where it has another number of pieces."""
        (new,) = phi.model.encoder.tokenize([text], len(self.tokens))
        if len(new.ids) != len(self.tokens):
            return None
        rows = rows_of(phi.model, [new.ids], phi.at)[0].double() - self.tokens.X.double()
        return float(rows[list(self.tokens.pieces[word])].norm()) / radius

    def _by_rows(
        self, encoder: PretrainedEncoder, word: int, radius: float, count: int
    ) -> tuple[tuple[RealWord, ...], str]:
        """In the embedding layer another word is another row, so all words of the vocabulary are as many moves."""
        places = self.tokens.pieces[word]
        place = min(places)
        found = [k for k in replacements_of(encoder, self.tokens.tokens[place]) if k != self._ids[place]]
        view = self.phi.view(self.tokens.X.double(), places, dtype=torch.float32)
        most = min(len(found), max(_BATCH, _EMBEDDED // (place + 1)))
        if view.costly:
            most = min(most, _ASKED)
        if view.evaluations_left is not None or self.phi.remembers:
            left = _REVEALED if view.evaluations_left is None else view.evaluations_left - FEWEST
            most = max(0, min(most, left, _REVEALED))
        total = len(found)
        if most < total:
            order = torch.randperm(len(found), generator=generator(self.seed, "explain", word))[:most]
            found = sorted(found[k] for k in order.tolist())
        changes, sizes = [], []
        for delta in self._moves(encoder, place, found):
            if self.cancel:
                self.cancel()
            with torch.no_grad():
                changes.append(view.sq_norm(delta.to(view.device, view.dtype)).cpu().double().sqrt() / view.base_norm)
            sizes.append(delta.flatten(1).norm(dim=1) / radius)
        if not changes:
            return (), "the map can take no more questions"
        all_changes, all_sizes = torch.cat(changes), torch.cat(sizes)
        kept: list[RealWord] = []
        for k in all_changes.argsort(descending=True).tolist():
            text = self._spelled(encoder, word, found[k])
            if text is not None:
                kept.append(RealWord(text, float(all_changes[k]), float(all_sizes[k])))
            if len(kept) == count:
                break
        how = "the whole vocabulary" if len(found) == total else f"drawn from the {total:,} of the vocabulary"
        return tuple(kept), f"{len(found):,} words tried, {how}"

    @property
    def _ids(self) -> tuple[int, ...]:
        assert self.tokens.ids is not None
        return self.tokens.ids

    def _moves(self, encoder: PretrainedEncoder, place: int, words: Sequence[int]) -> Iterator[Tensor]:
        """Yield each word's row minus the row of the present word, (b, 1, d). Tokens after a token do not change its
        row in the embedding layer, so only the text up to it is embedded."""
        old = self.tokens.X[place].double()
        (same,) = self._rows(encoder, place, [self._ids[place]])
        if float((same - old).norm()) > 1e-3 * float(old.norm()):
            raise InputError(
                f"the embedding layer of {encoder.name} gives a token another row when the text ends there"
            )
        for start in range(0, len(words), _BATCH):
            yield (self._rows(encoder, place, words[start : start + _BATCH]) - old)[:, None]

    def _rows(self, encoder: PretrainedEncoder, place: int, words: Sequence[int]) -> Float[Tensor, "b d"]:
        before = torch.tensor(self._ids[:place], dtype=torch.long).expand(len(words), -1)
        ids = torch.cat([before, torch.tensor(words, dtype=torch.long)[:, None]], 1).to(encoder.device)
        hidden = encoder.hidden(0, torch.ones_like(ids), input_ids=ids)  # of one length, so nothing is padded
        rows = hidden[:, place, : self.tokens.X.shape[1]].to("cpu", torch.float32)
        return (normalize_rows(rows) if self.tokens.normalized else rows).double()

    def _spelled(self, encoder: PretrainedEncoder, word: int, number: int) -> str | None:
        """The word, if a text with it, as one would type it, is read as that word there."""
        (place,) = self.tokens.pieces[word]
        name = letters_of(encoder.tokenizer.convert_ids_to_tokens([number])[0])
        start, end = self.tokens.spans[word]
        text = self.tokens.text[:start] + name + self.tokens.text[end:]
        ids = encoder.tokenize([text], None if self.tokens.full_length is None else len(self.tokens))[0].ids
        wanted = (*self._ids[:place], number, *self._ids[place + 1 :])
        return name if ids[: len(wanted)] == wanted else None

    def _by_texts(
        self, encoder: PretrainedEncoder, word: int, radius: float, count: int
    ) -> tuple[tuple[RealWord, ...], str]:
        """Behind the embedding layer another word changes every row, so whole texts are encoded."""
        others = random_words(self.tokens, word + 1, _ENCODED, encoder=encoder, seed=self.seed, device=self.device)
        found = []
        for other in others:
            if self.cancel:
                self.cancel()
            gap = float((other.X - self.tokens.X).double().norm()) / radius
            found.append(RealWord(other.words[word], change(self.phi, self.tokens, other), gap))
        distinct = {each.text: each for each in found}
        ordered = sorted(distinct.values(), key=lambda each: -each.change)
        return tuple(ordered[:count]), f"{len(distinct)} words tried, drawn from the vocabulary"
