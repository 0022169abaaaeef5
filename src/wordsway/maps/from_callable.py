"""A map of your own: any function or module that takes a text (n, d) to features."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap, PlainView, View
from wordsway.support.cancelling import Cancel, asked_by_modules
from wordsway.support.errors import InputError, one_line
from wordsway.support.public_gate import public

_WAYS = ("auto", "vmap", "whole", "loop")
_TOLERANCE = 1e-4  # relative: by how much one text alone and the same in a batch may differ, as float32 rounds
_CHANCY = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase)


@public
class FromCallable(FeatureMap):
    """phi(X) = function(X), any differentiable function or `torch.nn.Module` from (n, d) to features of any shape.

    A module is run in the precision and on the device of its weights, which get no gradients; it has to give the same
    answer twice (call `.eval()` where it has dropout). A function is run in the precision of the search and in float64
    at the end, or in the one of the two that it can do. There is no structure to use, so a move costs a whole
    evaluation; `batch` says how many are made at once: "whole" (the function takes (b, n, d) itself), "vmap" (torch
    turns it into one that does), "loop", or "auto": "vmap" where that works and gives the same features, else "loop".
    `n` and `d` are the sizes that it is made for, where it is.
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        *,
        name: str | None = None,
        n: int | None = None,
        d: int | None = None,
        batch: str = "auto",
    ) -> None:
        if not callable(function):
            raise InputError(f"a map is a function or a module that takes a text, got {type(function).__name__}")
        if batch not in _WAYS:
            raise InputError(f"batch={batch!r} is not known; use one of: {', '.join(_WAYS)}", argument="batch")
        self.function, self.n, self.d = function, n, d
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self._way = None if batch == "auto" else batch
        module = function if isinstance(function, torch.nn.Module) else None
        if module is not None and any(part.training and isinstance(part, _CHANCY) for part in module.modules()):
            raise InputError(f"{self.name} is in training mode, with dropout or batch statistics; call .eval() first")
        weights = [] if module is None else list(module.parameters())
        floating = [part for part in weights if part.is_floating_point()]
        self._weights = [part for part in weights if part.requires_grad]
        self._home = (floating[0].device, floating[0].dtype) if floating else None
        self._tried = False

    def __call__(self, X: Float[Tensor, "n d"]) -> Tensor:
        self.check(X)
        self._try(X)
        return self._one(X).detach()

    def features(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
        if len(texts):
            self.check(texts[0])
        return self._batched(texts).detach()

    def make_view(self, X: Tensor, tokens: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> View:
        self._try(X.to(device, dtype))
        return PlainView(self._batched, X, tokens, dtype, device)

    def cancellable(self, cancel: Cancel | None) -> AbstractContextManager[None]:
        return asked_by_modules(self.function, cancel) if isinstance(self.function, torch.nn.Module) else nullcontext()

    def side_by_side(self, n: int, d: int, m: int) -> int:
        return 1

    @property
    def plain_precision(self) -> str:
        return "float64" if self._home is None else str(self._home[1]).removeprefix("torch.")

    def config(self) -> dict[str, Any]:
        return {"map": self.name, "batch": self._way or "auto"}

    def _run(self, function: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
        """The function where its weights are, without gradients for these."""
        there = X if self._home is None else X.to(*self._home)
        version = there._version
        for part in self._weights:
            part.requires_grad_(False)
        try:
            found = function(there)
        finally:
            for part in self._weights:
                part.requires_grad_(True)
        if there._version != version:
            raise InputError(f"{self.name} writes into the text that it is given; it has to make a new tensor")
        if not isinstance(found, Tensor) or found.is_sparse or not found.is_floating_point():
            kind = f"a {found.layout} tensor of {found.dtype}" if isinstance(found, Tensor) else type(found).__name__
            raise InputError(f"{self.name} must give a dense tensor of real numbers, got {kind}")
        if not found.numel():
            raise InputError(f"{self.name} gives no features: a tensor of shape {tuple(found.shape)}")
        return found if self._home is None else found.to(X.device, X.dtype)

    def _one(self, X: Float[Tensor, "n d"]) -> Tensor:
        return self._run(self.function, X[None])[0] if self._way == "whole" else self._run(self.function, X)

    def _batched(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
        if len(texts):
            self._try(texts[0])
        if self._way == "whole":
            found = self._run(self.function, texts)
            if found.dim() < 1 or len(found) != len(texts):
                raise InputError(
                    f"{self.name} gave features of shape {tuple(found.shape)} for {len(texts)} texts; batch='loop' "
                    "gives it one text at a time"
                )
            return found.reshape(len(texts), -1)
        if self._way == "vmap":
            return self._run(torch.func.vmap(self.function), texts).reshape(len(texts), -1)
        rows = [self._run(self.function, text).flatten() for text in texts]
        if len({len(row) for row in rows}) > 1:
            raise InputError(f"{self.name} gives as many features as suits the text, but they must be as many for all")
        return torch.stack(rows)

    def _try(self, X: Float[Tensor, "n d"]) -> None:
        """Find out, once, in which precision and how many at a time; refuse what cannot be measured."""
        if self._tried:
            return
        if self._home is None:
            self._home = self._precision(X)
        once, again = self._checked(X).flatten(), self._checked(X).flatten()
        if not torch.equal(once, again) and not bool(torch.isnan(once).any()):
            raise InputError(f"{self.name} gives two answers to one text; is it in training mode? call .eval() first")
        if not bool(torch.isfinite(once).all()):
            raise InputError(f"{self.name} gives features that are NaN or infinite for this text")
        with torch.enable_grad():
            if not self._checked(X.detach().clone().requires_grad_(True)).requires_grad:
                raise InputError(f"{self.name} is not differentiable in the text: it has no gradient to search along")
        if self._way is None:
            self._way = "vmap" if self._same_by_vmap(X, once) else "loop"
        self._tried = True

    def _precision(self, X: Tensor) -> tuple[torch.device, torch.dtype] | None:
        """The one precision that a function can do, where it cannot do both: it may hold tensors of its own."""
        other = torch.float64 if X.dtype == torch.float32 else torch.float32
        works = []
        for dtype in (X.dtype, other):
            try:
                self._one(X.to(dtype))
                works.append(dtype)
            except Exception:  # which is told below, where neither works
                continue
        return (X.device, works[0]) if len(works) == 1 else None

    def _checked(self, X: Float[Tensor, "n d"]) -> Tensor:
        """A first run, of which any error is the user's to see in one line."""
        try:
            return self._one(X)
        except InputError:
            raise
        except Exception as error:  # a user's function may raise anything
            shape = (1, *X.shape) if self._way == "whole" else tuple(X.shape)
            hint = "" if self._way == "whole" else "; if it takes a batch (b, n, d), say batch='whole'"
            raise InputError(f"{self.name} fails on a text of shape {shape}: {one_line(error)}{hint}") from error

    def _same_by_vmap(self, X: Tensor, alone: Tensor) -> bool:
        try:
            both = self._run(torch.func.vmap(self.function), torch.stack([2 * X, X]))
        except Exception:  # whatever of the function vmap does not know
            return False
        return bool((both[1].flatten() - alone).norm() <= _TOLERANCE * alone.norm())


def as_map(phi: Any, called: str = "phi") -> FeatureMap:
    """Return a feature map as it is, and any other function of a text as a map of one's own. `called` is the name of
    the argument that the user gave it as."""
    if isinstance(phi, FeatureMap):
        return phi
    if hasattr(phi, "sample"):
        raise InputError(f"{phi!r} is a recipe without weights; call its sample(...) first")
    if not callable(phi):
        what = "a feature map or a function of a text" if called == "phi" else "one model, map or function of a text"
        message = f"{called} must be {what}, got {type(phi).__name__}"
        if isinstance(phi, list | tuple):
            message += "; to compare several, measure each of them and give the results to compare_results"
        raise InputError(message, argument=called)
    return FromCallable(cast(Callable[[Tensor], Tensor], phi))
