"""Predictions of word sensitivity from theory: lines for plots, oracles for tests. None of these is a bound.

Both predictions replace a Gaussian matrix by independent Gaussian vectors, as Gordon's comparison does: when delta
ranges over a sphere in R^d of radius rho, the moves e = V delta of k rows with N(0, v) entries reach, in effect,
all points
    e = sqrt(v) rho (h + w),   h standard normal in R^k,   |w| <= sqrt(d).
What remains is to maximise a sum over rows under one budget for w, which a multiplier makes separable.

Attention
---------
**Logits.** Row j has the query q_j = W^T x_j / sqrt(d), a Gaussian vector of length about 1, and the logit L_j = q_j .
(x + Delta) for the token. With Delta = c rho e + v, e the token's direction, the part along e multiplies the present
logit, N(0, 1), by 1 + c scale, scale = rho / sqrt(d). The rest adds X W v / sqrt(d): a comparison for W leaves
scale' (h + X t), |t| <= 1, scale' = scale sqrt(1 - c^2), and one for X turns X t into h' + w with |w| <= sqrt(d). So
L_j = sqrt((1 + c scale)^2 + 2 scale'^2) z + push_j, and the squares of all pushes add up to scale'^2 d at most.

**Rows.** Weights favour values along the query: r_j is tilt^(1/2) q_j, with tilt = 1 for softmax and pi / 2 for ReLU,
and noise of squared norm d kappa / n, kappa = E weight^2 / (E weight)^2: e for softmax, pi for ReLU. So unmoved rows
have |phi(X)|^2 = d (kappa + n tilt / d). A captured row changes by a (x + Delta - r_j). Where L_j is large, q_j is
longer than 1: |q_j|^2 = 1 + L_j^2 / |x + Delta|^2, which raises its logits for the other tokens as well.

**The token's own row** is captured by itself: at no price with softmax, where its one logit can rise; with ReLU all
others must be silenced, which takes sum_k max(0, l_k + s_k)^2 of the budget. Or, with ReLU, its query turns round,
which takes all of it. The best c is chosen.

**A shared direction** (softmax only): rows sqrt(1 - r) z_j + sqrt(r) g, r = `correlation`, have one query direction
in common. A share c' of the budget along it moves all logits by sqrt(r d) scale c' at once, so capture is cheap;
but a captured row differs from what it was, r_j = about sqrt(r) g, by sqrt(1 - r) z + Delta only, and unmoved rows
have squared norm d (r + (1 - r) kappa / n) + (1 - r)^2 with kappa = exp(1 - r), as logits differ by N(0, 1 - r).
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

    The derivation is in the module's docstring.
    """
    radius = math.sqrt(d) if radius is None else radius
    scale = radius / math.sqrt(d)
    if score not in ("softmax", "relu"):
        raise InputError(f"score={score!r} has no prediction; use softmax or relu", argument="score")
    if correlation and score != "softmax":
        raise InputError(f"score={score!r} has no prediction for correlated rows; softmax has", argument="score")
    own = 1 - correlation
    kappa, tilt = (math.exp(own), own**2) if score == "softmax" else (math.pi, math.pi / 2)
    noise = kappa * own / n
    others = max(n - 1, 1)
    z = np.linspace(-4.5, 4.5, 61)
    prior = _density(z) / _density(z).sum()
    push = np.concatenate([[0.0], np.geomspace(0.05, scale * math.sqrt(d), 400)])
    multipliers = np.geomspace(1e-6, 10, 80)
    best = 2 * min(1.0, scale) * (2 * tilt / d + noise) if score == "relu" else 0.0  # the own row's query turns round
    for common, c in _shares(correlation):
        left = 1 - c * c - common * common
        spread = (math.sqrt(own) + c * scale) ** 2 + 2 * own * scale**2 * left
        logit = math.sqrt(spread) * z[:, None] + push + common * scale * math.sqrt(correlation * d)
        size = own + scale**2 + 2 * c * scale * math.sqrt(own)  # |x + Delta - sqrt(r) g|^2 / d
        longer = logit**2 / (d * max(size, 1e-9)) if not correlation else 0.0  # |q_j|^2 - 1
        weight = _weight(score, others, logit, own + longer)
        gone = noise + (tilt * (1 + longer) - 2 * math.sqrt(tilt) * logit) / d if not correlation else 0.0
        square = np.maximum(size + gone, 0.0) * weight**2
        pushed = np.array([float(prior @ (square - lam * push**2).max(1)) for lam in multipliers])
        budget, silence = left * d * scale**2, 0.0 if score == "softmax" else 0.5 * spread * others
        for spent, row in ((0.0, 0.0), (silence, size)):
            if budget >= spent:
                best = max(best, float((multipliers * (budget - spent) + others * pushed).min()) + row)
    return math.sqrt(best / (n * correlation + own * kappa + n * tilt / d))


def _weight(score: str, others: int, logit: Array, query_sq: Array | float) -> Array:
    """Compute the weight of a token with this logit beside others whose logits are N(0, query_sq)."""
    if score == "softmax":
        return 1 / (1 + others * np.exp(np.minimum(0.5 * query_sq - logit, 700.0)))
    mass = np.maximum(logit, 0)
    return mass / (mass + others * np.sqrt(query_sq / (2 * math.pi)))


def _shares(correlation: float) -> list[tuple[float, float]]:
    """Shares (c', c) of a move along the direction that all queries share and along the token itself."""
    return [
        (float(common), float(c))
        for common in (np.linspace(0, 0.9, 19) if correlation else [0.0])
        for c in np.linspace(-1, 1, 41)
        if c * c + common * common <= 1
    ]


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
