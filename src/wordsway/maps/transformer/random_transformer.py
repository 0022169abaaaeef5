"""Random transformers: several layers of multi-head attention and a perceptron, with Gaussian weights.

A block is x + attention(norm x), then x + mlp(norm x), with its norm before, after or nowhere, and with or without the
x. Weights are scaled so that rows of norm sqrt(d) give logits, values and outputs of order one: queries, keys, values
and outputs have N(0, 1/d) entries, the perceptron's layers (ReLU) N(0, 2/d) and N(0, 1/width). The first k blocks do
not depend on the depth, so a network of depth k is what one of depth 24 has after k layers.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention.attention_view import Sight
from wordsway.maps.attention.scores.base import find
from wordsway.maps.base import RANDOM_SPREAD, FeatureMap, View
from wordsway.maps.recipe_numbers import check_depth, check_temperature
from wordsway.support.cancelling import Cancel, ask_around
from wordsway.support.errors import InputError
from wordsway.support.memory import require
from wordsway.support.names import SCORES
from wordsway.support.plain_checks import check_size
from wordsway.support.public_gate import public
from wordsway.support.seeds import normal

NORMS = ("pre", "post", "none")
POSITIONS = ("none", "sinusoidal", "rope")


@public
@dataclass(frozen=True)
class RandomTransformer:
    """A recipe. `norm` is "pre", "post" or "none" (LayerNorm without weights of its own), `position` "none",
    "sinusoidal" (added to X) or "rope" (queries and keys rotated); `mlp_ratio` is the perceptron's width in units of d,
    0 for none. `score` is one of `RandomAttention`'s but linear, over logits divided by `temperature`. The width d may
    also be given to `sample`."""

    depth: int = 1
    heads: int = 1
    d: int | None = None
    mlp_ratio: int = 4
    norm: str = "pre"
    residual: bool = True
    position: str = "none"
    score: str = "softmax"
    temperature: float = 1.0
    causal: bool = False

    def __post_init__(self) -> None:
        check_depth(self.depth)
        check_size(self.heads, "heads")
        check_size(self.mlp_ratio, "mlp_ratio", least=0)
        for name in ("residual", "causal"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, got {getattr(self, name)!r}", argument=name)
        SCORES.check(self.score)
        for name, known in (("norm", NORMS), ("position", POSITIONS)):
            if getattr(self, name) not in known:
                raise InputError(f"{name}={getattr(self, name)!r} is not known; use one of: {', '.join(known)}", name)
        check_temperature(self.temperature)
        if self.d is not None:
            self.check_width(check_size(self.d, "d"))

    def check_width(self, d: int) -> None:
        """Raise an InputError unless texts may have d coordinates."""
        if d % self.heads:
            raise InputError(f"heads={self.heads} does not divide d={d}", argument="heads")
        if self.position == "rope" and d // self.heads % 2:
            raise InputError(f"rope rotates pairs of coordinates, but d={d} with heads={self.heads} gives each head "
                             f"{d // self.heads}, an odd number")  # fmt: skip
        if self.position == "sinusoidal" and d % 2:
            raise InputError(f"sinusoidal positions are pairs of sine and cosine, but d={d} is odd")

    def sample(self, d: int | None = None, seed: int = 0, *, n: int | None = None) -> "Transformer":
        """Draw all weights. Texts may have any length; n is only checked where given."""
        if d is not None and self.d is not None and d != self.d:
            raise InputError(f"the recipe has d={self.d}, so it cannot be sampled for d={d}")
        d = self.d if d is None else check_size(d, "d")
        if d is None:
            raise InputError("d is missing: give it to the recipe or to sample(d=...)", argument="d")
        self.check_width(d)
        check_size(seed, "seed", least=0)
        if n is not None:
            check_size(n, "n")
        numbers = self.depth * d * d * (4 + 2 * self.mlp_ratio)
        require(8.0 * 2 * numbers, f"a transformer of {numbers:,} weights", "use a smaller d, depth or mlp_ratio")
        blocks = [_Block.draw(d, self.mlp_ratio, seed, layer) for layer in range(self.depth)]
        return Transformer(replace(self, d=d), blocks, n, seed)


@dataclass(frozen=True)
class _Block:
    """The weights of one block; they act on rows from the right."""

    qkv: Float[Tensor, "d d3"]
    out: Float[Tensor, "d d"]
    up: Float[Tensor, "d w"]
    down: Float[Tensor, "w d"]

    @staticmethod
    def draw(d: int, ratio: int, seed: int, layer: int) -> "_Block":
        def gaussian(rows: int, cols: int, variance: float, name: str) -> Tensor:
            drawn = normal((rows, cols), seed, "random_transformer", layer, name, dtype=torch.float64)
            return drawn * math.sqrt(variance)

        width = ratio * d
        return _Block(
            gaussian(d, 3 * d, 1 / d, "qkv"),
            gaussian(d, d, 1 / d, "out"),
            gaussian(d, width, 2 / d, "up"),
            gaussian(width, d, 1 / max(1, width), "down"),
        )

    def to(self, like: Tensor) -> "_Block":
        return _Block(*(part.to(like) for part in (self.qkv, self.out, self.up, self.down)))


class Transformer(FeatureMap):
    """RandomTransformer with weights, kept in float64. phi(X) is the state (n, d) after the last block."""

    search_spread = RANDOM_SPREAD

    def __init__(self, recipe: RandomTransformer, blocks: Sequence[_Block], n: int | None, seed: int) -> None:
        self.recipe, self.blocks, self.n, self.seed = recipe, blocks, n, seed
        self.d = recipe.d
        self.score = find(recipe.score)
        self.sight = Sight(recipe.causal)
        self._cast: tuple[tuple[torch.device, torch.dtype], list[_Block]] | None = None
        self._cancel: Cancel | None = None

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        self.check(X)
        require(self.plain_bytes(*X.shape), f"a transformer over n={len(X)} tokens", "use a shorter text")
        return self.states(X[None])[0]

    def features(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
        if len(texts):
            self.check(texts[0])
        return torch.cat([self.states(part).flatten(1) for part in texts.split(8)]) if len(texts) else texts.flatten(1)

    def weights(self, like: Tensor) -> list[_Block]:
        """The blocks where and as a tensor is; the last cast is kept."""
        key = (like.device, like.dtype)
        if self._cast is None or self._cast[0] != key:
            self._cast = (key, [block.to(like) for block in self.blocks])
        return self._cast[1]

    def states(self, X: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """The state after the last block, by the definition."""
        *_, last = self._after_each(X)
        return last

    def states_of(self, X: Float[Tensor, "n d"]) -> list[Float[Tensor, "n d"]]:
        self.check(X)
        return [state[0] for state in self._after_each(X[None])]

    def _after_each(self, X: Float[Tensor, "b n d"]) -> Iterator[Float[Tensor, "b n d"]]:
        x = self.enter(X)
        yield x
        for block in self.weights(X):
            q, k, v = self.project(block, x)
            x = self.leave(block, x, self.attend(q, k, v))
            yield x

    def attention_to(self, X: Float[Tensor, "n d"], tokens: Sequence[int]) -> Float[Tensor, " n"]:
        q, k, _ = self.project(self.weights(X)[0], self.enter(X))
        marks = torch.zeros(len(X), 1, dtype=X.dtype, device=X.device)
        marks[list(tokens)] = 1.0
        return self.attend(q, k, marks).mean(0)[:, 0]

    def enter(self, X: Float[Tensor, "*b n d"], first: int = 0) -> Float[Tensor, "*b n d"]:
        """Rows as the first block gets them; `first` is the place of the first one."""
        if self.recipe.position != "sinusoidal":
            return X
        return X + _sinusoids(torch.arange(first, first + X.shape[-2], device=X.device), X.shape[-1]).to(X)

    def project(
        self, block: _Block, x: Float[Tensor, "*b s d"], places: Tensor | None = None
    ) -> tuple[Float[Tensor, "*b h s e"], Float[Tensor, "*b h s e"], Float[Tensor, "*b h s e"]]:
        """Queries (scaled), keys and values of some rows, for each head; `places` are where they stand (0, 1, ...
        unless given)."""
        recipe = self.recipe
        x = _normed(x) if recipe.norm == "pre" else x
        parts = (x @ block.qkv).unflatten(-1, (3, recipe.heads, -1)).movedim(-3, 0).transpose(-2, -3)
        q, k, v = parts.unbind(0)
        if recipe.position == "rope":
            places = torch.arange(x.shape[-2], device=x.device) if places is None else places
            q, k = _rotated(q, places), _rotated(k, places)
        return q / (recipe.temperature * math.sqrt(q.shape[-1])), k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Float[Tensor, "*b h s e"]:
        """Compute attention for the last rows of a text: q may have fewer rows than k and v."""
        places = torch.arange(k.shape[-2], device=k.device)
        logits = self.sight.hide(q @ k.mT, places[len(places) - q.shape[-2] :], places)
        return self.score.normalize(logits) @ v

    def leave(
        self, block: _Block, x: Float[Tensor, "*b s d"], seen: Float[Tensor, "*b h s e"]
    ) -> Float[Tensor, "*b s d"]:
        """The rest of a block, row by row."""
        ask_around(x, self._cancel)
        x = self._add(x, seen.transpose(-2, -3).flatten(-2) @ block.out)
        if self.recipe.mlp_ratio == 0:
            return x
        inside = _normed(x) if self.recipe.norm == "pre" else x
        return self._add(x, torch.relu(inside @ block.up) @ block.down)

    def _add(self, x: Tensor, new: Tensor) -> Tensor:
        both = x + new if self.recipe.residual else new
        return _normed(both) if self.recipe.norm == "post" else both

    def make_view(self, X: Tensor, tokens: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> View:
        from wordsway.maps.transformer.transformer_view import TransformerView  # which needs the map itself

        require(
            self.plain_bytes(*X.shape) + 8.0 * X.numel() * 4 * self.recipe.depth,
            f"a view of n={len(X)} tokens",
            "use a shorter text",
        )
        return TransformerView(self, X, tokens, dtype, device)

    @contextmanager
    def cancellable(self, cancel: Cancel | None) -> Iterator[None]:
        before, self._cancel = self._cancel, cancel
        try:
            yield
        finally:
            self._cancel = before

    def side_by_side(self, n: int, d: int, m: int) -> int:
        return 1

    def plain_bytes(self, n: int, d: int) -> float:
        return 8.0 * (n * d * (8 + 2 * self.recipe.mlp_ratio) + 3 * self.recipe.heads * n * n)

    def config(self) -> dict[str, Any]:
        return {"map": "transformer", **vars(self.recipe), "seed": self.seed}


def _normed(x: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def _sinusoids(places: Tensor, d: int) -> Float[Tensor, "s d"]:
    angles = places[:, None].double() / 10_000 ** (torch.arange(0, d, 2, device=places.device).double() / d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def _rotated(x: Float[Tensor, "*b h s e"], places: Tensor) -> Float[Tensor, "*b h s e"]:
    """Each pair of coordinates (k, k + e/2) turned by its place times its own frequency."""
    half = x.shape[-1] // 2
    angles = places[:, None].double() / 10_000 ** (torch.arange(half, device=x.device).double() / half)
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
