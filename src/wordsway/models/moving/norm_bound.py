"""Upper bounds for pre-trained models: rows that a norm gives lie in an ellipsoid, whatever happens before it.

The bound holds for moves of any size, for all words of a bidirectional model at once, and is loose for small radii. It
is about the model as it runs: the norm's own rounding widens the ellipsoid (`final_norm`), sums and heads after it add
theirs. Proofs: docs/mathematics/norms.md.

Index conventions: rows (n, d) of the norm, of which the first `kept` do not change; features are flattened.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.base import Certificate
from wordsway.certificates.ellipsoid_bound import Ellipsoid, back, times
from wordsway.models.moving.endings import Ending
from wordsway.models.moving.final_norm import inner_roundoff, roundoff
from wordsway.models.moving.map import PretrainedText, PretrainedView
from wordsway.models.moving.output_head import OutputHead
from wordsway.support.errors import InputError

_MARGIN = 1e-9  # relative, for the last few operations in float64
_CHUNK = 4096  # logits whose ranges are computed at once: a vocabulary's weights would not fit in float64


def certify_pretrained(view: PretrainedView, radius: float) -> Certificate:
    """Bound the change of an output that ends in a norm, over moves of the view's tokens of any size."""
    ending = view.text.ending
    if isinstance(ending, str):
        return Certificate(None, 0.0, ending)
    kept, bounds = _kept(ending, view.tokens), view.text.bounds
    if kept not in bounds:
        bounds[kept] = _most_change(view.text, ending, kept)
    most = bounds[kept] + _drift(view)
    return Certificate(most / view.base_norm * (1 + _MARGIN + 2 * roundoff(view.dtype)))


def projected_ranges(view: PretrainedView, directions: Tensor) -> tuple[Tensor, Tensor] | str:
    """The certified lowest and highest value of directions (k, features) @ phi(X + any move of the view's tokens), in
    float64; or the reason why there is none."""
    ranges = ranges_of(view.text, view.tokens, directions)
    if isinstance(ranges, str):
        return ranges
    off = _drift(view) * directions.to("cpu", torch.float64).norm(dim=1)
    return ranges[0] - off, ranges[1] + off


def _drift(view: PretrainedView) -> float:
    """Measure by how much a run that resumes after unmoved tokens rounds otherwise than a whole one."""
    return float((view.base - view.text.base).cpu().double().norm())


def ranges_of(text: PretrainedText, tokens: tuple[int, ...], directions: Tensor) -> tuple[Tensor, Tensor] | str:
    """Compute `projected_ranges` without a view."""
    ending = text.ending
    if isinstance(ending, str):
        return ending
    v = directions.to("cpu", torch.float64)
    if v.dim() != 2 or v.shape[1] != text.base.numel():
        raise InputError(f"directions must have the shape (k, {text.base.numel()}), got {tuple(v.shape)}", "directions")
    low, high = _ranges(text, ending, tokens, v)
    return low - _MARGIN * low.abs(), high + _MARGIN * high.abs()


@dataclass(frozen=True, eq=False)
class _Vector:
    """One vector that is read off the rows: fixed + share * y with y in the ellipsoid, each entry of it rounded by at
    most `grain` of the mean size of that entry in the rows."""

    norm: Ellipsoid
    fixed: Float[Tensor, " d"]
    share: float
    grain: float

    def ranges(self, v: Float[Tensor, "q d"]) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
        """The ranges of inner products with it."""
        low, high = self.norm.ranges(v)
        middle, off = v @ self.fixed, self.grain * self.norm.sizes(v)
        return middle + self.share * low - off, middle + self.share * high + off

    def sizes(self, v: Float[Tensor, "q d"]) -> Float[Tensor, " q"]:
        """Bound sum_k |v_k y_k|; fixed rows are rows of the ellipsoid as well."""
        return self.norm.sizes(v) * (1 + self.grain)


def _kept(ending: Ending, tokens: tuple[int, ...]) -> int:
    """Count the rows that no move of these tokens changes; 0 where only the last row is read."""
    return min(tokens) if ending.keeps_past and ending.reads != "last" else 0


def _vector(text: PretrainedText, ending: Ending, kept: int) -> _Vector:
    """The vector that an output or a head reads, when the first `kept` rows stay."""
    n, norm = len(text.rows), ending.norms[0]
    fixed = torch.zeros(len(norm.beta), dtype=torch.float64)
    if ending.reads == "first" and kept:
        rows = ending.rows(text.model, text.output, text.rows, text.at)
        return _Vector(norm, rows[0], 0.0, 0.0)
    if ending.reads != "mean":
        return _Vector(norm, fixed, 1.0, 0.0)
    if kept:
        fixed = ending.rows(text.model, text.output, text.rows, text.at)[:kept].sum(0) / n
    dtype = text.base.dtype
    # A sum of n rows in float32 or better, then rounded as the output is.
    return _Vector(norm, fixed, (n - kept) / n, roundoff(dtype) + (n + 2) * inner_roundoff(dtype))


