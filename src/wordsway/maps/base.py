"""The abstractions: a feature map, a text prepared for it, and a view of that text with a few tokens free to move.

Index conventions: X (n, d) is the text; m tokens of it move; delta (*batch, m, d) is how they move; the features are
flattened to one axis.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad

from wordsway.maps.ascents import Ascent, many_maxima
from wordsway.support.cancelling import Cancel
from wordsway.support.devices import precise
from wordsway.support.errors import InputError, one_line
from wordsway.support.plain_checks import check_tokens
from wordsway.tokens import Tokens

InnerProducts = Callable[[Tensor], Tensor]
_GROUP_NUMBERS = 12_000_000  # in all views of tokens that are searched side by side: bounds their memory
_MOST_VIEWS = 32  # searched side by side, however small the text: so many share the overhead of a step
# By how much the search's answer for one token varies over seeds and processors, relative to it: measured by
# `python benchmarks/steadiness.py`, see docs/benchmarks.md.
TRAINED_SPREAD = 0.09  # of a pre-trained model; the largest measured is 8.3%
RANDOM_SPREAD = 0.03  # of a random transformer
_MOVES_BYTES = 2**28  # of given moves that are evaluated at once: enough to keep a processor busy, little of its memory
_BATCH_BYTES = 2**26  # of texts that a map without structure evaluates at once: few enough to stay in cache


class View(ABC):
    """The change of the features when some tokens of one text move: all that a search or an objective sees of a map.

    Everything that does not depend on delta was paid for when the view was made. All methods are differentiable.
    """

    X: Tensor  # the text, float64 on the CPU
    tokens: tuple[int, ...]
    dtype: torch.dtype  # of delta and of all results
    device: torch.device
    base_norm: float  # norm(phi(X)), from float64
    sphere_is_enough: bool = False  # proven: over a ball, the largest change is found on its sphere
    costly: bool = False  # every evaluation is one of the whole map, or of several layers of it
    # Good places belong to the model more than to a token, so tokens are searched from where others ended.
    shares_places: bool = False
    no_certificate: str = "no certificate is known for this map"  # said where none is registered for the view

    @abstractmethod
    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        """norm(phi(X + delta) - phi(X))^2."""

    @abstractmethod
    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        """The function delta -> (*batch, q): inner products of the change with fixed targets."""

    @abstractmethod
    def change(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch features"]:
        """phi(X + delta) - phi(X): the reference for the other two."""

    def ascent(self) -> Ascent:
        """Say which search suits the view."""
        return many_maxima(self.X.numel(), self.costly)

    @property
    def evaluations_left(self) -> int | None:
        """The number of deltas (with a gradient) that the view can still take; None for no limit."""
        return None

    def settle(self) -> None:  # noqa: B027
        """Get ready for long or many searches: reveal now what they would reveal bit by bit, where that fits."""

    @property
    def bytes_per_evaluation(self) -> int:
        """A rough size of what one delta of a batch needs while it is evaluated."""
        return 16 * self.X.numel()

    def relative_changes(self, deltas: Float[Tensor, "k m d"]) -> Float[Tensor, " k"]:
        """Compute norm(phi(X + delta) - phi(X)) / norm(phi(X)) for many deltas, in batches; float64 on the CPU."""
        size = max(1, _MOVES_BYTES // self.bytes_per_evaluation)
        squares = [torch.empty(0, dtype=torch.float64)]
        with torch.no_grad():
            for part in deltas.to(self.device, self.dtype).split(size) if len(deltas) else ():
                squares.append(self.sq_norm(part).to("cpu", torch.float64))
        return torch.cat(squares).sqrt() / self.base_norm

    def derivative(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch features"]:
        """The derivative of `change` at 0 along delta, by forward differentiation: what is left of the change where
        delta is so small that a difference of features would be rounding."""
        try:
            with torch.no_grad(), forward_ad.dual_level(), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, about how it loads its formulas
                change = self.change(forward_ad.make_dual(torch.zeros_like(delta), delta))
                tangent = forward_ad.unpack_dual(change).tangent
        except (NotImplementedError, RuntimeError) as error:  # torch raises either where an operation has no such rule
            reason = one_line(error).split(". ")[0][:120]
            raise InputError(
                f"radius is too small for a difference of features, and this map has no derivative ({reason}); use at "
                f"least 1e-6 of a token's norm",
                argument="radius",
            ) from error
        return torch.zeros_like(change) if tangent is None else tangent

    def starts(self) -> Float[Tensor, "s m d"]:
        """Directions that the mathematics of the map suggests for a search; may be none."""
        m, d = len(self.tokens), self.X.shape[1]
        return torch.empty(0, m, d, dtype=self.dtype, device=self.device)


class Prepared(ABC):
    """A text under a map, with all that its views share already computed: `phi.prepare(X)` pays for a text, `view` for
    the tokens that may move.

    The device belongs to the text and the precision to a view: what views share is computed once, in float64, where the
    search will run, and a measurement asks for views of one text in two precisions, one for the search and float64
    for the last digits. The text is a copy, so writing to X afterwards changes nothing here.
    """

    def __init__(self, phi: "FeatureMap", X: Float[Tensor, "n d"], device: torch.device) -> None:
        self.phi, self.X, self.device = phi, X, device

    def view(self, tokens: Sequence[int], *, dtype: torch.dtype = torch.float64) -> View:
        """Make the view of some tokens."""
        return self.make_view(check_tokens(tokens, len(self.X)), dtype)

    @abstractmethod
    def make_view(self, tokens: tuple[int, ...], dtype: torch.dtype) -> View:
        """Make the view of checked tokens; `view` is for callers, this for maps."""

    def features(self) -> Float[Tensor, " features"]:
        """phi(X), flattened."""
        return self.phi(self.X.to(precise(self.device))).flatten()


class Unshared(Prepared):
    """A text under a map whose views share nothing: each is made by the map's own `make_view`."""

    def make_view(self, tokens: tuple[int, ...], dtype: torch.dtype) -> View:
        return self.phi.make_view(self.X, tokens, dtype, self.device)


