"""Predictions of word sensitivity from theory: lines for plots, oracles for tests. None of these is a bound.

Both predictions replace a Gaussian matrix by independent Gaussian vectors, as Gordon's comparison does: when delta
ranges over a sphere in R^d of radius rho, the moves e = V delta of k rows with N(0, v) entries reach, in effect,
all points
    e = sqrt(v) rho (h + w),   h standard normal in R^k,   |w| <= sqrt(d).
What remains is to maximise a sum over rows under one budget for w, which a multiplier makes separable.
"""

import math

import numpy as np

from wordsway.support.errors import InputError

Array = np.ndarray


def random_features_first_order(n: int, d: int, width: int | None = None, radius: float | None = None) -> float:
    """ReLU RF as if no unit switched: rho / |X| (1 + sqrt(2 d / k)); n^(-1/2) (1 + sqrt(2/n)) at k = n d, rho =
    sqrt(d)."""
    width, radius = width or n * d, math.sqrt(d) if radius is None else radius
    return radius / math.sqrt(n * d) * (1 + math.sqrt(2 * d / width))


def random_features(n: int, d: int, width: int | None = None, radius: float | None = None, moved: int = 1) -> float:
    """ReLU RF with units that switch on and off, to first order in the budget, when `moved` tokens move together,
    each by `radius`: delta is then a point of a sphere in R^(moved d) of radius sqrt(moved) radius.

    A unit with pre-activation g moves by f = relu(g + s h) - relu(g), s = rho / |X|; k rows give norm sqrt(k E
    f^2), and w, aligned with the gradient of the norm, adds s sqrt(d E[f^2 f'^2] / E f^2). The features have norm
    sqrt(k / 2).
    """
    width, radius = width or n * d, math.sqrt(d) if radius is None else radius
    s = math.sqrt(moved) * radius / math.sqrt(n * d)
    corr = 1 / math.sqrt(1 + s * s)  # between g and g + s h
    angle = math.acos(corr)
    kernel = math.sqrt(1 + s * s) * (math.sin(angle) + (math.pi - angle) * corr) / (2 * math.pi)
    square = 0.5 + 0.5 * (1 + s * s) - 2 * kernel  # E f^2, by the arc-cosine kernel
    g = np.linspace(0, 12, 24001)
    upper_tail = 0.5 * np.vectorize(math.erfc)(g / (s * math.sqrt(2)))
    stuck = float(np.trapezoid(g * g * _density(g) * upper_tail, g))  # active units that fell silent: f' = 0
    moving = max(0.0, square - stuck)
    return math.sqrt(2 * square) + s * math.sqrt(2 * moved * d / width * moving / square)


def random_attention(
    n: int, d: int, score: str = "softmax", radius: float | None = None, correlation: float = 0.0
) -> float:
    """One attention layer with Gaussian W and independent rows of norm sqrt(d): the capture of rows by one token.

    Row j gives the token the weight a(l_j + s_j): l is N(0, 1), s = (rho / sqrt d)(h + w). With Delta = c rho e +
    rest, e the token's direction, a captured row becomes about a (x + Delta), of squared norm a^2 |x + Delta|^2,
    and the budget left for w is (1 - c^2) d. The token's own row is captured by itself: at no price with softmax,
    where its one logit can rise; with ReLU all others must be silenced, which takes sum_k max(0, l_k + s_k)^2 of
    the budget. The best c is chosen. Unmoved, a row has squared norm d kappa / n, kappa = E weight^2 / (E
    weight)^2: e for softmax, pi for ReLU.

    **A shared direction** (softmax only): rows sqrt(1 - r) z_j + sqrt(r) g, r = `correlation`, have one query direction
    in common. A share c' of the budget along it moves all logits by sqrt(r d) scale c' at once, so capture is cheap;
    but a captured row differs from what it was, r_j = about sqrt(r) g, by sqrt(1 - r) z + Delta only, and unmoved rows
    have squared norm d (r + (1 - r) kappa / n) with kappa = exp(1 - r), as logits differ by N(0, 1 - r).
    """
    radius = math.sqrt(d) if radius is None else radius
    scale = radius / math.sqrt(d)
    if score not in ("softmax", "relu"):
        raise InputError(f"score={score!r} has no prediction; use softmax or relu", argument="score")
    if correlation and score != "softmax":
        raise InputError(f"score={score!r} has no prediction for correlated rows; softmax has", argument="score")
    own_share = 1 - correlation
    kappa = math.exp(own_share) if score == "softmax" else math.pi
    others = max(n - 1, 1)
    z = np.linspace(-4.5, 4.5, 61)  # quantiles of the standard normal sum of l and scale * h
    prior = _density(z)
    prior = prior / prior.sum()
    logit = math.sqrt(own_share + scale**2) * z[:, None]
    push = np.concatenate([[0.0], np.geomspace(0.05, scale * math.sqrt(d), 400)])  # scale * w
    multipliers = np.geomspace(1e-6, 10, 80)
    silence = 0.0 if score == "softmax" else 0.5 * (1 + scale**2) * others
    best = 0.0
    for common in np.linspace(0, 0.9, 19) if correlation else [0.0]:  # c'
        lifted = logit + push + common * scale * math.sqrt(correlation * d)
        if score == "softmax":
            weight = 1 / (1 + others * math.exp(0.5 * own_share) * np.exp(-lifted))
        else:
            weight = np.maximum(lifted, 0) / (np.maximum(lifted, 0) + others / math.sqrt(2 * math.pi))
        for c in np.linspace(-1, 1, 41):
            if c * c + common * common > 1:
                continue
            value = own_share + scale**2 + 2 * c * scale * math.sqrt(own_share)  # |x + Delta - sqrt(r) g|^2 / d
            pushed = np.array([float(prior @ (value * weight**2 - lam * push**2).max(1)) for lam in multipliers])
            budget = (1 - c * c - common * common) * d * scale**2
            for spent, own in ((0.0, 0.0), (silence, value)):
                if budget >= spent:
                    best = max(best, float((multipliers * (budget - spent) + others * pushed).min()) + own)
    return math.sqrt(best / (n * correlation + own_share * kappa))


def predict(
    map: str, n: int, d: int, radius: float | None = None, correlation: float = 0.0, moved: int = 1
) -> float | None:
    """The prediction for a map by its name, for independent rows or ones that share a direction, or for several tokens
    that move together; None where there is none (deep RF, say)."""
    if map == "rf":
        return random_features(n, d, radius=radius, moved=moved)
    if moved > 1 or (correlation and map != "raf"):
        return None
    if map in ("raf", "relu-raf"):
        return random_attention(n, d, "softmax" if map == "raf" else "relu", radius, correlation)
    return None


def _density(x: Array) -> Array:
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
