"""Upper bounds for RF and DRF.

**Given weights.** With ReLU, a row with g_r <= 0 stays at 0 until its pre-activation has moved by |g_r|, and it can
move by at most m_r = |V_r| rho; so its change is at most sqrt(w_r) |e_r| with w_r = max(0, 1 - |g_r| / m_r)^2, and
active rows have w_r = 1. The change of the layer is at most |diag(sqrt w) V|_op rho: a top eigenvalue, which is
deterministic. Layer by layer, rho becomes the bound on the layer before.

**Lazy weights**, given the pre-activations g of the text. The change of a layer is at most N(e), where e = G c is
the move of its pre-activations and N(e)^2 = sum over active rows of e_r^2 + sum over others of max(0, e_r -
|g_r|)^2 (for another activation, N = Lipschitz constant * |e|). N is convex and 1-Lipschitz, so it is a supremum of
affine functions and Slepian's inequality (as in Chevet's) compares sup_c N(G c) with independent Gaussian vectors h
(one entry a row) and q (one a column):
    E sup_c N(G c) <= E sup_c [N(std |c'| h + tau g) + std q . c],
where G is known along the layer's input x for the text, so c = tau x + c' with c' orthogonal to x. The pair (|c'|,
tau |x|) lies in a half disc of radius s, a bound on |c|; N is convex, so over a polygon around it the first part is
at its largest at one of m corners. There E N <= sqrt(E N^2), a sum of one-dimensional integrals in closed form, and
the maximum over corners costs std s sqrt(2 ln m) on top of the largest mean. The second is std w, with w = E sup_c
q . c the Gaussian width of the set of all c. The supremum is a (std s)-Lipschitz function of G: it exceeds its mean
by std s t with probability at most exp(-t^2 / 2). In the first layer c = Delta in R^p, so s = rho and w <= rho
sqrt(p). Widths pass through a layer as follows: the activation contracts increments (Sudakov-Fernique), so the new
width is at most that of {G c}; G^T q is a Gaussian vector of size std |q| when q is independent of G, so the mean
of that width over G is at most std sqrt(rows) w; and it is a (std s)-Lipschitz function of G, so it exceeds its
mean by std s t with probability at most exp(-t^2 / 2).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.base import Certificate
from wordsway.maps.features.random_features import FeatureView
from wordsway.maps.gaussian import Dense, Gaussian

FAILURE = 1e-9  # for lazy weights: the probability that a certificate is wrong, over the draw of the weights
_CORNERS = 12  # sides of the polygon around an arc
_EXACT_MARGIN = 1e-9  # relative, for rounding in float64
_LAZY_MARGIN = 1e-5  # relative, for revealed weights that are kept in float32


def certify_features(view: FeatureView, radius: float) -> Certificate:
    """A bound over all moves of the view's tokens whose joint norm is at most `radius`."""
    if view.phi.remembers:
        upper = _lazy_bound(view, radius)
        return Certificate(upper / view.base_norm * (1 + _LAZY_MARGIN), FAILURE)
    block = torch.cat([block.to_dense() for block in view.blocks], dim=1)
    layers: list[Gaussian] = [Dense(block), *view.phi.hidden]
    reach = radius
    for g, layer in zip(view.preactivations, layers, strict=True):
        reach = _given_layer(layer.to_dense(), g, reach, view)
    k, size = view.phi.first.rows, view.X.numel()
    margin = _EXACT_MARGIN + 64 * torch.finfo(torch.float64).eps * (k + size)
    return Certificate(reach / view.base_norm * (1 + margin))


def _given_layer(
    weights: Float[Tensor, "rows cols"], g: Float[Tensor, " rows"], reach: float, view: FeatureView
) -> float:
    """Bound the change of the layer's output when its input moves by at most `reach`."""
    G = weights.to("cpu", torch.float64)
    activation = view.phi.activation
    if activation.name == "relu":
        most = G.norm(dim=1) * reach
        share = torch.where(g > 0, 1.0, (1 + g / most.clamp(min=1e-300)).clamp(min=0.0))
        G = G * share[:, None]
    gram = G.T @ G if G.shape[1] <= G.shape[0] else G @ G.T
    top = float(torch.linalg.eigvalsh(gram)[-1])
    return activation.lipschitz * math.sqrt(max(0.0, top)) * reach


def _lazy_bound(view: FeatureView, radius: float) -> float:
    phi, activation = view.phi, view.phi.activation
    p = len(view.tokens) * view.X.shape[1]
    layers = [(1 / math.sqrt(phi.first.cols), view.preactivations[0])]
    layers += [
        (math.sqrt(activation.gain / layer.cols), g)
        for layer, g in zip(phi.hidden, view.preactivations[1:], strict=True)
    ]
    t = math.sqrt(2 * math.log(2 * len(layers) / FAILURE))  # two events a layer: its supremum and its width
    # Of the first layer's input, the text, only the moved rows can meet Delta.
    share = float(view.X[list(view.tokens)].norm() / view.X.norm())
    size = float(view.X.norm())
    reach, width = (
        radius,
        radius * math.sqrt(p),
    )  # bounds on |c| and on the Gaussian width of the set of all c
    for std, g in layers:
        corners = _polygon(share)
        mean = max(
            _mean_norm(activation.name, g, std * reach * across, reach * along / size) for across, along in corners
        )
        excess = math.hypot(*corners[0]) * math.sqrt(2 * math.log(len(corners)))
        sup = mean + std * (width + reach * (excess + t))
        width = activation.lipschitz * std * (math.sqrt(len(g)) * width + reach * t)
        reach = activation.lipschitz * sup
        size, share = float(activation(g).norm()), 1.0
        if size == 0:
            return math.inf
    return reach


def _polygon(share: float) -> list[tuple[float, float]]:
    """Corners (across, along) whose convex hull has all points of the right half of the unit disc with |along| <=
    share."""
    half = math.asin(min(1.0, share)) / _CORNERS
    angles = [(2 * k - _CORNERS) * half for k in range(_CORNERS + 1)]
    radius = 1 / math.cos(half)
    return [(radius * math.cos(a), radius * math.sin(a)) for a in angles] + [(0.0, -share), (0.0, share)]


def _mean_norm(activation: str, g: Float[Tensor, " rows"], scale: float, tau: float) -> float:
    """sqrt(E N(scale h + tau g)^2) for standard normal h; N without its Lipschitz constant."""
    unit = max(scale, abs(tau), 1e-300)  # taken out, so that squares of tiny moves do not become 0
    return unit * _mean_norm_in_units(activation, g, scale / unit, tau / unit, unit)


def _mean_norm_in_units(activation: str, g: Float[Tensor, " rows"], scale: float, tau: float, unit: float) -> float:
    if activation != "relu":
        return math.sqrt(len(g) * scale**2 + tau**2 * float(g.square().sum()))
    active = g[g > 0]
    total = len(active) * scale**2 + tau**2 * float(active.square().sum())
    silent = -g[g <= 0] * (1 / unit + tau)  # a silent row answers with max(0, scale h - silent)
    if scale <= 1e-12 * abs(tau):
        return math.sqrt(total + float(silent.clamp(max=0.0).square().sum()))
    level = (silent / scale).clamp(max=40.0)  # beyond, there is nothing left that float64 could show
    tail = 0.5 * torch.special.erfc(level / math.sqrt(2))
    density = torch.exp(-0.5 * level**2) / math.sqrt(2 * math.pi)
    excess = ((1 + level**2) * tail - level * density).clamp(min=0.0)  # E max(0, h - level)^2
    return math.sqrt(total + scale**2 * float(excess.sum()))
