"""The norm that ends a model: found by running the model, and checked by what it does.

Every module's input and output is recorded while an output of the model is computed. A module is taken for a norm only
if it behaves like one: its output is gamma * z + beta with z along the (centred) input and |z|^2 <= d, on the recorded
rows and on probes of many sizes, means and shapes. Names of classes are never asked.

**Rounding.** With u the unit roundoff of the norm's output and v that of its inner arithmetic (float32 or better):
mean, variance and scale are right up to some v times the row's root mean square over its standard deviation, so z is
within `_INNER` v sqrt(d) of one with |z| <= sqrt(d) that sums to 0; that covers a constant of 16 for rows whose mean is
up to 1,000 times their standard deviation. Rounding z, gamma * z and the sum with beta adds u each, relative to every
entry: all of it to z, the last to beta too. That the inner arithmetic is not coarser is part of the check: a probe has
a mean of 30 standard deviations, where half precision inside would be off by 6%.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.certificates.ellipsoid_bound import Ellipsoid
from wordsway.support.seeds import normal

_INNER = 2.0**14  # roundoffs of the inner arithmetic that z may be off by
_PROBE_ROWS = 24
_LARGEST = 1e4  # entry of a probe: float16 ends at 65504


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a module while a model ran: what it got and gave."""

    name: str
    module: Any
    given: Tensor
    output: Tensor


@contextmanager
def recorded(whole: Any) -> Iterator[list[Call]]:
    """Record all calls of modules without parts that take a tensor to a tensor, in the order in which they end."""
    calls: list[Call] = []

    def record(name: str, module: Any, arguments: Any, keywords: Any, output: Any) -> None:
        given = arguments[0] if arguments else next(iter(keywords.values()), None)
        if isinstance(given, Tensor) and isinstance(output, Tensor) and output.is_floating_point():
            calls.append(Call(name, module, given.detach().clone(), output.detach().clone()))

    hooks = [
        module.register_forward_hook(
            lambda module, given, keywords, output, name=name: record(name, module, given, keywords, output),
            with_kwargs=True,
        )
        for name, module in whole.named_modules()
        if next(module.children(), None) is None
    ]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def roundoff(dtype: torch.dtype) -> float:
    """The unit roundoff of a precision: by how much a number may be off once it is rounded, relative to it."""
    return torch.finfo(dtype).eps / 2


def inner_roundoff(dtype: torch.dtype) -> float:
    """The unit roundoff of sums in a precision: those of half precision are computed in float32."""
    return min(roundoff(dtype), roundoff(torch.float32))


def allowed(gamma: Tensor, beta: Tensor, centred: bool, dtype: torch.dtype) -> Ellipsoid:
    """Make the ellipsoid of a norm, with what rounding may add when the norm is computed in a precision."""
    u = roundoff(dtype)
    off = _INNER * inner_roundoff(dtype) + 3 * u
    return Ellipsoid(gamma, beta, centred, sqrt(len(gamma)) * (1 + off), off if centred else 0.0, u)


def as_norm(call: Call) -> Ellipsoid | None:
    """The ellipsoid of a module that behaves like a norm, else None."""
    d = call.output.shape[-1]
    own = [part.detach() for part in call.module.parameters(recurse=False)]
    if call.given.shape != call.output.shape or any(part.shape != (d,) for part in own) or len(own) > 2:
        return None
    if not call.output.dtype.is_floating_point or d < 2:
        return None
    probes = _probes(d, call.given.dtype).to(call.given.device)
    try:
        with torch.no_grad():
            answers = call.module(probes[None])[0]
    except Exception:  # a module that is no norm may want anything else
        return None
    given = torch.cat([call.given.reshape(-1, d), probes]).to("cpu", torch.float64)
    output = torch.cat([call.output.reshape(-1, d), answers]).to("cpu", torch.float64)
    vectors = [part.to("cpu", torch.float64) for part in own]
    ones, zeros = torch.ones(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)
    scales = [scale for part in vectors for scale in (part, 1 + part)] + [ones]
    for gamma in scales:
        for beta in [*(part for part in vectors), zeros]:
            for centred in (True, False):
                if _behaves(given, output, gamma, beta, centred, call.output.dtype):
                    return allowed(gamma, beta, centred, call.output.dtype)
    return None


def _behaves(
    given: Float[Tensor, "r d"],
    output: Float[Tensor, "r d"],
    gamma: Float[Tensor, " d"],
    beta: Float[Tensor, " d"],
    centred: bool,
    dtype: torch.dtype,
) -> bool:
    """Whether each row of the output is gamma * z + beta, z along the row that was given and at most sqrt(d) long."""
    u = roundoff(dtype)
    off = _INNER * inner_roundoff(dtype) / 4
    along = given - given.mean(1, keepdim=True) if centred else given
    scaled, rest = gamma * along, output - beta
    size = (rest * scaled).sum(1) / scaled.square().sum(1).clamp(min=1e-300)
    missed = (rest - size[:, None] * scaled).norm(dim=1)
    right = missed <= (off + 2 * u) * rest.norm(dim=1) + u * (output.norm(dim=1) + beta.norm())
    lengths, limit = size * along.norm(dim=1), sqrt(given.shape[1])
    short = lengths <= limit * (1 + off + 2 * u)
    full = float(lengths.max()) >= limit * (1 - off - 2 * u)  # large rows are as long as rows can be
    return full and bool((right & short & (size >= 0)).all())


def _probes(d: int, dtype: torch.dtype) -> Float[Tensor, "r d"]:
    """Rows of many sizes, with means up to 30 standard deviations, some with one entry far above all others."""
    rows = normal((_PROBE_ROWS, d), 0, "norm probes", dtype=torch.float64)
    size = torch.tensor([1e-2, 1.0, 30.0, 300.0], dtype=torch.float64).repeat(_PROBE_ROWS // 4)[:, None]
    mean = torch.tensor([0.0, 1.0, -30.0], dtype=torch.float64).repeat_interleave(_PROBE_ROWS // 3)[:, None]
    rows[::5, 0] *= 1000
    return ((rows + mean) * size).clamp(-_LARGEST, _LARGEST).to(dtype)
