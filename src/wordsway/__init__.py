"""wordsway: how far can one word move a model?

`import wordsway as ws` loads nothing heavy: each name below is fetched from its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wordsway.certify import Certificate, certify
    from wordsway.curve import Curve, curve
    from wordsway.errors import InputError, TooLargeError
    from wordsway.maps.base import FeatureMap, PlainMap, View
    from wordsway.maps.named import named_map
    from wordsway.maps.random_attention import RandomAttention
    from wordsway.maps.random_features import RandomFeatures
    from wordsway.result import Sensitivity, load_result
    from wordsway.sensitivity import change, word_sensitivity
    from wordsway.tokens import normalize_rows, synthetic_tokens

_HOMES = {
    "Certificate": "certify",
    "Curve": "curve",
    "FeatureMap": "maps.base",
    "InputError": "errors",
    "PlainMap": "maps.base",
    "RandomAttention": "maps.random_attention",
    "RandomFeatures": "maps.random_features",
    "Sensitivity": "result",
    "TooLargeError": "errors",
    "View": "maps.base",
    "certify": "certify",
    "change": "sensitivity",
    "curve": "curve",
    "load_result": "result",
    "named_map": "maps.named",
    "normalize_rows": "tokens",
    "synthetic_tokens": "tokens",
    "word_sensitivity": "sensitivity",
}

__all__ = [
    "Certificate",
    "Curve",
    "FeatureMap",
    "InputError",
    "PlainMap",
    "RandomAttention",
    "RandomFeatures",
    "Sensitivity",
    "TooLargeError",
    "View",
    "certify",
    "change",
    "curve",
    "load_result",
    "named_map",
    "normalize_rows",
    "synthetic_tokens",
    "word_sensitivity",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wordsway' has no attribute {name!r}")
    value = getattr(import_module(f"wordsway.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
