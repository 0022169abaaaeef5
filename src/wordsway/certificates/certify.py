"""Upper bounds on how far a view's features can move, next to the lower bounds that a search finds.

A certificate is a statement about every delta of a radius, not about those that a search tried. Where weights are
given it is a deterministic inequality, computed in float64 with a margin for rounding; where they are revealed
lazily it holds up to a stated probability over what is not revealed yet.

Which function bounds a view depends on the view's class: `CERTIFICATES` of `support/names.py` has those of the
package, `register_certificate` adds others.
"""

from collections.abc import Callable
from typing import Any

from wordsway.certificates.base import Certificate
from wordsway.maps.base import View
from wordsway.support.errors import InputError
from wordsway.support.names import CERTIFICATES
from wordsway.support.public_gate import public
from wordsway.support.registry import load_home

Bound = Callable[[Any, float], Certificate]
_registered: dict[str, Bound] = {}  # by the home of the view's class, as in CERTIFICATES


@public
def certify(view: View, radius: float) -> Certificate:
    """Bound norm(change) / norm(phi(X)) from above, over all deltas of norm at most `radius`."""
    if view.base_norm == 0:
        return Certificate(None, 0.0, "phi(X) is zero, so a relative change is not defined")
    for home in map(_home, type(view).__mro__):
        if home in _registered:
            return _registered[home](view, radius)
        if home in CERTIFICATES:
            return load_home(CERTIFICATES[home])(view, radius)
    return Certificate(None, 0.0, view.no_certificate)


@public
def register_certificate(kind: type[View], bound: Bound) -> None:
    """Let `bound(view, radius)` certify views of a class of yours, and of classes derived from it. It returns a
    `Certificate` whose `upper` no change of norm at most `radius` can exceed, relative to `view.base_norm`.

    A bound of the package cannot be replaced; derive a class of your own from its view instead.
    """
    if not (isinstance(kind, type) and issubclass(kind, View)) or not callable(bound):
        raise InputError(f"a certificate is a function for a class of views, got {kind!r} and {bound!r}")
    if _home(kind) in CERTIFICATES:
        raise InputError(f"{kind.__name__} has a certificate already: {CERTIFICATES[_home(kind)]}")
    _registered[_home(kind)] = bound


def _home(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