def _most_change(text: PretrainedText, ending: Ending, kept: int) -> float:
    """Bound norm(phi(X + move) - phi(X)) where the first `kept` rows stay."""
    base = text.base.to("cpu", torch.float64)
    if ending.reads == "sizes":
        low, high = _size_ranges(ending.norms[0], base, kept, text.base.dtype)
        return float(torch.maximum(high - base, base - low).norm())
    if ending.reads == "rows":
        rows = _by_state(ending, base[None])[0]
        most = [norm.furthest(state[kept:]) for norm, state in zip(ending.norms, rows, strict=True)]
        return float(torch.cat(most).norm())
    vector = _vector(text, ending, kept)
    if vector.share == 0:
        return 0.0
    if ending.head is None:
        point = (base - vector.fixed) / vector.share
        return vector.share * float(vector.norm.furthest(point[None])[0]) + vector.grain * vector.norm.largest
    return _most_of_logits(vector, ending.head, base)


def _most_of_logits(vector: _Vector, head: OutputHead, base: Float[Tensor, " k"]) -> float:
    """Bound the change of all logits together: by the range of each and, without a hidden layer, by the ellipsoid's
    image under the head."""
    low, high = _each_logit(vector, head)
    most = float(torch.maximum(high - base, base - low).norm())
    if head.inner is not None:
        return most
    outer = head.outer
    point = (base - outer.bias - times(outer.weight, vector.fixed)) / vector.share
    sizes = _by_parts(vector.sizes, outer.weight)
    off = outer.rounding(sizes) + vector.grain * sizes
    return min(most, vector.share * vector.norm.furthest_image(outer.image, point) + float(off.norm()))


def _each_logit(vector: _Vector, head: OutputHead) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
    """The range of every logit."""
    outer = head.outer
    if head.inner is not None:
        return _projected_logits(vector, head, torch.eye(len(outer.weight), dtype=torch.float64))
    low, high = (_by_parts(lambda part, side=side: vector.ranges(part)[side], outer.weight) for side in (0, 1))
    off = outer.rounding(_by_parts(vector.sizes, outer.weight))
    return low + outer.bias - off, high + outer.bias + off


def _by_parts(of: Callable[[Tensor], Tensor], weight: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
    """Compute a number for each row of a weight that may be too large for float64 as a whole."""
    return torch.cat([of(part.to("cpu", torch.float64)) for part in weight.split(_CHUNK)])


def _projected_logits(
    vector: _Vector, head: OutputHead, v: Float[Tensor, "q k"]
) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
    """The ranges of linear functions of the logits."""
    used = (v != 0).any(0)  # of a vocabulary's logits, most directions look at few
    outer, v = head.outer.rows(used), v[:, used]
    through = back(outer.weight, v)
    if head.inner is None:
        low, high = vector.ranges(through)
        sizes = _by_parts(vector.sizes, outer.weight)
    else:  # each unit of the hidden layer has a range of its own
        weight = head.inner.weight.to("cpu", torch.float64)
        below, above = vector.ranges(weight)
        off = head.inner.rounding(vector.sizes(weight))
        least, most = head.hidden_range(below + head.inner.bias - off, above + head.inner.bias + off)
        up, down = through.clamp(min=0), through.clamp(max=0)
        low, high = up @ least + down @ most, up @ most + down @ least
        sizes = times(outer.weight.abs(), torch.maximum(least.abs(), most.abs()))
    shift, off = v @ outer.bias, v.abs() @ outer.rounding(sizes)
    return low + shift - off, high + shift + off


def _ranges(
    text: PretrainedText, ending: Ending, tokens: tuple[int, ...], v: Float[Tensor, "q features"]
) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
    base, kept = text.base.to("cpu", torch.float64), _kept(ending, tokens)
    if ending.reads == "sizes":
        low, high = _size_ranges(ending.norms[0], base, kept, text.base.dtype)
        up, down = v.clamp(min=0), v.clamp(max=0)
        return up @ low + down @ high, up @ high + down @ low
    if ending.reads == "rows":
        fixed = _by_state(ending, base[None])[0, :, :kept]
        v = _by_state(ending, v)
        low = high = torch.einsum("qsnd,snd->q", v[:, :, :kept], fixed)
        for number, norm in enumerate(ending.norms):
            least, most = norm.ranges(v[:, number, kept:].flatten(0, 1))
            low, high = low + least.view(len(v), -1).sum(1), high + most.view(len(v), -1).sum(1)
        return low, high
    vector = _vector(text, ending, kept)
    return vector.ranges(v) if ending.head is None else _projected_logits(vector, ending.head, v)


def _by_state(ending: Ending, features: Float[Tensor, "q features"]) -> Float[Tensor, "q states n d"]:
    return features.view(len(features), len(ending.norms), -1, len(ending.norms[0].beta))


def _size_ranges(
    norm: Ellipsoid, base: Float[Tensor, " n"], kept: int, dtype: torch.dtype
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """The range of the norm of each row; rows that stay have the one that they have."""
    off = roundoff(dtype) + len(norm.beta) * inner_roundoff(dtype)  # a root of a sum of d squares, then rounded
    low, high = torch.zeros_like(base), torch.full_like(base, norm.largest * (1 + off))
    low[:kept], high[:kept] = base[:kept], base[:kept]
    return low, high
