"""A budget for many rows at once: the fourth powers of what one move adds to their logits.

Row j gains t_j = A_j . v by a move v. Squares have the budget sum_j t_j^2 <= |A|_op^2 |v|^2, which is generous where a
text has many more tokens than dimensions: every move raises thousands of logits a little. Take any weights w_j > 0, p =
w / sum(w), kappa = sum_j p_j t_j^2 and C = sum_j p_j A_j A_j^T. Then
    sum_j w_j (t_j^2 - kappa)^2 <= Lambda |v|^4,    Lambda = the largest eigenvalue of H,
    H = D^(1/2) (I - 1 p^T) S (I - p 1^T) D^(1/2),    D = diag(w),  S_jk = (A_j . A_k)^2:
t_j^2 - kappa is the inner product of A_j A_j^T - C with v v^T, whose norm is |v|^2, and H is the Gram matrix of the
first, weighted. As kappa <= |C|_op |v|^2, few rows can gain much more than the mean.

**Largest eigenvalue.** Lanczos steps guess it from below. That a number above the guess bounds it is proved by a
Cholesky factor of (number) I - H: where one exists in float64, the matrix misses being positive by at most the rounding
of the factorisation, which is added.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.support.memory import fits

_MOST_ROWS = 25_000  # beyond, a factor takes minutes and 5 GB
_STEPS = 24  # of Lanczos: the guess is then 1 to 3% low
_ABOVE = (1.03, 1.1, 1.5)  # factors of the guess that are tried
_LARGEST = 1e300  # of a sum of squares: more does not fit float64
_EPS = torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class FourthPowers:
    """`most` is Lambda; `mean` is the most that kappa can be, for |v| = 1; `weights` are w."""

    most: float
    mean: float
    weights: Float[Tensor, " n"]


def fourth_powers(A: Float[Tensor, "n d"], weights: Float[Tensor, " n"]) -> FourthPowers | None:
    """Compute the budget of some rows, with weights > 0; None where there are too many."""
    n, d = A.shape
    size = float(A.square().sum(1).amax().square() * weights.amax())  # at least w_j |A_j|^4
    if n > _MOST_ROWS or not fits(8.0 * n * n * 1.1) or not n * size < _LARGEST:
        return None
    shares = weights / weights.sum()
    mean = float(torch.linalg.eigvalsh(A.T @ (shares[:, None] * A))[-1]) * (1 + 1e-9)
    guess = _lanczos(weighted_gram(A, weights))
    if guess <= 0:  # rows that all gain alike
        return None
    for factor in _ABOVE:
        bound = guess * factor
        if _bounds(weighted_gram(A, weights), bound):
            # Entries are off by at most a few (n + d) units of `size`; the factor, by n of the trace.
            return FourthPowers(bound + 8 * _EPS * n * ((n + d) * size + n * bound), mean, weights)
    return None


def weighted_gram(A: Float[Tensor, "n d"], weights: Float[Tensor, " n"]) -> Float[Tensor, "n n"]:
    """H, in the memory of one matrix."""
    S = (A @ A.T).square_()
    shares = weights / weights.sum()
    rows = S @ shares
    S.sub_(rows[:, None]).sub_(rows).add_(shares @ rows)
    return S.mul_(weights.sqrt()[:, None]).mul_(weights.sqrt())


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
    columns = H.mT  # H is symmetric; in this order its factor needs no second matrix
    info = torch.zeros((), dtype=torch.int32, device=H.device)
    torch.linalg.cholesky_ex(columns, out=(columns, info))
    return int(info) == 0
