"""A budget for many rows at once: the fourth powers of what one move adds to their logits.

Row j gains t_j = A_j . v by a move v. Squares have the budget sum_j t_j^2 <= |A|_op^2 |v|^2, which is generous where a
text has many more tokens than dimensions: every move raises thousands of logits a little. Let kappa be the mean over
all n rows of t_j^2, and C = A^T A / n. Then
    sum_j (t_j^2 - kappa)^2 <= Lambda |v|^4,    Lambda = the largest eigenvalue of J S J,
with S_jk = (A_j . A_k)^2 and J = I - 1 1^T / n: t_j^2 - kappa is the inner product of A_j A_j^T - C with v v^T, whose
norm is |v|^2, and J S J is the Gram matrix of these. As kappa <= |A|_op^2 |v|^2 / n, few rows can gain much more than
the mean. The sum may leave out rows, and v may be restricted, so one Lambda serves all tokens of a text.

**Largest eigenvalue.** Lanczos steps guess it from below. That a number above the guess bounds it is proved by a
Cholesky factor of (number) I - J S J: where one exists in float64, the matrix misses being positive by at most the
rounding of the factorisation, which is added.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention.attention_view import Text
from wordsway.support.memory import fits

_MOST_ROWS = 25_000  # beyond, a factor takes minutes and more than 5 GB
_STEPS = 24  # of Lanczos: the guess is then 1 to 3% low
_ABOVE = (1.03, 1.1, 1.5)  # factors of the guess that are tried
_LARGEST = 1e300  # of a sum of squares: more does not fit float64
_EPS = torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class FourthPowers:
    """`most` is Lambda; `mean` is the most that the mean of t_j^2 can be, for |v| = 1."""

    most: float
    mean: float


_known: "WeakKeyDictionary[Text, FourthPowers | None]" = WeakKeyDictionary()


def fourth_powers(text: Text) -> FourthPowers | None:
    """Compute the budget of a text, once; None where the text is too long for it."""
    if text not in _known:
        _known[text] = _fourth_powers(text.queries)
    return _known[text]


def _fourth_powers(A: Float[Tensor, "n d"]) -> FourthPowers | None:
    n, d = A.shape
    size = float(A.square().sum(1).amax()) ** 2  # the largest |A_j|^4
    if n > _MOST_ROWS or not fits(8.0 * n * n * 1.1) or not n * size < _LARGEST:
        return None
    mean = float(torch.linalg.eigvalsh(A.T @ A)[-1]) * (1 + 1e-9) / n
    guess = _lanczos(_centred(A))
    if guess <= 0:  # rows that all gain alike
        return None
    for factor in _ABOVE:
        bound = guess * factor
        if _bounds(_centred(A), bound):
            # Entries are off by at most a few (n + d) units of `size`; the factor, by n of the trace.
            return FourthPowers(bound + 8 * _EPS * n * ((n + d) * size + n * bound), mean)
    return None


def _centred(A: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    """J S J, in the memory of one matrix."""
    S = (A @ A.T).square_()
    rows = S.mean(1)
    return S.sub_(rows[:, None]).sub_(rows).add_(rows.mean())


def _lanczos(H: Float[Tensor, "n n"]) -> float:
    """Guess the largest eigenvalue from below."""
    rng = torch.Generator().manual_seed(0)
    basis = torch.randn(1, len(H), generator=rng, dtype=torch.float64).to(H.device)
    basis = basis / basis.norm()
    images = basis @ H
    for _ in range(min(_STEPS, len(H)) - 1):
        new = images[-1] - basis.T @ (basis @ images[-1])
        new = new - basis.T @ (basis @ new)
        if float(new.norm()) <= 1e-9 * float(images[-1].norm()):
            break
        basis = torch.cat([basis, (new / new.norm())[None]])
        images = torch.cat([images, basis[-1:] @ H])
    return float(torch.linalg.eigvalsh(basis @ images.T)[-1])


def _bounds(H: Float[Tensor, "n n"], bound: float) -> bool:
    """Whether bound I - H has a Cholesky factor, which takes the place of H."""
    H.neg_().diagonal().add_(bound)
    info = torch.zeros((), dtype=torch.int32, device=H.device)
    torch.linalg.cholesky_ex(H, out=(H, info))
    return int(info) == 0
