"""One head or several, side by side: the features are those of all heads, one after the other."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.ascents import Ascent
from wordsway.maps.attention import one_token
from wordsway.maps.attention.attention_view import AttentionView, CaptureView, CastText, Text
from wordsway.maps.base import FeatureMap, InnerProducts, Prepared, View


class AttentionText(Prepared):
    """A text under all heads of a layer, in float64 and in every precision that a view was made in so far."""

    def __init__(self, phi: FeatureMap, X: Float[Tensor, "n d"], device: torch.device, texts: Sequence[Text]) -> None:
        super().__init__(phi, X, device)
        self.texts = texts
        self._cast: dict[torch.dtype, list[CastText]] = {}

    def make_view(self, tokens: tuple[int, ...], dtype: torch.dtype) -> View:
        if dtype not in self._cast:
            self._cast[dtype] = [CastText(text, dtype) for text in self.texts]
        heads = [AttentionView(cast, tokens) for cast in self._cast[dtype]]
        return heads[0] if len(heads) == 1 else HeadsView(heads)


class HeadsView(View):
    """Views of one text under each head. A change's square is the sum of theirs, an inner product too."""

    def __init__(self, heads: Sequence[CaptureView]) -> None:
        self.heads = heads
        first = heads[0]
        self.X, self.tokens, self.dtype, self.device = first.X, first.tokens, first.dtype, first.device
        self.base_norm = sum(head.base_norm**2 for head in heads) ** 0.5

    def sq_norm(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
        return torch.stack([head.sq_norm(delta) for head in self.heads]).sum(0)

    def change(self, delta: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch features"]:
        return torch.cat([head.change(delta) for head in self.heads], -1)

    def inner_products(self, targets: Float[Tensor, "q features"]) -> InnerProducts:
        parts = targets.chunk(len(self.heads), -1)
        products = [head.inner_products(part) for head, part in zip(self.heads, parts, strict=True)]
        return lambda delta: torch.stack([product(delta) for product in products]).sum(0)

    def starts(self) -> Float[Tensor, "s m d"]:
        """All that one head suggests, with the sum over heads first: capture by all of them together."""
        each = torch.stack([head.starts() for head in self.heads])  # shape: (h, s, m, d)
        unit = each / each.flatten(2).norm(dim=2)[..., None, None].clamp(min=1e-30)
        return torch.cat([unit.sum(0), each.transpose(0, 1).flatten(0, 1)])

    def ascent(self) -> Ascent:
        return self.heads[0].ascent()

    @property
    def bytes_per_evaluation(self) -> int:
        return sum(head.bytes_per_evaluation for head in self.heads)


def sq_norms(views: Sequence[HeadsView]) -> Callable[[Tensor], Tensor]:
    """(g, *batch, 1, d) -> (g, *batch) for views that each move one token: head by head, all views at once."""
    parts: list[Callable[[Tensor], Tensor]] = []
    for heads in zip(*(view.heads for view in views), strict=True):
        parts.append(one_token.sq_norms([head for head in heads if isinstance(head, AttentionView)]))
    return lambda delta: torch.stack([part(delta) for part in parts]).sum(0)
