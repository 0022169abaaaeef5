"""The public function `attention_maps`: where a model looks, before and after a word changes or moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway import __version__
from wordsway.maps.base import moved
from wordsway.measures.best_words import encoded_for
from wordsway.measures.opening import over_texts
from wordsway.models.loading.load import open_model
from wordsway.models.moving.attention_weights import Attraction, Drawn, all_weights, draw_attention, mass, seers
from wordsway.models.moving.map import PretrainedMap
from wordsway.support.errors import InputError
from wordsway.support.json_values import to_values
from wordsway.support.names import BUDGETS
from wordsway.support.plain_checks import check_budget
from wordsway.support.plotting import heat, square_axes
from wordsway.support.progress import Progress, as_function, takes_progress
from wordsway.support.public_gate import public
from wordsway.support.result import Result
from wordsway.tokens import Tokens, find_word


@dataclass(frozen=True, eq=False)
class ShownMap:
    """The weights of one map, with the names of its rows."""

    weights: Tensor
    tokens: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class AttentionMaps(Result):
    """Attention weights of all layers and heads, (layers, heads, n, n), of a text and, where asked for, of another one
    or of the same with a word moved. `layer` and `head` (from 1; None is the mean over heads) are what is shown.

    `mass_before` and `mass_after` (layers, heads) are the mean weight that rows give the word `word`, where one was
    named. `targets` says, for each head of `layer` and for their mean, what a move of norm `radius` can draw there:
    mass without it, by the closed form, and by ascent on the mass (a lower bound of the largest).

    `before` and `after` are in memory only: a file has the `maps` that are shown, and a result that was read from one
    has no others.
    """

    format: ClassVar[str] = "wordsway.attention/2"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("layer", "head"), "before")
    in_memory: ClassVar[tuple[str, ...]] = ("before", "after")

    model: str
    text: str
    other: str | None
    names: tuple[str, ...]
    other_names: tuple[str, ...]
    special: tuple[bool, ...]
    other_special: tuple[bool, ...]
    layer: int
    head: int | None
    show_special: bool
    before: Float[Tensor, "l h n n"] | None = None
    after: Float[Tensor, "l h n2 n2"] | None = None
    word: int | None = None
    word_text: str | None = None
    tokens: tuple[int, ...] = ()
    radius: float | None = None
    mass_before: Float[Tensor, "l h"] | None = None
    mass_after: Float[Tensor, "l h"] | None = None
    targets: tuple[dict[str, Any], ...] | None = None
    maps: dict[str, ShownMap] | None = None
    version: str = __version__
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say what is shown in a line."""
        word = "" if self.word_text is None else f", word {self.word_text!r}"
        return f"{self._where()}{word}; {len(self.names)} tokens"

    @property
    def compares(self) -> bool:
        """Whether there is a second map."""
        return self.after is not None or "after" in (self.maps or {})

    def shown(self, after: bool = False) -> tuple[Float[Tensor, "k k"], tuple[str, ...]]:
        """The map that is shown, with the names of its rows; hidden tokens are left out, not shared out to others."""
        if after and not self.compares:
            raise InputError("there is no second map: give against= or attract=True")
        weights = self.after if after else self.before
        if weights is None:  # read from a file
            kept = (self.maps or {})["after" if after else "before"]
            return kept.weights, kept.tokens
        chosen = weights[self.layer - 1]
        chosen = chosen.mean(0) if self.head is None else chosen[self.head - 1]
        names, keep = self.other_names if after else self.names, self._kept(after)
        return chosen[keep][:, keep], tuple(names[k] for k in keep)

    def _kept(self, after: bool) -> list[int]:
        """The numbers of the tokens that are shown, from 0, special ones counted too."""
        hidden = self.other_special if after else self.special
        return [k for k in range(len(hidden)) if self.show_special or not hidden[k]]

    def records(self) -> list[dict[str, Any]]:
        """Make the table: the mass on the word for each layer and head; without a word, every weight that is shown, its
        row and column by the numbers of their tokens."""
        if self.mass_before is not None:
            after = self.mass_after
            return [
                {"layer": layer + 1, "head": head + 1, "before": float(value)}
                | ({} if after is None else {"after": float(after[layer, head])})
                for layer, heads in enumerate(self.mass_before)
                for head, value in enumerate(heads)
            ]
        found = []
        for after in (False, True) if self.compares else (False,):
            (weights, names), kept = self.shown(after), self._kept(after)
            found += [
                {"map": "after" if after else "before", "row": j, "from": a, "column": k, "to": b, "weight": float(w)}
                for j, a, values in zip(kept, names, weights.tolist(), strict=True)
                for k, b, w in zip(kept, names, values, strict=True)
            ]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything, as JSON values; of the weights, the maps that are shown."""
        maps = {"before": self.shown()} | ({"after": self.shown(True)} if self.compares else {})
        shown = {name: ShownMap(weights, names) for name, (weights, names) in maps.items()}
        return super().to_dict() | {"maps": to_values(shown)}

    def plot(self, ax: Any = None) -> Any:
        """Draw the maps side by side on one scale. `ax` may be a pair of axes, or one where there is one map. Returns
        the axes of the first."""
        maps = [self.shown()] + ([self.shown(True)] if self.compares else [])
        if ax is None:
            axes = square_axes([names for _, names in maps], 9.0, self._where())
        else:
            axes = list(ax) if isinstance(ax, Sequence) or hasattr(ax, "__len__") else [ax]
        if len(axes) < len(maps):
            raise InputError(f"plot needs {len(maps)} axes for {len(maps)} maps, got {len(axes)}")
        most = max(float(weights.max()) for weights, _ in maps)
        titles = self._titles()
        marked = self._marked()
        images = [
            heat(place, weights, names, title, most, marked)
            for place, (weights, names), title in zip(axes, maps, titles, strict=False)
        ]
        axes[0].figure.colorbar(images[0], ax=axes, shrink=0.7, label="attention weight (row looks at column)")
        return axes[0]

    def _marked(self) -> list[int]:
        kept = self._kept(after=False)
        return [kept.index(token) for token in self.tokens if token in kept]

    def _titles(self) -> tuple[str, str]:
        if self.radius is not None:
            return "as it is", f"\u201c{self.word_text}\u201d moved to draw attention"
        return _clip(self.text), _clip(self.other or "")

    def _where(self) -> str:
        which = "mean over heads" if self.head is None else f"head {self.head}"
        return f"{self.model}, layer {self.layer}, {which}"


@public
@over_texts
@takes_progress("step")
def attention_maps(
    model: Any,
    text: str | Tokens,
    against: str | Tokens | None = None,
    *,
    word: str | int | None = None,
    attract: bool = False,
    layer: int = 1,
    head: int | Literal["mean"] = "mean",
    special: bool = False,
    radius: float = 1.0,
    at: str = "embeddings",
    budget: str = "default",
    seed: int = 0,
    tokenizer: Any = None,
    max_tokens: int | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = None,
) -> AttentionMaps:
    """Attention of a text, beside that of another (`against`), or of the same with `word` moved so that it draws the
    attention of one `head` of `layer`, or of all on average (`attract`). `radius` counts in the word's own norm.
    A list of texts gives `TextResults`. Special tokens are computed with but not shown, unless `special`. `progress`
    is called with (steps done, steps in all) of the search, or True to show it."""
    if against is not None and (attract or word is not None):
        raise InputError("give against= (two texts) or word= (one text), not both")
    if attract and word is None:
        raise InputError("attract=True needs a word= that is to draw attention")
    check_budget(budget)
    if not 0 < radius < float("inf"):
        raise InputError(f"radius must be a positive number, got {radius!r}")
    opened = open_model(model, tokenizer, device)
    phi = PretrainedMap(opened, at=at)
    tokens = encoded_for(phi, text, max_tokens)
    if not 1 <= layer <= opened.layers:
        raise InputError(f"layer {layer} is not there: {opened.name} has attention in layers 1 to {opened.layers}")
    before = all_weights(opened, tokens.X.to(opened.device, opened.dtype), phi.at)
    chosen = None if head == "mean" else int(head)
    if chosen is not None and not 1 <= chosen <= before.shape[1]:
        raise InputError(f"head {head} is not there: a layer of {opened.name} has heads 1 to {before.shape[1]}")
    more: dict[str, Any] = {}
    other, after = tokens, None
    if against is not None:
        other = encoded_for(phi, against, max_tokens)
        after = all_weights(opened, other.X.to(opened.device, opened.dtype), phi.at)
    elif word is not None:
        place = find_word(tokens, word)
        moving = tokens.pieces[place]
        more = {"word": place + 1, "word_text": tokens.words[place], "tokens": moving}
        rows = seers(opened, len(tokens), moving)
        more["mass_before"] = mass(before, moving, rows)
        if attract:
            reach = radius * float(tokens.X[list(moving)].double().norm(dim=1).max())
            attraction = Attraction(opened, tokens.X.double(), moving, layer, phi.at)
            drawn = draw_attention(
                attraction, reach, seed, BUDGETS[budget], as_function(progress) or (lambda done, total: None)
            )
            delta = drawn.deltas[-1 if chosen is None else chosen - 1]
            after = all_weights(opened, moved(tokens.X.double(), moving, delta).to(opened.device, opened.dtype), phi.at)
            more |= {"radius": reach, "mass_after": mass(after, moving, rows), "targets": _targets(drawn)}
    return AttentionMaps(
        model=opened.name,
        text=tokens.text,
        other=None if against is None else other.text,
        names=_names(tokens),
        other_names=_names(other),
        special=tuple(tokens.special.tolist()),
        other_special=tuple(other.special.tolist()),
        before=before,
        after=after,
        layer=layer,
        head=chosen,
        show_special=special,
        **more,
    )


def _targets(drawn: Drawn) -> tuple[dict[str, Any], ...]:
    names = [*range(1, len(drawn.plain)), "all"]
    table = zip(names, drawn.plain.tolist(), drawn.closed.tolist(), drawn.found.tolist(), strict=True)
    return tuple(
        {"head": head, "plain": plain, "closed": closed, "found": found} for head, plain, closed, found in table
    )


def _names(tokens: Tokens) -> tuple[str, ...]:
    """Tokens as they stand in the text, where they do."""
    return tuple(
        tokens.text[start:end].strip() or name for name, (start, end) in zip(tokens.tokens, tokens.offsets, strict=True)
    )


def _clip(text: str, length: int = 32) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
