"""What the mathematics predicts for word sensitivity: lines for plots, oracles for tests. None of these is a bound.

Both predictions replace a Gaussian matrix by independent Gaussian vectors, as Gordon's comparison does: when delta
ranges over a sphere in R^d of radius rho, the moves e = V delta of k rows with N(0, v) entries reach, in effect,
all points
    e = sqrt(v) rho (h + w),   h standard normal in R^k,   |w| <= sqrt(d).
What remains is to maximise a sum over rows under one budget for w, which a multiplier makes separable.
"""

import math

import numpy as np

from wordsway.errors import InputError

Array = np.ndarray


def random_features_first_order(n: int, d: int, width: int | None = None, radius: float | None = None) -> float:
    """ReLU RF as if no unit switched: rho / |X| (1 + sqrt(2 d / k)); n^(-1/2) (1 + sqrt(2/n)) at k = n d, rho =
    sqrt(d)."""
    width, radius = width or n * d, math.sqrt(d) if radius is None else radius
    return radius / math.sqrt(n * d) * (1 + math.sqrt(2 * d / width))


def random_features(n: int, d: int, width: int | None = None, radius: float | None = None) -> float:
    """ReLU RF with units that switch on and off, to first order in the budget.

    A unit with pre-activation g moves by f = relu(g + s h) - relu(g), s = rho / |X|; k rows give norm sqrt(k E
    f^2), and w, aligned with the gradient of the norm, adds s sqrt(d E[f^2 f'^2] / E f^2). The features have norm
    sqrt(k / 2).
    """
    width, radius = width or n * d, math.sqrt(d) if radius is None else radius
    s = radius / math.sqrt(n * d)
    corr = 1 / math.sqrt(1 + s * s)  # between g and g + s h
    angle = math.acos(corr)
    kernel = math.sqrt(1 + s * s) * (math.sin(angle) + (math.pi - angle) * corr) / (2 * math.pi)
    square = 0.5 + 0.5 * (1 + s * s) - 2 * kernel  # E f^2, by the arc-cosine kernel
    g = np.linspace(0, 12, 24001)
    upper_tail = 0.5 * np.vectorize(math.erfc)(g / (s * math.sqrt(2)))
    stuck = float(np.trapezoid(g * g * _density(g) * upper_tail, g))  # active units that fell silent: f' = 0
    moving = max(0.0, square - stuck)
    return math.sqrt(2 * square) + s * math.sqrt(2 * d / width * moving / square)


def random_attention(n: int, d: int, score: str = "softmax", radius: float | None = None) -> float:
    """One attention layer with Gaussian W and independent rows of norm sqrt(d): the capture of rows by one token.

    Row j gives the token the weight a(l_j + s_j): l is N(0, 1), s = (rho / sqrt d)(h + w). With Delta = c rho e +
    rest, e the token's direction, a captured row becomes about a (x + Delta), of squared norm a^2 |x + Delta|^2,
    and the budget left for w is (1 - c^2) d. The token's own row is captured by itself: at no price with softmax,
    where its one logit can rise; with ReLU all others must be silenced, which takes sum_k max(0, l_k + s_k)^2 of
    the budget. The best c is chosen. Unmoved, a row has squared norm d kappa / n, kappa = E weight^2 / (E
    weight)^2: e for softmax, pi for ReLU.
    """
    radius = math.sqrt(d) if radius is None else radius
    scale = radius / math.sqrt(d)
    if score not in ("softmax", "relu"):
        raise InputError(f"score={score!r} has no prediction; use softmax or relu")
    kappa = math.e if score == "softmax" else math.pi
    others = max(n - 1, 1)
    z = np.linspace(-4.5, 4.5, 61)  # quantiles of the standard normal sum of l and scale * h
    prior = _density(z)
    prior = prior / prior.sum()
    logit = math.sqrt(1 + scale**2) * z[:, None]
    push = np.concatenate([[0.0], np.geomspace(0.05, scale * math.sqrt(d), 400)])  # scale * w
    if score == "softmax":
        weight = 1 / (1 + others * math.exp(0.5) * np.exp(-(logit + push)))
    else:
        positive = np.maximum(logit + push, 0)
        weight = positive / (positive + others / math.sqrt(2 * math.pi))
    multipliers = np.geomspace(1e-6, 10, 80)
    silence = 0.0 if score == "softmax" else 0.5 * (1 + scale**2) * others
    best = 0.0
    for c in np.linspace(-1, 1, 41):
        value = 1 + scale**2 + 2 * c * scale  # |x + Delta|^2 / d
        pushed = np.array([float(prior @ (value * weight**2 - lam * push**2).max(1)) for lam in multipliers])
        budget = (1 - c * c) * d * scale**2
        for spent, own in ((0.0, 0.0), (silence, value)):
            if budget >= spent:
                best = max(best, float((multipliers * (budget - spent) + others * pushed).min()) + own)
    return math.sqrt(best / kappa)


def predict(map: str, n: int, d: int, radius: float | None = None) -> float | None:
    """The prediction for a map by its name, or None where there is none (deep RF)."""
    if map == "rf":
        return random_features(n, d, radius=radius)
    if map in ("raf", "relu-raf"):
        return random_attention(n, d, "softmax" if map == "raf" else "relu", radius)
    return None


def _density(x: Array) -> Array:
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
