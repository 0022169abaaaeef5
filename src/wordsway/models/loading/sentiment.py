"""The classifier that comes along: a linear head for sentiment on the bundled encoder's mean state."""

from functools import lru_cache
from importlib.resources import files
from typing import Any

from wordsway.models.loading import bundled
from wordsway.models.running.model import Head
from wordsway.support.errors import InputError

NAME = "sentiment"


@lru_cache(maxsize=1)
def sentiment_head() -> Head:
    """The head, checked to belong to the bundled encoder."""
    from safetensors import safe_open

    found: dict[str, Any] = {}
    with safe_open(str(files("wordsway.models.loading") / "sentiment.safetensors"), framework="pt") as file:
        about = dict(file.metadata() or {})
        for name in ("weight", "bias"):
            found[name] = file.get_tensor(name)
    if bundled.SHA256 not in about.values():
        raise InputError("the sentiment head that came along was not trained on the bundled encoder; install it again")
    return Head(found["weight"], found["bias"], about)
