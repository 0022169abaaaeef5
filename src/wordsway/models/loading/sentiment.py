"""The classifier that comes along: a linear head for sentiment on the bundled encoder's mean state."""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.models.loading import bundled
from wordsway.support.errors import InputError

NAME = "sentiment"


@dataclass(frozen=True, eq=False)
class Head:
    """z = weight . (mean over tokens of the last hidden state) + bias; logits (-z/2, z/2), so P(second) = sigmoid(z).

    `about` says what it was trained on, and how often it was right on other texts.
    """

    weight: Float[Tensor, " d"]
    bias: Float[Tensor, " 1"]
    about: dict[str, str]
    labels: tuple[str, str] = ("negative", "positive")

    def logits(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b 2"]:
        weight, bias = self.weight.to(states), self.bias.to(states)
        z = states.mean(1) @ weight + bias
        return torch.stack([-z / 2, z / 2], 1)


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
