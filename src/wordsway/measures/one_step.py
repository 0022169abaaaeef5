"""The change that one gradient step can make, for all words of a text at once: for many texts, where a search of each
word would take hours.

For a classifier or a causal model, one run with a gradient gives the direction in which each word's embedding lowers
the probability of the predicted class (or next token) fastest; for other outputs, a few runs give the direction of the
largest change. Each word is then moved along its own direction, by the whole radius, and the model is run on what comes
out. So every number is a change that was found, a lower bound of the largest one; a search finds more.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from wordsway.models.moving.map import PretrainedMap
from wordsway.support.errors import ZeroError
from wordsway.support.seeds import generator
from wordsway.tokens import Tokens

_PROBES = 8  # directions of an output's change that are looked along, where it has no classes
_BATCH = 16  # moved texts that are run together


@dataclass(frozen=True)
class WordStep:
    """One word, moved along its gradient: the relative `change` of the output. Of a model with classes, the
    `prediction` and its `probability` before, that probability after, and what is predicted then."""

    word: int
    text: str
    token: int
    change: float
    prediction: str | None = None
    probability: float | None = None
    probability_after: float | None = None
    prediction_after: str | None = None


def word_steps(phi: PretrainedMap, tokens: Tokens, radius: float, seed: int = 0) -> list[WordStep]:
    """Move each word of a text by `radius` of its own norm along its gradient. A word of several pieces is represented
    by the piece whose gradient promises most."""
    rows = tokens.X.to(phi.model.device, phi.model.dtype)
    norms = rows.norm(dim=1)
    base, directions, slopes = _directions(phi, rows, seed)
    if not float(base.norm()) > 0:
        raise ZeroError("the output is zero, so a change relative to it is not defined")
    promised = (slopes * norms).tolist()
    moving = [max(pieces, key=lambda piece: promised[piece]) for pieces in tokens.pieces]
    after = _moved_outputs(phi, rows, moving, radius * norms[:, None] * directions)
    changes = ((after - base).norm(dim=1) / base.norm()).tolist()
    named = phi.output.name == "logits"
    found = []
    for word, (token, change) in enumerate(zip(moving, changes, strict=True)):
        step = WordStep(word + 1, tokens.words[word], token, change)
        found.append(_with_classes(phi, step, base, after[word]) if named else step)
    return found


def _directions(phi: PretrainedMap, rows: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the output of the text, and for each token a direction of length 1 with its slope."""
    with torch.enable_grad():
        moving = rows.clone().requires_grad_(True)
        output = phi.output.features(phi.model, moving[None], phi.at)[0].flatten()
        if phi.output.name == "logits":
            probability = output.log_softmax(0)[int(output.argmax())]
            (gradient,) = torch.autograd.grad(-probability, moving)
            gradients = gradient[None]
        else:
            made = [torch.randn(output.numel(), generator=generator(seed, "probe", k)) for k in range(_PROBES)]
            probes = [probe.to(output) / output.numel() ** 0.5 for probe in made]
            gradients = torch.stack(
                [torch.autograd.grad(output @ each, moving, retain_graph=True)[0] for each in probes]
            )
    gradients = gradients.detach().double()
    _, sizes, right = torch.linalg.svd(gradients.transpose(0, 1), full_matrices=False)  # a few rows for each token
    signs = torch.einsum("td,td->t", right[:, 0], gradients[0]).sign()
    signs[signs == 0] = 1.0
    directions = right[:, 0] * signs[:, None]
    return output.detach().cpu().double(), directions.to(rows), sizes[:, 0].to(rows)


def _moved_outputs(phi: PretrainedMap, rows: Tensor, moving: list[int], deltas: Tensor) -> Tensor:
    """Run the text with one token moved, for each token of `moving`."""
    outputs = []
    for start in range(0, len(moving), _BATCH):
        part = moving[start : start + _BATCH]
        texts = rows.expand(len(part), -1, -1).clone()
        for k, token in enumerate(part):
            texts[k, token] += deltas[token]
        outputs.append(phi.features(texts).flatten(1))
    return torch.cat(outputs)


def _with_classes(phi: PretrainedMap, step: WordStep, base: Tensor, after: Tensor) -> WordStep:
    """Add what is predicted before and after."""
    predicted, then = int(base.argmax()), int(after.argmax())
    return WordStep(
        step.word,
        step.text,
        step.token,
        step.change,
        prediction=_name(phi, predicted),
        probability=float(base.softmax(0)[predicted]),
        probability_after=float(after.softmax(0)[predicted]),
        prediction_after=_name(phi, then),
    )


def _name(phi: PretrainedMap, index: int) -> str:
    if phi.model.labels is not None:
        return phi.model.labels[index]
    return phi.model.encoder.tokenizer.decode([index])
