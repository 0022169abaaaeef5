"""Flip radii and profiles over the radius as reports."""

import math
from collections.abc import Mapping
from typing import Any

from wordsway.measures.flip_radii import FlipRadii
from wordsway.report.measurement import facts_of
from wordsway.report.parts import Facts, Grid, Report
from wordsway.report.svg import picture


def of_flips(values: Mapping[str, Any]) -> Report:
    """The report of flip radii by their JSON values."""
    result = FlipRadii.of(dict(values), "the result")
    sure = "" if result.probability is None else f" (probability {result.probability:.3f})"
    lead = [f"The prediction is \u201c{result.prediction}\u201d{sure}."]
    if result.flipped:
        first = result.flipped[0]
        lead.append(
            f"The smallest move that was found to change it is of \u201c{first.text}\u201d (word {first.word + 1}): "
            f"{first.radius:.3g} times the norm of that word changes it to \u201c{first.to}\u201d."
        )
    missing = len(result.words) - len(result.flipped)
    if missing:
        lead.append(f"For {missing} of {len(result.words)} words no move of up to {result.limit:g} norms was found.")
    if any(math.isinf(word.certified) for word in result.words):
        count = sum(math.isinf(word.certified) for word in result.words)
        lead.append(f"It is proven that no move of any size of {count} of the words can change it.")
    if result.text is not None:
        lead.append(f"The text: {result.text['text']}")
    caption = [
        "Blue: the smallest move found that changes the prediction; a smaller one may exist.",
        "Orange: the nearest real word, of those tried, that changes it. Green: no move up to there can.",
    ]
    shown = picture(result.plot().figure, "How far each word must move", caption)
    table = Grid.of("All words", "flips", result.rows())
    about = {**result.map, "largest move allowed": result.limit, "seed": result.seed, "gradients": result.gradients}
    about |= {"checked": result.checked}
    made = result.made or {}
    known = [(name, str(value)) for name, value in about.items() if value is not None]
    known += facts_of(made) or [("version", f"wordsway {result.version}")]
    title = f"How far a word must move to flip {result.map.get('model', result.map['map'])}"
    return Report(title, lead, (shown, table, Facts("How it was made", known, made.get("command"))))
