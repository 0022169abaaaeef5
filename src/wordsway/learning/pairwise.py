"""Telling the two sides of a pair apart: by a trained readout, and by how alike their features are.

Index conventions: features are (T, k), row t of each tensor belongs to pair t. Ties count half everywhere.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.learning.readout import Readout

PERMUTATIONS = 200


@dataclass(frozen=True)
class Told:
    """`accuracy` is the share of pairs whose positive side gets the larger value, `single` that of texts with the right
    sign. `permuted` is the mean accuracy after training on labels without meaning, with its standard deviation and 95%
    range over such labels, and `p_value` is how often that was as good (one more counted on both sides of the
    share)."""

    accuracy: float
    single: float
    permuted: float
    permuted_sd: float
    permuted_low: float
    permuted_high: float
    p_value: float


def tell_apart(
    readout: Readout,
    negative: Float[Tensor, "T k"],
    positive: Float[Tensor, "T k"],
    meaningless: Float[Tensor, "r N"],
) -> Told:
    """Evaluate a readout on pairs that it was not trained on, and compare it with readouts trained on each of r rows of
    other labels."""
    low, high = negative @ readout.theta, positive @ readout.theta
    accuracy = float(_wins(high - low))
    single = float(torch.cat([_wins_each(-low), _wins_each(high)]).mean())
    # theta is linear in the labels, so that all permutations share one product with the training features.
    across = (positive - negative) @ readout.features.T
    dual = readout.vectors @ ((readout.vectors.T @ meaningless.T) / readout.values[:, None])
    others = _wins_each(across @ dual).mean(0)
    ends = torch.quantile(others, torch.tensor([0.025, 0.975], dtype=others.dtype))
    beaten = int((others >= accuracy).sum())
    return Told(
        accuracy=accuracy,
        single=single,
        permuted=float(others.mean()),
        permuted_sd=float(others.std()),
        permuted_low=float(ends[0]),
        permuted_high=float(ends[1]),
        p_value=(1 + beaten) / (1 + len(others)),
    )


@dataclass(frozen=True)
class Alike:
    """Comparison of a text's features with those of the text of opposite meaning (flipped) and of the same meaning.
    `auc` is how often the cosine with a text of the same meaning is above that with a flipped one, over all of both;
    `closer` the same within one context; `change` and `change_same` are mean relative changes of the features."""

    auc: float
    closer: float
    change: float
    change_same: float


def compare_features(text: Float[Tensor, "T k"], flipped: Float[Tensor, "T k"], same: Float[Tensor, "T k"]) -> Alike:
    near, far = torch.cosine_similarity(text, same), torch.cosine_similarity(text, flipped)
    return Alike(
        auc=float(_wins(near[:, None] - far)),
        closer=float(_wins(near - far)),
        change=relative_change(text, flipped),
        change_same=relative_change(text, same),
    )


def relative_change(text: Float[Tensor, "T k"], other: Float[Tensor, "T k"]) -> float:
    """The mean of |phi(X') - phi(X)| / |phi(X)|."""
    return float(((other - text).norm(dim=1) / text.norm(dim=1)).mean())


def swapped(labels: Float[Tensor, " N"], draw: torch.Generator, count: int = PERMUTATIONS) -> Float[Tensor, "r N"]:
    """Labels of texts that come as (negative, positive) pairs, with the sides of each pair swapped or not by chance."""
    signs = torch.randint(2, (count, len(labels) // 2), generator=draw).mul_(2).sub_(1).to(labels)
    return labels * signs.repeat_interleave(2, dim=1)


def shuffled(labels: Float[Tensor, " N"], draw: torch.Generator, count: int = PERMUTATIONS) -> Float[Tensor, "r N"]:
    """Labels of unrelated texts in another order."""
    return torch.stack([labels[torch.randperm(len(labels), generator=draw)] for _ in range(count)])


def _wins_each(margin: Tensor) -> Tensor:
    return torch.where(margin > 0, 1.0, torch.where(margin < 0, 0.0, 0.5)).to(torch.float64)


def _wins(margin: Tensor) -> Tensor:
    return _wins_each(margin).mean()
