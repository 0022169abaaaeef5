"""The public function `layer_profile`: how a move of one word goes through the layers of a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from wordsway import __version__
from wordsway.measures.best_words import ALLOWANCE, encoded_for, substitutions
from wordsway.measures.opening import over_texts
from wordsway.measures.sensitivity import check_draws
from wordsway.models.loading.load import open_model
from wordsway.models.moving.attention_weights import Attraction
from wordsway.models.moving.layer_changes import (
    LayerChanges,
    Ruler,
    along,
    attracting_direction,
    evaluations_of,
    layer_changes,
)
from wordsway.models.moving.map import PretrainedMap, rows_of
from wordsway.models.running.model import At, Transformer
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_budget, check_size
from wordsway.support.plotting import BLUE, GREEN, GREY, ORANGE, PINK, lines
from wordsway.support.progress import Progress, shown_progress
from wordsway.support.public_gate import public
from wordsway.support.result import Result
from wordsway.tokens import Tokens, find_word

_LABELS = {
    "searched": "searched, for each layer",
    "attracting": "attention-attracting",
    "noise": "Gaussian noise (mean \u00b1 sd)",
    "real_word": "towards the best real word",
    "replaced": "that word itself",
}


@dataclass(frozen=True, repr=False)
class LayerProfile(Result):
    """Relative change of every hidden state (0 is the input) for moves of one word, all of norm `radius` but the last:

    `searched`: the largest that was found, by a search for each layer (a lower bound of the supremum);
    `attracting`: along the proof's direction, which draws the attention of the first layer's heads (or of one `head`);
    `noise` and `noise_sd`: uniform random moves; `real_word`: towards the real word, of those tried, that changes the
    last layer most; `replaced`: that word itself, which lies `real_size` radii away (None where there is none).
    """

    format: ClassVar[str] = "wordsway.layers/2"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("layer",), "searched")

    model: str
    text: str
    word: int
    word_text: str
    tokens: tuple[int, ...]
    at: str
    head: int | None
    radius: float
    searched: tuple[float, ...]
    attracting: tuple[float, ...]
    noise: tuple[float, ...]
    noise_sd: tuple[float, ...]
    noise_draws: int
    real_word: tuple[float, ...] | None
    replaced: tuple[float, ...] | None
    replacement: str | None
    real_size: float | None
    real_exhaustive: bool | None
    evaluations: int
    seed: int
    version: str = __version__
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say the change of the last layer in a line."""
        word = f"word {self.word_text!r} (#{self.word})"
        return f"{self.model}, {word}: last layer at least {self.searched[-1]:.3g}, random moves {self.noise[-1]:.3g}"

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(range(len(self.searched)))

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a layer."""
        names = ("searched", "attracting", "noise", "noise_sd", "real_word", "replaced")
        columns = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return [{"layer": k, **{name: values[k] for name, values in columns.items()}} for k in self.layers]

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves over the layers. Returns the axes."""
        styles = {
            "searched": (ORANGE, "o"),
            "attracting": (BLUE, "s"),
            "noise": (GREY, "x"),
            "real_word": (GREEN, "^"),
            "replaced": (PINK, "v"),
        }
        series = {
            self._label(name): (values, *style)
            for name, style in styles.items()
            if (values := getattr(self, name)) is not None
        }
        title = f"{self.model}: moves of \u201c{self.word_text}\u201d (word {self.word})"
        labels = ("layer (0 is the input)", "relative change of its output")
        return lines(ax, self.layers, series, {_LABELS["noise"]: self.noise_sd}, labels, title)

    def _label(self, name: str) -> str:
        known = _LABELS[name]
        if name == "real_word":
            return f"{known} (\u201c{self.replacement}\u201d)"
        return f"{known}, {self.real_size:.2f} radii away" if name == "replaced" else known


