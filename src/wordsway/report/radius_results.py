"""Flip radii and profiles over the radius as reports."""

import math
from typing import Any

from wordsway.measures.flip_radii import FlipRadii
from wordsway.measures.profile_result import RadiusProfile
from wordsway.measures.ranks import NOT_IMPORTANCE
from wordsway.report.measurement import facts_of
from wordsway.report.parts import Facts, Grid, Report
from wordsway.report.svg import picture
from wordsway.support.plotting import MOST_BARS


def of_flips(result: FlipRadii) -> Report:
    """Make the report of flip radii."""
    sure = "" if result.probability is None else f" (probability {result.probability:.3f})"
    lead = [f"The prediction is \u201c{result.prediction}\u201d{sure}."]
    nearest = result.by_real[0]
    if nearest.real is not None:
        lead.append(
            f"The nearest real word that changes it: \u201c{nearest.real.text}\u201d for \u201c{nearest.text}\u201d "
            f"(word {nearest.word}), {nearest.real.radius:.3g} times the word's own length away."
        )
    if result.flipped:
        first = result.flipped[0]
        lead.append(
            f"The smallest move that was found to change it is of \u201c{first.text}\u201d (word {first.word}): "
            f"{first.radius:.3g} times the norm of that word changes it to \u201c{first.to}\u201d."
        )
    missing = len(result.words) - len(result.flipped)
    if missing:
        lead.append(f"For {missing} of {len(result.words)} words no move of up to {result.limit:g} norms was found.")
    if any(math.isinf(word.certified) for word in result.words):
        count = sum(math.isinf(word.certified) for word in result.words)
        lead.append(f"It is proven that no move of any size of {count} of the words can change it.")
    lead.append(NOT_IMPORTANCE)
    if result.text is not None:
        lead.append(f"The text: {result.text['text']}")
    drawn = result.words[:MOST_BARS]
    colours = {
        "Blue: the smallest move found that changes the prediction; a smaller one may exist.": "radius",
        "Orange: the nearest real word, of those tried, that changes it.": "real",
        "Green: no move up to there can change it.": "certified",
    }
    caption = [says for says, of in colours.items() if any(getattr(word, of) for word in drawn)]
    shown = picture(result.plot().figure, "How far each word must move", caption)
    table = Grid.of("All words", "flips", result.records())
    about = {"largest move allowed": result.limit, "seed": result.seed, "gradients": result.gradients}
    title = f"How far a word must move to flip {result.map.get('model', result.map['map'])}"
    return Report(title, lead, (shown, table, _facts(result, about)))


def of_profile(result: RadiusProfile) -> Report:
    """Make the report of a profile over the radius."""
    first, last = result.spread(0), result.spread(-1)
    lead = [
        f"At radius {result.radii[0]:g} the words differ by a factor of {first:.3g}, at {result.radii[-1]:g} "
        f"by a factor of {last:.3g}.",
        "With a large radius any word can be moved to the same place, so that words differ most at small radii.",
    ]
    if result.text is not None:
        lead.append(f"The text: {result.text['text']}")
    caption = ["Each line is a word: the largest change that a search found within the radius; more may be possible."]
    if any(word.flip is not None for word in result.words):
        caption.append("A star: here a move of that word was found to change the prediction.")
    if any(None not in word.upper for word in result.words):
        caption.append("Dashed: no move within the radius can exceed this.")
    shown = picture(result.plot().figure, "The change against the radius", caption)
    table = Grid.of("All words and radii", "profile", result.records())
    about = {"seed": result.seed, "evaluations": result.evaluations}
    title = f"Words of {result.map.get('model', result.map['map'])} against the radius"
    return Report(title, lead, (shown, table, _facts(result, about)))


def _facts(result: FlipRadii | RadiusProfile, about: dict[str, Any]) -> Facts:
    """Say how a result was made."""
    made = result.made or {}
    all_of = {**result.map, **about, "checked": result.checked}
    known = [(name, str(value)) for name, value in all_of.items() if value is not None]
    known += facts_of(made) or [("version", f"wordsway {result.version}")]
    return Facts("How it was made", known, made.get("command"))
