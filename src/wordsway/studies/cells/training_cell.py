"""The cell of a training: word sensitivity and accuracy of a small model on its way, left alone or pushed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wordsway.studies.cells.base import GB, PROCESS, Outcome
from wordsway.studies.cells.grid_hooks import OfTexts
from wordsway.studies.panels.training_panel import PICTURE
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_size

if TYPE_CHECKING:
    from wordsway.studies.cells.small_models import Split

REGIMES = ("plain", "penalty", "bonus", "noise")
_SMOOTH = 20  # steps that a shown loss is the mean of


@dataclass(frozen=True)
class TrainingCell(OfTexts):
    """A classifier of BERT's architecture, trained from nothing on `train_pairs` minimal pairs and `train_reviews`
    other texts of `data`. `regime` says what `strength` is: the weight of a penalty or a bonus on word sensitivity in
    the loss, or the relative size of noise on the embeddings; "plain" has none.

    One row before the first step, then every `eval_every` steps: accuracy on texts that are not trained on, and the
    word sensitivity of `output` on the shortest `probes` of these, by the same search whatever the regime. All regimes
    of a trial begin with the same weights and texts.
    """

    numbers = (
        *("step", "train_loss", "review_accuracy", "side_accuracy", "pair_accuracy"),
        *("word_sensitivity", "random_change"),
    )
    names = ("phase",)
    within = ("step",)
    first = "word_sensitivity"
    picture = PICTURE

    regime: str = "plain"
    strength: float = 0.0
    steps: int = 200
    learning_rate: float = 2e-3
    d: int = 48
    layers: int = 2
    heads: int = 4
    data: str = "sample"
    train_pairs: int = 32
    train_reviews: int = 160
    eval_every: int = 50
    probes: int = 6
    output: str = "pooled:first"
    radius: float = 0.5

    def __post_init__(self) -> None:
        if self.regime not in REGIMES:
            raise InputError(f"regime={self.regime!r} is not known; use: {', '.join(REGIMES)}", argument="regime")
        if self.regime != "plain" and not 0 < self.strength < math.inf:
            raise InputError(
                f"strength={self.strength!r} must be a positive number for the regime {self.regime!r}",
                argument="strength",
            )
        for name in ("learning_rate", "radius"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} must be a positive number, got {getattr(self, name)!r}", argument=name)
        for name in ("steps", "d", "layers", "heads", "eval_every", "probes"):
            check_size(getattr(self, name), name)
        for name in ("train_pairs", "train_reviews", "trial", "seed"):
            check_size(getattr(self, name), name, least=0)
        if self.train_pairs + self.train_reviews == 0:
            raise InputError(
                "train_pairs and train_reviews are both 0, so there is nothing to train on", argument="train_pairs"
            )
        if self.d % self.heads:
            raise InputError(f"heads={self.heads} does not divide d={self.d}", argument="heads")
        if self.steps % self.eval_every:
            raise InputError(
                f"eval_every={self.eval_every} does not divide steps={self.steps}: use one that does",
                argument="eval_every",
            )
        if self.output != "pooled:first":  # the usual one is known to train; to ask loads torch
            from wordsway.learning.penalty import trained_output

            trained_output(self.output)

    def settle(self) -> "TrainingCell":
        return replace(self, strength=0.0) if self.regime == "plain" else self

    def measure(self) -> Outcome:
        import torch

        from wordsway.studies.cells.small_models import Course, Split, corpus, new_classifier
        from wordsway.support.seeds import Key, stream

        key: Key = (self.seed, "training", self.trial)
        data, tokenizer, lengths = corpus(self.data)
        split = Split.draw(data, self.train_pairs, self.train_reviews, key)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream(*key, "weights"))  # and dropout
            model = new_classifier(len(tokenizer), max(lengths), self.d, self.layers, self.heads)
            options: dict[str, Any] = {"output": self.output, "radius": self.radius}
            course = Course(
                model, self.data, split.train, self.regime, self.strength, self.learning_rate, **options, key=key
            )
            rows, losses = [self._row(model, split, 0, [])], []
            for step, loss in course.steps(self.steps):
                losses.append(loss)
                if step % self.eval_every == 0:
                    rows.append(self._row(model, split, step, losses))
        return Outcome(rows)

    def _row(self, model: Any, split: "Split", step: int, losses: Sequence[float]) -> dict[str, Any]:
        from wordsway.learning.probe import probe_sensitivity
        from wordsway.studies.cells.small_models import corpus, scores
        from wordsway.support.seeds import stream

        data, tokenizer, lengths = corpus(self.data)
        sides = [side for pair in split.held_out_pairs for side in pair]
        found = scores(model, data, tokenizer, [*sides, *split.held_out])
        right = {k: float(score * data.labels[k] > 0) for k, score in found.items()}
        in_order = [float(found[good] > found[bad]) for bad, good in split.held_out_pairs]
        shortest = sorted(split.held_out_pairs, key=lambda pair: lengths[pair[0]])[: self.probes]
        probed = [data.texts[pair[k % 2]] for k, pair in enumerate(shortest)]
        report = probe_sensitivity(
            model, tokenizer, probed, output=self.output, radius=self.radius, seed=stream(self.seed, "probe")
        )
        last = losses[-_SMOOTH:]
        return {
            "step": step,
            "phase": "start" if step == 0 else "end" if step == self.steps else "between",
            "train_loss": math.fsum(last) / len(last) if last else None,
            "review_accuracy": _mean([right[k] for k in split.held_out]) if split.held_out else None,
            "side_accuracy": _mean([right[k] for k in sides]),
            "pair_accuracy": _mean(in_order),
            "word_sensitivity": report.word_sensitivity,
            "random_change": report.random,
        }

    def memory(self) -> float:
        return PROCESS + 0.5 * GB

    def seconds(self) -> float:
        runs = {"penalty": 3.0, "bonus": 3.0}.get(self.regime, 1.0)
        return (
            1.0
            + 2.5e-4 * runs * self.steps * self.d * self.layers
            + 0.2 * self.probes * (1 + self.steps / self.eval_every)
        )

    @property
    def label(self) -> str:
        pushed = "" if self.regime == "plain" else f" {self.strength:g}"
        return f"training, {self.regime}{pushed}, trial {self.trial + 1}"


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
