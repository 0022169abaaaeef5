"""Flip radii and profiles over the radius as reports."""

import math
from dataclasses import replace
from typing import Any

from wordsway.measures.flip_radii import FlipRadii, WordFlip, flipped_by
from wordsway.measures.profile_result import RadiusProfile, WordProfile
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name
from wordsway.report.coloured import ColouredWord, bars_of, coloured_text
from wordsway.report.measurement import facts_of
from wordsway.report.parts import Facts, Grid, Report, Words
from wordsway.report.svg import picture
from wordsway.support.digits import probability_name, three
from wordsway.support.plotting import MOST_BARS

_COLOURS = {  # of the picture of flips, with the field that each of them shows
    "Blue: the smallest move found that changes the prediction; a smaller one may exist.": "radius",
    "Orange: the nearest real word, of those tried, that changes it.": "real",
    "Green: no move up to there can change it.": "certified",
}


def of_flips(result: FlipRadii) -> Report:
    """Make the report of flip radii."""
    drawn = result.ranked[:MOST_BARS]
    caption = [says for says, of in _COLOURS.items() if any(getattr(word, of) for word in drawn)]
    shown = picture(result.plot().figure, "How far each word must move", caption)
    rows = flip_rows(result)
    table = Grid.of("All words", "flips", rows, more="\n".join(result.column_notes))
    about = {"searched up to a move of": result.limit, "seed": result.seed, "gradients": result.gradients}
    title = f"How far a word must move to flip {result.map.get('model', result.map['map'])}"
    text = [] if result.text is None else [_flip_words(result, result.text)]
    return Report(title, _flip_lead(result), (*text, shown, table, _facts(result, about)))


def _flip_lead(result: FlipRadii) -> list[str]:
    """Say the prediction, and what is nearest to changing it."""
    what = "Prediction" if result.kind == "class" else result.kind.capitalize()
    sure = "" if result.probability is None else f", probability {probability_name(result.probability)}"
    lead = [f"{what}: \u201c{result.prediction}\u201d{sure}."]
    nearest = result.by_real[0]
    if nearest.real is not None:
        lead.append(
            f"The nearest real word that changes it: \u201c{nearest.real.text}\u201d for \u201c{nearest.text}\u201d "
            f"(word {nearest.word}), {three(nearest.real.radius)} times the word's own norm away."
        )
    if result.flipped:
        first = result.flipped[0]
        lead.append(
            f"The smallest change of an embedding that was found to change it is of \u201c{first.text}\u201d (word "
            f"{first.word}): {three(first.radius)} times its own norm changes it to \u201c{first.to}\u201d."
        )
    missing = len(result.words) - len(result.flipped)
    if missing:
        lead.append(
            f"For {missing} of {len(result.words)} words no change of up to {result.limit:g} times their norm was "
            "found that does."
        )
    if any(math.isinf(word.certified) for word in result.words):
        count = sum(math.isinf(word.certified) for word in result.words)
        lead.append(f"It is proven that no move of any size of {count} of the words can change it.")
    return [*lead, NOT_IMPORTANCE]


def _flip_words(result: FlipRadii, source: dict[str, Any]) -> Words:
    """The text, coloured by what words are ordered by: the nearest real word that changes the prediction, or the
    smallest change of the embedding that does."""
    words = [
        ColouredWord(word.word, word.span, word.text, rank, _shade(result, word), _flip_notes(word))
        for word, rank in zip(result.ranked, result.ranks, strict=True)
    ]
    if not result.by_real_words:
        least = result.words[0].radius
        high = "-" if least is None else f"a change of {three(least)} flips the prediction"
        return coloured_text(source, words, None, (f"no flip found up to {result.limit:g}", high), "furthest")
    nearest = result.by_real[0].real
    high = "-" if nearest is None else f"a real word at {three(nearest.radius)} flips the prediction"
    return coloured_text(source, words, None, ("no real word found", high), "furthest")


def _shade(result: FlipRadii, word: WordFlip) -> float:
    """The value that a word is coloured by: the less it takes, the larger."""
    if result.by_real_words:
        return word.closeness
    return result.limit - (result.limit if word.radius is None else min(word.radius, result.limit))


def _flip_notes(word: WordFlip) -> tuple[str, ...]:
    """Say what is known of a word, a line each."""
    if word.real is not None:
        notes = [f"flipped by \u201c{word.real.text}\u201d at {three(word.real.radius)}"]
    else:
        notes = [f"no real word that flips it ({word.untried or f'{word.tried:,} tried'})"]
    notes.append("no flip found" if word.radius is None else f"flips at {three(word.radius)}")
    if word.lowest is not None:
        notes.append(f"P falls to {probability_name(word.lowest)}")
    if word.best is not None:
        notes.append(f"best word \u201c{word.best.text}\u201d: P {probability_name(word.best.probability)}")
    return tuple(notes)


