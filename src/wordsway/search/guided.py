"""The largest of many expensive values, by learning on the way where large values are.

A model's answer to a real word is far from linear in it: the word lies more than its own norm away from the one that it
replaces, and a gradient there says next to nothing about here (docs/models.md has figures). But words that look alike
to the model act alike. So some candidates are evaluated at random, a kernel regression on their embeddings predicts the
others, the most promising are evaluated, and so on.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsway.support.seeds import generator

# The share of evaluations drawn at random, so that the first regression has values from all over, and the number of
# rounds in which the rest is chosen: each fits the regression again with the values of the last.
_FIRST, _ROUNDS = 0.4, 4
# Width of the Gaussian kernel on unit vectors (orthogonal ones are 1.4 apart), and what is added to its diagonal, so
# that near duplicates do not make the system singular.
_WIDTH, _RIDGE = 0.7, 0.05

Evaluate = Callable[[list[int]], list[float]]


def largest(points: Float[Tensor, "v d"], evaluate: Evaluate, allowed: int, seed: int) -> dict[int, float]:
    """The values of `allowed` candidates, among which the largest of all are hoped for; of all where that is allowed.
    `evaluate` takes indices; `points` are where the candidates lie."""
    count = len(points)
    if allowed >= count:
        return dict(enumerate(evaluate(list(range(count)))))
    order = torch.randperm(count, generator=generator(seed, "guided"))[: max(2, int(_FIRST * allowed))].tolist()
    values = evaluate(order)
    centred = (points - points.mean(0)).double()
    centred = centred / centred.norm(dim=1, keepdim=True).clamp(min=1e-12)
    for rounds_left in range(_ROUNDS, 0, -1):
        size = (allowed - len(order)) // rounds_left
        if size < 1:
            continue
        guess = _predict(centred, torch.tensor(order), torch.tensor(values, dtype=torch.float64))
        guess[order] = -torch.inf
        chosen = guess.topk(size).indices.tolist()
        values += evaluate(chosen)
        order += chosen
    return dict(zip(order, values, strict=True))


def _predict(points: Float[Tensor, "v d"], seen: Int[Tensor, " s"], values: Float[Tensor, " s"]) -> Float[Tensor, " v"]:
    """Kernel ridge regression of the values, at all points."""
    kernel = torch.exp((points @ points[seen].T - 1) / _WIDTH**2)  # unit vectors: |a - b|^2 = 2 - 2 a.b
    middle = values.mean()
    ridge = _RIDGE * torch.eye(len(seen), dtype=points.dtype)
    return kernel @ torch.linalg.solve(kernel[seen] + ridge, values - middle) + middle
