"""The answer that a user of a pre-trained model gets about one text: what it takes to change its prediction, or where
there is none, the change of its output. The command, the page and each text of a table get it from here."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from wordsway.measures.flip_radii import FlipRadii
from wordsway.measures.flip_radius import flip_radius
from wordsway.measures.profile_result import RadiusProfile
from wordsway.measures.radius_profile import radius_profile
from wordsway.models.moving.map import PretrainedMap
from wordsway.support.cancelling import Cancel
from wordsway.support.errors import InputError
from wordsway.support.progress import Progress
from wordsway.tokens import Tokens

SMALL = 0.1  # of a word's norm: there words of a model still differ
WHOLE = 1.0  # of a word's norm: far enough to erase the word


def predicts(phi: PretrainedMap) -> bool:
    """Tell whether an output is a prediction: a class of several, or the next token."""
    return phi.output.is_logits and (phi.model.labels is None or len(phi.model.labels) > 1)


def answer_text(
    phi: PretrainedMap,
    text: Tokens | Tensor,
    word: str | int | None = None,
    *,
    radius: float | None = None,
    budget: int | str | None = None,
    certificate: bool = True,
    radii: Sequence[float] | None = None,
    effects: bool = True,
    seconds: float | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: Progress = None,
    cancel: Cancel | None = None,
    each: Callable[[int, float], None] | None = None,
) -> FlipRadii | RadiusProfile:
    """Measure the words of a text in the units of a model's user.

    Of a prediction: the smallest move of each word that changes it, the nearest real word that does, and the lowest
    probability within `radius` (1 unless given, in units of the word's own norm); `seconds` limits the time for real
    words; without `effects`, only the smallest moves are searched. Of another output: its change at `radii`; unless
    given, at a small one (0.1), and at `radius` where that is given. `each` is called with the number of a word, from
    1, and the value that it is coloured by, as soon as that is known.
    """
    common: dict[str, Any] = {"seed": seed, "device": device, "progress": progress, "cancel": cancel}
    if predicts(phi):
        limit = WHOLE if radius is None else radius
        common |= {"effects": True, "seconds": seconds} if effects else {"real_words": 0}
        tell = None if each is None else lambda entry: each(entry.word, entry.closeness)
        return flip_radius(phi, text, word, radius=limit, budget=budget, each=tell, **common)
    if isinstance(budget, int):
        raise InputError("budget of a model without a prediction is quick, default or thorough, not a number")
    chosen = sorted({SMALL} if radius is None else {min(SMALL, radius), radius}) if radii is None else list(radii)
    common |= {"certificate": certificate, "budget": budget or "default", "each": each}
    return radius_profile(phi, text, chosen, word, flips=False, **common)