def flip_rows(result: FlipRadii) -> list[dict[str, Any]]:
    """Make the rows of the table, in the columns and the order that the command prints."""
    places = dict(zip(result.words, result.flip_ranks, strict=True)) if result.by_real_words else {}
    return [_flip_row(word, rank, places.get(word)) for word, rank in zip(result.ranked, result.ranks, strict=True)]


def _flip_row(word: WordFlip, rank: tuple[int, int], place: tuple[int, int] | None) -> dict[str, Any]:
    """Make a row of the table; `place` is the rank by flips at, where words are in another order."""
    return {
        "rank": rank_name(*rank),
        "word": word.text,
        "place": word.word,
        "flipped by": flipped_by(word),
        "at": None if word.real is None else word.real.radius,
        "flips at": word.radius,
        "rank by flips at": None if place is None else rank_name(*place),
        "P falls to": word.lowest,
        "best word": None if word.best is None else word.best.text,
        "P": None if word.best is None else word.best.probability,
        "to": word.to,
        "certified": word.certified,
    }


def of_profile(result: RadiusProfile) -> Report:
    """Make the report of a profile over the radius."""
    caption = ["Each line is a word: the largest change that a search found within the radius; more may be possible."]
    if any(word.flip is not None for word in result.words):
        caption.append("A star: here a move of that word was found to change the prediction.")
    if any(None not in word.upper for word in result.words):
        caption.append("Dashed: no move within the radius can exceed this.")
    several = len(result.radii) > 2  # bars and the table say it all of one or two
    shown = [picture(result.plot().figure, "The change against the radius", caption)] if several else []
    rows = [_profile_row(result, word, rank) for word, rank in zip(result.ranked, result.ranks, strict=True)]
    table = Grid.of("All words", "profile", rows)
    about = {"seed": result.seed, "evaluations": result.evaluations}
    title = f"Words of {result.map.get('model', result.map['map'])} against the radius"
    text = [] if result.text is None else [_profile_words(result, result.text)]
    return Report(title, _profile_lead(result), (*text, *shown, table, _facts(result, about)))


def _profile_lead(result: RadiusProfile) -> list[str]:
    """Say how far words differ, and how they are ordered."""
    first, last = result.spread(0), result.spread(-1)
    said = f"At radius {result.radii[0]:g} the words differ by a factor of {three(first)}"
    said += "." if len(result.radii) == 1 else f", at {result.radii[-1]:g} by a factor of {three(last)}."
    named = "model" in result.map
    about = [f"Relative change of {result.map['model']}, output {result.map['output']}."] if named else []
    return [*about, said, *([result.reading] if named else []), NOT_IMPORTANCE]


def _profile_words(result: RadiusProfile, source: dict[str, Any]) -> Words:
    """The text, coloured by the change at the smallest radius, with bars of the largest one."""
    words = [
        ColouredWord(
            word.word, word.span, word.text, rank, word.lower[0],
            tuple(f"radius {r:g}: {three(value)}" for r, value in zip(result.radii, word.lower, strict=True)),
            (word.lower[-1], word.upper[-1]),
        )
        for word, rank in zip(result.ranked, result.ranks, strict=True)
    ]  # fmt: skip
    caption = f"Radius {result.radii[-1]:g}: what was found (dark) and what is proven to be the most (pale)"
    high = f"largest effect at radius {result.radii[0]:g}, {three(words[0].value)}"
    coloured = coloured_text(source, words, None, ("0", high), f"smallest effect there, {three(words[-1].value)}")
    return replace(coloured, bars=bars_of(words), caption=caption)


def _profile_row(result: RadiusProfile, word: WordProfile, rank: tuple[int, int]) -> dict[str, Any]:
    """Put a word's numbers at all radii side by side."""
    row: dict[str, Any] = {"rank": rank_name(*rank), "word": word.text, "place": word.word}
    row |= {f"radius {radius:g}": value for radius, value in zip(result.radii, word.lower, strict=True)}
    row |= {f"at most, {radius:g}": value for radius, value in zip(result.radii, word.upper, strict=True)}
    return {**row, "flips at": word.flip}


def _facts(result: FlipRadii | RadiusProfile, about: dict[str, Any]) -> Facts:
    """Say how a result was made."""
    made = result.made or {}
    all_of = {**result.map, **about, "checked": result.checked}
    known = [(name, str(value)) for name, value in all_of.items() if value is not None]
    known += facts_of(made) or [("version", f"wordsway {result.version}")]
    return Facts("How it was made", known, made.get("command"))
