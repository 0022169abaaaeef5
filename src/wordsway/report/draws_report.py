"""Words over several draws of the weights as a report."""

from dataclasses import replace
from typing import Any

from wordsway.measures.draws_result import DrawComparison, MapDraws, WordDraws
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name
from wordsway.report.coloured import ColouredWord, bars_of, coloured_text
from wordsway.report.measurement import detail_of, facts_of
from wordsway.report.parts import Facts, Grid, Report, Words
from wordsway.report.svg import picture
from wordsway.support.digits import three
from wordsway.support.names import either


def of_draws(result: DrawComparison) -> Report:
    """Make the report of a comparison of draws."""
    caption = [
        "Bars: the mean over draws of the largest relative change that a search found; whiskers: its sd.",
        "Pale: up to the mean of the proven bounds, which no change can exceed.",
    ]
    shown = picture(result.plot().figure, "Maps side by side", caption)
    table = Grid.of("All words", "draws", [_row(result, word) for word in result.maps[0].ranked])
    title = f"How far one word moves {either((each.name for each in result.maps), 'and')}"
    return Report(title, _lead(result), (_words(result), shown, table, _facts(result)))


def _words(result: DrawComparison) -> Words:
    """The text, coloured by the first map."""
    first = result.maps[0]
    words = [
        ColouredWord(
            word.word, word.span, word.text, (word.rank, word.tied), word.mean, _notes(result, word),
            (word.mean, word.proven),
        )
        for word in first.words
    ]  # fmt: skip
    details = {each.word: detail_of(result.first, each) for each in result.first.explained or ()}
    caption = f"{first.name}: what was found for each word, over draws (dark), and what is proven to be the most (pale)"
    return replace(coloured_text(result.text, words, details), bars=bars_of(words), caption=caption)


def _notes(result: DrawComparison, about: WordDraws) -> tuple[str, ...]:
    """Say what each map gives for a word, a line each."""
    notes = []
    for each, word in _on_maps(result, about):
        spread = f", sd {three(word.sd)}" if len(word.lower) > 1 else ""
        proven = "" if word.proven is None else f", at most {three(word.proven)}"
        notes.append(f"{each.name}: {three(word.mean)}{spread}{proven}")
    return tuple(notes)


def _row(result: DrawComparison, about: WordDraws) -> dict[str, Any]:
    """Put a word's numbers on all maps side by side."""
    row: dict[str, Any] = {"word": about.text, "place": about.word}
    for each, word in _on_maps(result, about):
        row |= {f"{each.name} rank": rank_name(word.rank, word.tied), each.name: word.mean}
        row |= {f"{each.name} sd": word.sd if len(word.lower) > 1 else None, f"{each.name} at most": word.proven}
    return row


def _on_maps(result: DrawComparison, about: WordDraws) -> list[tuple[MapDraws, WordDraws]]:
    return [(each, next(word for word in each.words if word.word == about.word)) for each in result.maps]


def _lead(result: DrawComparison) -> list[str]:
    count = len(result.seeds)
    draws = "1 draw of the weights" if count == 1 else f"{count} independent draws of the weights"
    lead = [f"{result.headline} ({draws}; colours: {result.maps[0].name})."]
    if count < result.asked:
        lead.append(f"{result.asked} draws were asked for; more than {count} would have taken too long.")
    lead += [_separated(result, each) for each in result.maps]
    return [*lead, NOT_IMPORTANCE]


def _separated(result: DrawComparison, each: MapDraws) -> str:
    """Say what is separated, and the interval."""
    top = each.top
    typical = "" if each.typical is None else f"; typical (random) change {each.typical:.3g}"
    said = f"{each.name}: {each.mean:.3g} on average over words{typical}."
    if len(each.words) < 2:
        return said
    if len(top) == 1:
        said += f" \u201c{top[0].text}\u201d is separated from all other words."
    else:
        said += f" {len(top)} words share the first place: they are not separated."
    if each.margin is None:
        return said + " Two words are separated where the lower bound of one is above the upper bound of the other."
    return said + (
        f" Means must differ by more than {each.margin:.3g} ({result.level:.0%} intervals, for all pairs together"
        + (f", and {each.misses:.0%} for what the search may miss)." if each.misses else ").")
    )


def _facts(result: DrawComparison) -> Facts:
    made = result.made or {}
    known = [(each.name, ", ".join(f"{key} {value}" for key, value in each.map.items())) for each in result.maps]
    keys = ("encoder", "revision", "layer", "normalized")
    source = ", ".join(f"{key} {result.text[key]}" for key in keys if result.text.get(key) is not None)
    known += [("encoded by", source), ("radius", f"{result.radius:g} of a word's own norm")]
    known.append(("seeds of the draws", ", ".join(map(str, result.seeds))))
    known += facts_of(made) or [("version", f"wordsway {result.version}")]
    return Facts("How it was made", known, made.get("command"))