class FeatureMap(ABC):
    """phi: texts to features, with its weights drawn. Recipes that draw weights have a `sample` method instead."""

    n: int | None  # the context length it is made for; None for any
    d: int | None
    copies: int = 1  # about how many features there are for each number of a text
    # By how much the search's answer for one token varies over seeds and processors; 0: not in the digits shown.
    search_spread: float = 0.0

    @property
    def remembers(self) -> bool:
        """Whether answers depend on what was asked before, so that the order of questions matters."""
        return False

    @abstractmethod
    def __call__(self, X: Float[Tensor, "n d"]) -> Tensor:
        """phi(X), by the plain definition."""

    def features(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
        """phi of many texts of one length, flattened. They are asked of a map that remembers in their order."""
        return torch.stack([self(text).flatten() for text in texts])

    def view(
        self,
        X: Float[Tensor, "n d"],
        tokens: Sequence[int],
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> View:
        """Make one view of a text; for several views of it, `prepare` the text first."""
        return self.prepare(X, device=device).view(tokens, dtype=dtype)

    def prepare(self, X: Float[Tensor, "n d"], *, device: torch.device | str = "cpu") -> Prepared:
        """Pay once for a text: compute what its views share."""
        self.check(X)
        return self.make_prepared(X.detach().clone(), torch.device(device))

    def make_prepared(self, X: Tensor, device: torch.device) -> Prepared:
        """Prepare a checked text. A map whose views share something overrides this, any other one `make_view`."""
        return Unshared(self, X, device)

    def make_view(self, X: Tensor, tokens: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> View:
        """Make the view of a checked text that shares nothing with others; `view` is for callers, this for maps."""
        raise NotImplementedError(f"{type(self).__name__} has neither make_prepared nor make_view")

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Describe the map as JSON values."""

    def attention_to(self, X: Float[Tensor, "n d"], tokens: Sequence[int]) -> Float[Tensor, " n"] | None:
        """The weight that every token gives to some in the first layer, averaged over heads; None without attention."""
        return None

    def states_of(self, X: Float[Tensor, "n d"]) -> Sequence[Tensor] | None:
        """Return the states after each layer of the map, the text itself first; None for a map without layers."""
        return None

    def excerpt(self, n: int) -> Sequence[int] | None:
        """Rows of a text of n tokens that make a shorter text, on which a search may learn what is worth trying on the
        whole one; None where there is no such text, or where it would save nothing."""
        return None

    def landmark_texts(self) -> tuple[str, Sequence[Tokens]] | None:
        """A name that no other map has, and short texts of several words on which a search may learn, once for all,
        where the map is sensitive; None where it is not worth it, or where the map has no such name."""
        return None

    def sq_norms(self, views: Sequence[View]) -> Callable[[Tensor], Tensor]:
        """The function (g, *batch, m, d) -> (g, *batch) that evaluates g views of one text at once."""
        return lambda delta: torch.stack([view.sq_norm(part) for view, part in zip(views, delta, strict=True)])

    def scored(
        self, views: Sequence[View], targets: Float[Tensor, "q features"] | None, score: Callable[[Tensor], Tensor]
    ) -> Callable[[Tensor], Tensor]:
        """The function (g, *batch, m, d) -> (g, *batch): `score` takes the inner products of each change with fixed
        targets, or the changes themselves where these are None, to a number; g views of one text at once."""
        read = [view.change if targets is None else view.inner_products(targets) for view in views]
        return lambda delta: torch.stack([score(one(part)) for one, part in zip(read, delta, strict=True)])

    def side_by_side(self, n: int, d: int, m: int) -> int:
        """Count the searches of m tokens that share their steps: a single one on a small text is mostly overhead."""
        return 1 if self.remembers else max(1, min(_MOST_VIEWS, _GROUP_NUMBERS // (m * (n * d + d**2))))

    def plain_bytes(self, n: int, d: int) -> float | None:
        """Memory for the plain definition in float64; None where there is no plain map to evaluate."""
        return 64.0 * n * d

    @property
    def plain_precision(self) -> str:
        """In which precision the plain definition is evaluated."""
        return "float64"

    def cancellable(self, cancel: Cancel | None) -> AbstractContextManager[None]:
        """Have `cancel` called within single evaluations too, for as long as the context lasts. A search calls it
        between evaluations; this is for maps of which one evaluation may take a second or more."""
        return nullcontext()

    def check_tokens(self, tokens: Tokens) -> None:  # noqa: B027
        """Raise an InputError where an encoded text was not made for this map."""

    def check(self, X: Float[Tensor, "n d"]) -> None:
        """Raise an InputError unless X has the shape that the map is made for."""
        n, d = X.shape
        if self.d is not None and d != self.d:
            raise InputError(f"X has d={d} coordinates a token, but the map was made for d={self.d}")
        if self.n is not None and n != self.n:
            raise InputError(f"X has n={n} tokens, but the map was made for n={self.n}")


def moved(X: Tensor, tokens: Sequence[int], delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch n d"]:
    """X with delta added to the rows `tokens`."""
    index = torch.tensor(list(tokens), device=delta.device)
    X = X.to(delta.device, delta.dtype).expand(*delta.shape[:-2], *X.shape)
    return X.index_add(-2, index, delta)


class PlainView(View):
    """The view of a map without structure: every delta is a whole evaluation of the map, in batches."""

    costly = True

    def __init__(
        self,
        features: Callable[[Tensor], Tensor],
        X: Float[Tensor, "n d"],
        tokens: Sequence[int],
        dtype: torch.dtype,
        device: torch.device | str,
        bytes_of_a_text: float | None = None,
    ) -> None:
        """`features` takes texts (b, n, d) to (b, features), differentiably; `bytes_of_a_text` is what one of them
        needs with its gradient (16 copies of the text unless given)."""
        self.features, self.X, self.tokens = features, X, check_tokens(tokens, len(X))
        self.dtype, self.device = dtype, torch.device(device)
        self._base = features(X.to(device, dtype)[None])[0]
        self.base_norm = float(self._base.double().norm())
        self._bytes = bytes_of_a_text or 16.0 * dtype.itemsize * X.numel()
        self._size = max(1, int(_BATCH_BYTES / self._bytes))

    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        return self.change(delta).square().sum(-1)

    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        fixed = targets.to(self.device, self.dtype)
        return lambda delta: self.change(delta).to(self.dtype) @ fixed.T  # a function may not keep the dtype

    def change(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch features"]:
        flat = delta.reshape(-1, *delta.shape[-2:])
        parts = [self.features(moved(self.X, self.tokens, part)) for part in flat.split(self._size)]
        return (torch.cat(parts) - self._base).reshape(*delta.shape[:-2], -1)

    @property
    def bytes_per_evaluation(self) -> int:
        return int(self._bytes)
