"""RF and deep RF: phi_L(G_L ... phi_1(V flat(X))), with V revealed by text and by token.

Index conventions: X (n, d); V (k, n d) with blocks V_i (k, d); hidden layers G_l (k, k); delta (*batch, m, d).
A change c of one layer's output enters the next as G c, and leaves it as phi(g + G c) - phi(g).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.activations import Activation
from wordsway.maps.activations import find as find_activation
from wordsway.maps.ascents import REVEALING, SMOOTH, Ascent
from wordsway.maps.base import FeatureMap, InnerProducts, Prepared, View
from wordsway.maps.features.first_layer import DenseTextLayer, LazyTextLayer, TextLayer, sample_dense
from wordsway.maps.gaussian import Budget, Dense, Gaussian, Lazy
from wordsway.maps.recipe_numbers import check_depth
from wordsway.support.devices import find_device, find_dtype, precise
from wordsway.support.errors import InputError
from wordsway.support.memory import GIB, require
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public
from wordsway.support.seeds import normal


@public
@dataclass(frozen=True)
class RandomFeatures:
    """A recipe: depth 1 is RF, more is DRF. Entries of the first layer are N(0, 1/(n d)), as in the paper, and of the
    k x k layers N(0, gain/k), where ReLU has gain 2 (He) and the others have 1. `width` is k, by default n d."""

    depth: int = 1
    width: int | None = None
    activation: str = "relu"

    def __post_init__(self) -> None:
        check_depth(self.depth)
        if self.width is not None:
            check_size(self.width, "width")
        find_activation(self.activation)

    def sample(
        self,
        n: int,
        d: int,
        seed: int = 0,
        *,
        lazy: bool = True,
        dtype: torch.dtype | str = torch.float32,
        device: torch.device | str = "cpu",
        memory_limit: int = 6 * GIB,
    ) -> "FeatureNetwork":
        """Draw the weights: lazily (see `Lazy` for what that means), keeping at most `memory_limit` bytes of them, or
        at once with lazy=False, where all of them must fit in memory."""
        n, d, seed = check_size(n, "n"), check_size(d, "d"), check_size(seed, "seed", least=0)
        width = self.width or n * d
        dtype, device = find_dtype(dtype), find_device(device)
        activation = find_activation(self.activation)
        key = (seed, "random_features")
        std = (activation.gain / width) ** 0.5
        if not lazy:
            hidden_bytes = (self.depth - 1) * width * width * (dtype.itemsize + 4)
            what = f"{self.depth - 1} dense hidden layers of {width} x {width}"
            require(hidden_bytes, what, "use lazy=True, which reveals weights only where they are asked for")
            hidden: list[Gaussian] = [
                Dense(normal((width, width), *key, "hidden", layer).to(device, dtype).mul_(std))
                for layer in range(1, self.depth)
            ]
            return FeatureNetwork(self, sample_dense(width, n, d, key, dtype, device), hidden, None, seed)
        # The least that a search needs: pre-activations in float64, and some questions from both sides to every layer.
        least = width * (32.0 + 40 * dtype.itemsize) * self.depth
        require(least, f"measuring {self.depth} lazy layers of width {width}", "use fewer tokens, or a smaller width=")
        budget = Budget(memory_limit)
        first = LazyTextLayer(width, n, d, key, budget, dtype, device)
        hidden = [
            Lazy(width, width, std, (*key, "hidden", layer), budget, dtype, device) for layer in range(1, self.depth)
        ]
        return FeatureNetwork(self, first, hidden, budget, seed)

    @staticmethod
    def from_weights(weights: Sequence[Tensor], activation: str = "relu") -> "FeatureNetwork":
        """The network with your own weights: V of shape (k, n d), then one matrix for each further layer."""
        if not weights:
            raise InputError(
                "weights is empty; give [V] with V of shape (k, n d), then further layers", argument="weights"
            )
        for layer, (below, matrix) in enumerate(zip([None, *weights], weights, strict=False)):
            if matrix.dim() != 2 or not matrix.is_floating_point():
                raise InputError(
                    f"weights[{layer}] must be a floating-point matrix, got shape {tuple(matrix.shape)}",
                    argument="weights",
                )
            if not torch.isfinite(matrix).all():
                raise InputError(f"weights[{layer}] has entries that are NaN or infinite", argument="weights")
            if below is not None and matrix.shape[1] != below.shape[0]:
                raise InputError(
                    f"weights[{layer}] has {matrix.shape[1]} columns, but the layer below has {below.shape[0]} outputs",
                    argument="weights",
                )
        recipe = RandomFeatures(len(weights), weights[-1].shape[0], activation)
        hidden: list[Gaussian] = [Dense(matrix.detach()) for matrix in weights[1:]]
        return FeatureNetwork(recipe, DenseTextLayer(weights[0].detach()), hidden, None, None)


class FeatureNetwork(FeatureMap):
    """RandomFeatures with weights."""

    def __init__(
        self,
        recipe: RandomFeatures,
        first: TextLayer,
        hidden: Sequence[Gaussian],
        budget: Budget | None,
        seed: int | None,
    ) -> None:
        self.recipe, self.first, self.hidden, self.budget, self.seed = recipe, first, hidden, budget, seed
        self.n, self.d = (first.n, first.d) if isinstance(first, LazyTextLayer) else (None, None)
        self.activation: Activation = find_activation(recipe.activation)

    @property
    def remembers(self) -> bool:
        return self.budget is not None

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, " k"]:
        self.check(X)
        return self.activation(self._layers(X[None])[-1][0]).to(X.device, X.dtype)

    def features(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b k"]:
        if len(texts):
            self.check(texts[0])
        return self.activation(self._layers(texts)[-1]).to(texts.device, texts.dtype)

    def check(self, X: Float[Tensor, "n d"]) -> None:
        super().check(X)
        if X.numel() != self.first.cols:
            raise InputError(
                f"X has n d = {X.shape[0]} x {X.shape[1]} = {X.numel()} numbers, but the map takes {self.first.cols}"
            )

    def _layers(self, texts: Float[Tensor, "b n d"]) -> list[Float[Tensor, "b _"]]:
        """g_1 ... g_L for some whole texts, in float64 on the CPU."""
        found = [self.first.texts(texts.detach())]
        for layer in self.hidden:
            dtype = torch.float64 if precise(layer.device) == layer.device else torch.float32
            output = layer.mm(self.activation(found[-1]).to(layer.device, dtype))
            found.append(output.to("cpu", torch.float64))
        return found

    def make_prepared(self, X: Tensor, device: torch.device) -> "FeatureText":
        if isinstance(self.first, LazyTextLayer) and self.first.device != device:
            raise InputError(
                f"the map reveals its weights on {self.first.device}; sample it with device={str(device)!r} to use that"
            )
        return FeatureText(self, X, device, [rows[0] for rows in self._layers(X[None])])

    def to_dense(self) -> "FeatureNetwork":
        """Return this network with all weights in memory; a lazy one generates all that are still missing."""
        weights = [self.first.to_dense(), *(layer.to_dense() for layer in self.hidden)]
        return RandomFeatures.from_weights(weights, self.recipe.activation)

    def config(self) -> dict[str, Any]:
        k = self.first.rows
        return {
            "map": "rf" if self.recipe.depth == 1 else "drf",
            "depth": self.recipe.depth,
            "width": k,
            "activation": self.recipe.activation,
            "lazy": self.remembers,
            "seed": self.seed,
        }

    def plain_bytes(self, n: int, d: int) -> float | None:
        # A lazy network has no plain map: its answers are the revealed weights themselves.
        return None if self.remembers else 8.0 * (2**26 + 4 * self.first.rows)


class FeatureText(Prepared):
    """A text with its pre-activations g_1 ... g_L, in float64 on the CPU."""

    def __init__(
        self,
        phi: FeatureNetwork,
        X: Float[Tensor, "n d"],
        device: torch.device,
        preactivations: list[Float[Tensor, " _"]],
    ) -> None:
        super().__init__(phi, X, device)
        self.network, self.preactivations = phi, preactivations

    def make_view(self, tokens: tuple[int, ...], dtype: torch.dtype) -> "FeatureView":
        return FeatureView(self, tokens, dtype)

    def features(self) -> Float[Tensor, " k"]:
        """phi(X) from what is known already: a lazy network is not asked again."""
        return self.network.activation(self.preactivations[-1])


class FeatureView(View):
    """V_i delta for the moved tokens, then the change through the layers."""

    def __init__(self, text: FeatureText, tokens: tuple[int, ...], dtype: torch.dtype) -> None:
        phi, X, device = text.network, text.X, text.device
        self.phi, self.X, self.tokens, self.dtype, self.device = phi, X, tokens, dtype, device
        self.preactivations = text.preactivations
        self.base_norm = float(phi.activation(self.preactivations[-1]).norm())
        # Along a ray each row's change grows when phi is monotone, and nothing comes after the first layer.
        self.sphere_is_enough = phi.activation.monotone and not phi.hidden
        self.blocks = [phi.first.block(token, X.shape[1]) for token in tokens]
        self._base = self._cast_base(torch.empty(0, dtype=dtype, device=device))

    def change(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch k"]:
        moves = self.blocks[0].mm(delta[..., 0, :])
        for i, block in enumerate(self.blocks[1:], start=1):
            moves = moves + block.mm(delta[..., i, :])
        base = self._base if delta.dtype == self.dtype else self._cast_base(delta)
        for layer, (g, h) in enumerate(base):
            if layer:
                moves = self.phi.hidden[layer - 1].mm(moves)
            moves = self.phi.activation(g + moves) - h
        return moves

    def _cast_base(self, like: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [(g.to(like), self.phi.activation(g).to(like)) for g in self.preactivations]

    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        return self.change(delta).square().sum(-1)

    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        fixed = targets.to(self.device, self.dtype)
        return lambda delta: self.change(delta) @ fixed.T

    def ascent(self) -> Ascent:
        """Close to a quadratic form in delta, whose maximum is the top singular direction of the active rows."""
        return SMOOTH if self.evaluations_left is None else REVEALING

    @property
    def evaluations_left(self) -> int | None:
        budget = self.phi.budget
        lazy = [layer for layer in (*self.blocks, *self.phi.hidden) if isinstance(layer, Lazy) and not layer.settled]
        if budget is None or not lazy:
            return None
        cost = sum(2 * layer.bytes_per_query for layer in lazy)
        return max(0, (budget.limit - budget.used) // cost)

    def settle(self) -> None:
        """Whole blocks of the moved tokens, where they take at most half of what the map may still keep."""
        lazy = [block for block in self.blocks if isinstance(block, Lazy) and not block.settled]
        budget = self.phi.budget
        if budget is not None and sum(block.bytes_whole for block in lazy) <= (budget.limit - budget.used) / 2:
            for block in lazy:
                block.to_dense()

    @property
    def bytes_per_evaluation(self) -> int:
        return 8 * self.dtype.itemsize * self.phi.first.rows
