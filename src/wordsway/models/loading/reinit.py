"""Models with randomly re-initialised weights: their names, and how the weights are drawn.

`reinit:NAME` has every weight drawn anew by the architecture's own initialisation; `reinit-layers:NAME` keeps those
that hidden state 0 is made of, so that texts enter as they do in the trained model and only what follows is untrained.
"""

import copy
import re
from dataclasses import dataclass
from typing import Any

from wordsway.support.errors import InputError
from wordsway.support.public_gate import read_whole

_NAME = re.compile(r"(reinit|reinit-layers):(.*?)(?:@(\d+))?", re.DOTALL)


@dataclass(frozen=True)
class Redraw:
    """Weights to be drawn by a seed; None in a name without one, which then means 0."""

    kind: str
    seed: int | None = None

    def named(self, name: str) -> str:
        """Return the name that asks for another model with its weights redrawn in the same way."""
        return f"{self.kind}:{name}" + ("" if self.seed is None else f"@{self.seed}")


def split_name(name: str) -> tuple[str, Redraw | None]:
    """A model's name without what asks for other weights, and that: "reinit:minilm@3" is ("minilm", ...)."""
    found = _NAME.fullmatch(name)
    if found is None:
        return name, None
    kind, rest, seed = found[1], found[2], found[3]
    if not rest or _NAME.fullmatch(rest):
        raise InputError(
            f"{name!r} names no model; write {kind}:NAME, or {kind}:NAME@SEED for other weights of the same law"
        )
    return rest, Redraw(kind, None if seed is None else read_whole(seed, "seed"))


def draw_weights(factory: Any, config: Any, redraw: Redraw) -> Any:
    """A model whose weights come from the architecture's own law. The global random state is as it was afterwards."""
    import torch

    from wordsway.support.seeds import stream

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream(redraw.seed or 0, "reinit"))
        return factory.from_config(copy.deepcopy(config), dtype=torch.float32).eval()


def keep_embeddings(drawn: Any, trained: Any) -> None:
    """Give a model back those weights of another that its hidden state 0 is made of."""
    import torch

    base = drawn.get_encoder() if drawn.config.is_encoder_decoder else drawn.base_model
    other = trained.get_encoder() if trained.config.is_encoder_decoder else trained.base_model
    names, weights = zip(*base.named_parameters(), strict=True)
    with torch.enable_grad():
        state = base(input_ids=torch.tensor([[1, 2, 3]]), output_hidden_states=True).hidden_states[0]
        used = torch.autograd.grad(state.sum(), weights, allow_unused=True)
    theirs = dict(other.named_parameters())
    with torch.no_grad():
        for name, weight, gradient in zip(names, weights, used, strict=True):
            if gradient is not None:
                weight.copy_(theirs[name])