@public
@over_texts
def layer_profile(
    model: Any,
    text: str | Tokens,
    word: str | int,
    *,
    radius: float = 1.0,
    at: str = "embeddings",
    head: int | None = None,
    noise_draws: int = 50,
    real_words: bool = True,
    budget: str = "default",
    seed: int = 0,
    tokenizer: Any = None,
    max_tokens: int | None = None,
    device: torch.device | str = "cpu",
    progress: Progress = None,
) -> LayerProfile:
    """Relative change of every layer's output when one word moves: see `LayerProfile` for the curves. A list of
    texts gives `TextResults`.

    `word` is itself or its number from 1; `radius` counts in the norm of its embedding (of the longest of its pieces,
    which move together). `head` (from 1) draws the attention of one head of the first layer instead of all.
    `progress` is called with (evaluations done, evaluations in all), about; or True to show it.
    """
    check_budget(budget)
    if isinstance(radius, bool) or not isinstance(radius, int | float) or not 0 < radius < float("inf"):
        raise InputError(f"radius must be a positive number, got {radius!r}")
    check_size(noise_draws, "noise_draws", least=2)
    opened = open_model(model, tokenizer, device)
    phi = PretrainedMap(opened, at=at)
    place_at = phi.at
    tokens = encoded_for(phi, text, max_tokens)
    place = find_word(tokens, word)
    moving = tokens.pieces[place]
    X = tokens.X.double()
    check_draws(noise_draws, X.shape[1] * len(moving))
    reach = radius * float(X[list(moving)].norm(dim=1).max())
    if head is not None:  # one that is not there should not wait for a search of words
        attracting_direction(Attraction(opened, X, moving, at=place_at), head)
    words = ALLOWANCE[budget] if real_words and len(moving) == 1 else 0
    once = evaluations_of(budget)
    total = words + opened.layers * once
    with shown_progress(progress, "evaluation", total) as report:
        found = None
        if words:
            found = _real_word(opened, tokens, place, place_at, budget, seed, lambda done, of: report(done, total))
        changes = layer_changes(
            opened,
            X,
            moving,
            reach,
            at=place_at,
            head=head,
            noise_draws=noise_draws,
            guesses=[] if found is None else [along(found.delta, reach)],
            budget=budget,
            seed=seed,
            progress=lambda layer: report(words + layer * once, total),
        )
    return LayerProfile(
        model=opened.name,
        text=tokens.text,
        word=place + 1,
        word_text=tokens.words[place],
        tokens=moving,
        at=at,
        head=head,
        radius=reach,
        searched=tuple(changes.searched.tolist()),
        attracting=tuple(changes.attracting.tolist()),
        noise=tuple(changes.noise.mean(0).tolist()),
        noise_sd=tuple(changes.noise.std(0).tolist()),
        noise_draws=noise_draws,
        evaluations=changes.evaluations,
        seed=seed,
        **_real_fields(found, changes, lambda delta: Ruler(opened, X, moving, place_at)(delta), reach),
    )


@dataclass(frozen=True)
class _RealWord:
    word: str
    delta: Tensor
    exhaustive: bool


def _real_fields(
    found: _RealWord | None, changes: LayerChanges, ruler: Callable[[Tensor], Tensor], reach: float
) -> dict[str, Any]:
    """Make the fields of a profile that are about the best real word; None where there is none."""
    if found is None:
        return dict.fromkeys(("real_word", "replaced", "replacement", "real_size", "real_exhaustive"))
    return {
        "real_word": tuple(changes.guesses[0].tolist()),
        "replaced": tuple(ruler(found.delta[None])[0].tolist()),
        "replacement": found.word,
        "real_size": float(found.delta.norm()) / reach,
        "real_exhaustive": found.exhaustive,
    }


def _real_word(
    model: Transformer,
    tokens: Tokens,
    place: int,
    at: At,
    budget: str,
    seed: int,
    progress: Callable[[int, int], None],
) -> _RealWord | None:
    """The real word that changes the last layer most, and the move that it is; None for punctuation, which a
    word would be glued to."""
    plain = tokens if at == "embeddings" else PretrainedMap(model).encode(tokens.text, len(tokens))
    options: dict[str, Any] = {"output": "last", "top": 1, "search": "guided", "budget": budget, "seed": seed}
    found = substitutions(model, plain, place + 1, **options, progress=progress)
    if not found.top:
        return None
    (new,) = model.encoder.tokenize([found.best.text], len(tokens))
    rows = rows_of(model, [new.ids], at)[0].double() - tokens.X.double()
    return _RealWord(found.best.after, rows[list(tokens.pieces[place])], found.tried[0].exhaustive)
