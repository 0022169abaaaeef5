"""A small classifier to be trained here from nothing, on reviews and minimal pairs, with a tokenizer of its own."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from wordsway.datasets.labelled_texts import LabelledTexts, load_texts
from wordsway.learning.penalty import embedding_noise, sensitivity_penalty
from wordsway.models.loading.locate import require_transformers
from wordsway.support.errors import InputError
from wordsway.support.seeds import Key, generator

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_BATCH = 16
_PENALIZED = 4  # texts of a batch in which a word is moved: as many again would take as long again
_DECAY, _STEEPEST = 0.01, 1.0  # of the weights, and the norm that a gradient is cut down to


@dataclass(frozen=True)
class Split:
    """Indices of texts. Half of the pairs and a quarter of the other texts are never trained on; a pair is (negative,
    positive)."""

    train: tuple[int, ...]
    held_out: tuple[int, ...]
    held_out_pairs: tuple[tuple[int, int], ...]

    @staticmethod
    def draw(data: LabelledTexts, pairs: int, others: int, key: Key) -> "Split":
        all_pairs, alone = data.pairs(), [k for k, number in enumerate(data.pair) if number is None]
        if len(all_pairs) < 4:
            raise InputError(
                f"data={data.source!r} has {len(all_pairs)} minimal pairs, but at least 4 are needed", argument="data"
            )
        order = torch.randperm(len(all_pairs), generator=generator(*key, "pairs")).tolist()
        half, rest = len(all_pairs) // 2, len(alone) - len(alone) // 4
        for name, asked, most in (("train_pairs", pairs, half), ("train_reviews", others, rest)):
            if asked > most:
                raise InputError(
                    f"{name}={asked} is more than the {most} that {data.source!r} has for training", argument=name
                )
        chosen = [all_pairs[k] for k in order]
        shuffled = [alone[k] for k in torch.randperm(len(alone), generator=generator(*key, "others")).tolist()]
        train = [side for pair in chosen[:pairs] for side in pair] + shuffled[:others]
        return Split(tuple(train), tuple(shuffled[rest:]), tuple(chosen[half:]))


@lru_cache(maxsize=2)
def corpus(name: str) -> tuple[LabelledTexts, Any, tuple[int, ...]]:
    """Texts with a word-level tokenizer made of their own words, and how many tokens each has."""
    data = load_texts(name, shorter_than=None, balance=False)
    tokenizer = word_tokenizer(data.texts)
    return data, tokenizer, tuple(len(ids) for ids in tokenizer(list(data.texts))["input_ids"])


def word_tokenizer(texts: Sequence[str]) -> Any:
    """Lower-case words and punctuation marks, each one token; texts stand between [CLS] and [SEP]."""
    require_transformers()
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    lower, split = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    words = sorted({word for text in texts for word, _ in split.pre_tokenize_str(lower.normalize_str(text))})
    known = {word: k for k, word in enumerate([*_SPECIAL, *words])}
    tokenizer: Any = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = lower, split
    ends = [(name, known[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def new_classifier(vocabulary: int, longest: int, d: int, layers: int, heads: int) -> Any:
    """BERT's architecture with random weights, from torch's own random state."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=d,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=2 * d,
        max_position_embeddings=max(64, longest),
    )  # two classes, unless told
    return BertForSequenceClassification(config)


@dataclass(frozen=True)
class Course:
    """A training: which texts, and what is added to the loss or to the embeddings."""

    model: Any
    data: str
    texts: tuple[int, ...]
    regime: str
    strength: float
    learning_rate: float
    output: str
    radius: float
    key: Key

    def steps(self, count: int) -> Iterator[tuple[int, float]]:
        """(step, loss of its batch) after each step; the loss is cross-entropy alone."""
        data, tokenizer, _ = corpus(self.data)
        classes = torch.tensor([int(label > 0) for label in data.labels])
        optimizer = torch.optim.AdamW(self.model.parameters(), self.learning_rate, weight_decay=_DECAY)
        batches = self._batches()
        for step in range(1, count + 1):
            chosen = next(batches)
            inputs = prepared(tokenizer, [data.texts[k] for k in chosen])
            seed = generator(*self.key, "step", step).initial_seed()
            self.model.train()
            noisy = embedding_noise(self.model, self.strength, seed=seed) if self.regime == "noise" else nullcontext()
            with noisy:
                loss = self.model(**inputs, labels=classes[chosen]).loss
            total = loss
            if self.regime in ("penalty", "bonus"):
                some = {name: part[:: max(1, len(chosen) // _PENALIZED)] for name, part in inputs.items()}
                how: dict[str, Any] = {"output": self.output, "radius": self.radius, "steps": 1, "seed": seed}
                term = sensitivity_penalty(self.model, some, tokenizer, **how)
                total = loss + (self.strength if self.regime == "penalty" else -self.strength) * term
            total.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), _STEEPEST)
            optimizer.step()
            optimizer.zero_grad()
            yield step, float(loss.detach())

    def _batches(self) -> Iterator[list[int]]:
        """Texts in random order, in batches of about one length, so that there is little padding."""
        lengths, draw = corpus(self.data)[2], generator(*self.key, "batches")
        while True:
            order = [self.texts[k] for k in torch.randperm(len(self.texts), generator=draw).tolist()]
            batches = []
            for start in range(0, len(order), 4 * _BATCH):
                part = sorted(order[start : start + 4 * _BATCH], key=lambda k: lengths[k])
                batches += [part[k : k + _BATCH] for k in range(0, len(part), _BATCH)]
            for k in torch.randperm(len(batches), generator=draw).tolist():
                yield batches[k]


def prepared(tokenizer: Any, texts: list[str]) -> dict[str, Any]:
    return dict(tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False))


def scores(model: Any, data: LabelledTexts, tokenizer: Any, texts: Sequence[int], size: int = 40) -> dict[int, float]:
    """Compute how much more a classifier believes in +1 than in -1, for each of some texts, without dropout."""
    model.eval()
    found: dict[int, float] = {}
    ordered = sorted(texts, key=lambda k: len(data.texts[k]))
    for start in range(0, len(ordered), size):
        part = ordered[start : start + size]
        with torch.no_grad():
            logits = model(**prepared(tokenizer, [data.texts[k] for k in part])).logits
        found |= dict(zip(part, (logits[:, 1] - logits[:, 0]).tolist(), strict=True))
    return found
