"""Outputs of a model for a text with one word replaced, compared with those for the text as it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.moving.batches import Batches
from wordsway.models.moving.candidates import Candidates
from wordsway.models.moving.outputs.base import Output, find_prefix
from wordsway.models.running.model import Prefix, Transformer
from wordsway.support.errors import InputError
from wordsway.tokens import Tokens


@dataclass(frozen=True)
class Replacement:
    """The effect of one real word in the place of another, whose number from 1 is `word`. `change` is relative, as
    everywhere; `similarity` is the cosine of the two word embeddings. A classifier has a `prediction` with its
    probability, and `flips` where that is another than before; a causal model has the next token that it then finds
    most likely (`prediction`) and `kl`, the Kullback-Leibler divergence of its distribution from what it was, in
    nats."""

    word: int
    before: str
    after: str
    text: str
    change: float
    similarity: float
    prediction: str | None = None
    probability: float | None = None
    flips: bool | None = None
    kl: float | None = None


class Meter:
    """Runs texts with other words in them, and says how far they are from the text as it is."""

    def __init__(self, model: Transformer, output: Output, tokens: Tokens) -> None:
        self.model, self.output, self.tokens = model, output, tokens
        assert tokens.ids is not None
        self.rows = model.encoder.states([tokens.ids], 0)[0]
        with torch.no_grad():
            self.base = output.features(model, self.rows[None])[0].cpu().double()
        self.size = float(self.base.norm())
        if not self.size > 0:
            raise InputError("the model's output for the text is zero, so a change relative to it is not defined")
        self.before = self.base.log_softmax(0) if output.is_logits else None
        self.prediction = self.probability = None
        if self.before is not None:
            self.prediction, self.probability = self._predicted(self.before)
        self._place, self._prefix = -1, None

    def outcomes(self, place: int, found: Candidates, indices: Sequence[int]) -> list[Replacement]:
        """Each candidate's outcome; texts of one length are run together."""
        made: dict[int, Replacement] = {}
        by_length: dict[int, list[int]] = {}
        for index in indices:
            by_length.setdefault(len(found.ids[index]), []).append(index)
        prefix = self._start(place)
        before = 0 if prefix is None else prefix.length
        for length, group in by_length.items():

            def run(part: slice, group: list[int] = group) -> Float[Tensor, "b features"]:
                rows = torch.stack(self.model.encoder.states([found.ids[k] for k in group[part]], 0))
                with torch.no_grad():
                    return self.output.features(self.model, rows[:, before:], "embeddings", prefix).cpu().double()

            batches = Batches(self.model, length - before, gradient=False)
            features = (row for part in batches.run(run, len(group)) for row in part)
            for index, row in zip(group, features, strict=True):
                made[index] = self._outcome(place, found, index, row)
        return [made[index] for index in indices]

    def spelled(self, ordered: Sequence[Replacement], found: Candidates, pieces: bool, top: int) -> list[Replacement]:
        """The first few whose new text, as a user would type it, really gives the ids that were measured."""
        if pieces:
            return list(ordered[:top])
        ids = dict(zip(found.words, found.ids, strict=True))
        kept: list[Replacement] = []
        for outcome in ordered:
            wanted = ids[outcome.after]
            most = None if self.tokens.full_length is None else len(wanted)
            if self.model.encoder.tokenize([outcome.text], most)[0].ids == wanted:
                kept.append(outcome)
            if len(kept) == top:
                break
        return kept

    def _start(self, place: int) -> Prefix | None:
        """Return a causal model's saved run of the text before the word, if it can be reused."""
        if place != self._place:
            self._place, first = place, self.tokens.pieces[place][0]
            self._prefix = find_prefix(self.model, self.output, self.rows, first, "embeddings", self.base)
        return self._prefix

    def _outcome(self, place: int, found: Candidates, index: int, row: Tensor) -> Replacement:
        low, high = self.tokens.spans[place]
        after = found.words[index]
        prediction = probability = flips = kl = None
        if self.before is not None:
            logs = row.log_softmax(0)
            prediction, probability = self._predicted(logs)
            if self.model.classifies:
                flips = prediction != self.prediction
            else:
                kl = float((self.before.exp() * (self.before - logs)).sum())
        return Replacement(
            word=place + 1,
            before=self.tokens.words[place],
            after=after,
            text=self.tokens.text[:low] + after + self.tokens.text[high:],
            change=float((row - self.base).norm()) / self.size,
            similarity=float(found.similarity[index]),
            prediction=prediction,
            probability=probability,
            flips=flips,
            kl=kl,
        )

    def _predicted(self, logs: Tensor) -> tuple[str, float]:
        index = int(logs.argmax())
        labels = self.model.labels
        name = self.model.encoder.tokenizer.decode([index]) if labels is None else labels[index]
        return name, float(logs[index].exp())
