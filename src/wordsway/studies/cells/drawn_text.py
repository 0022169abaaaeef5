"""The text and the map of a cell, drawn by its seed and trial: what torch does for a `TextCell`."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap
from wordsway.maps.named import named_map
from wordsway.search.regions import Sphere
from wordsway.studies.cells.grid_hooks import SYNTHETIC
from wordsway.studies.cells.passages import passage
from wordsway.studies.cells.text_cell import TextCell
from wordsway.support.errors import ZeroError
from wordsway.support.seeds import stream
from wordsway.tokens import Tokens, synthetic_tokens


@dataclass(frozen=True)
class Drawn:
    """The text and the map of a cell, drawn by its seed and trial. `rows` is the text as (n, d), `text` the same with
    its words where it is a real one, `token` the one that moves, by up to `radius`."""

    text: Tokens | Tensor
    phi: FeatureMap
    token: int
    radius: float

    @property
    def rows(self) -> Tensor:
        return self.text.X if isinstance(self.text, Tokens) else self.text

    @property
    def d(self) -> int:
        return self.rows.shape[1]

    def random_changes(self, draws: int, seed: int) -> Float[Tensor, " draws"]:
        """Relative changes of the features under random moves of the token, uniform on the sphere of its radius."""
        view = self.phi.view(self.rows.double(), (self.token,), dtype=torch.float64)
        if not view.base_norm > 0:
            raise ZeroError("phi(X) is zero, so a change relative to it is not defined")
        return view.relative_changes(Sphere(self.radius, 1, self.d).sample(draws, seed, "random", self.token))


def draw(cell: TextCell) -> Drawn:
    """Draw the text of a cell and the weights of its map."""
    text, token = draw_text(cell)
    d = (text.X if isinstance(text, Tokens) else text).shape[1]
    weights = stream(cell.seed, "curve", d, cell.n, cell.trial, "weights")
    phi = named_map(cell.map, cell.n, d, weights, depth=cell.depth, temperature=cell.temperature)
    return Drawn(text, phi, token, cell.radius * math.sqrt(d))


def draw_text(cell: TextCell) -> tuple[Tokens | Tensor, int]:
    """Draw the text of a cell, and find the token that moves."""
    if cell.encoder == SYNTHETIC:
        d = cell.d or 384
        seed = stream(cell.seed, "curve", d, cell.n, cell.trial, "text")
        token: Any = 0 if cell.token == "word" else cell.token
        return synthetic_tokens(cell.n, d, seed, cell.correlation, cell.structure), token
    assert cell.data is not None
    least = cell.at_least or cell.n
    text = passage(cell.data, cell.encoder, cell.layer, cell.padding, least, cell.seed, cell.trial)[: cell.n]
    text = text if cell.d is None else text.first_dims(cell.d)
    text = text.centered() if cell.center else text
    token = int((~text.special).nonzero()[0]) if cell.token == "word" else cell.token
    return text, token
