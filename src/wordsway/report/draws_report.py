"""Words over several draws of the weights as a report."""

from wordsway.measures.draws_result import DrawComparison, MapDraws
from wordsway.measures.ranks import NOT_IMPORTANCE
from wordsway.report.measurement import Measured, coloured_text, detail_of, facts_of
from wordsway.report.parts import Facts, Grid, Report
from wordsway.report.svg import picture
from wordsway.support.names import either


def of_draws(result: DrawComparison) -> Report:
    """Make the report of a comparison of draws."""
    first = result.maps[0]
    words = [
        Measured(word.word, word.span, word.text, (word.rank, word.tied), word.mean, word.proven, first.reason)
        for word in first.words
    ]
    details = {each.word: detail_of(result.first, each) for each in result.first.explained or ()}
    caption = [
        "Bars: the mean over draws of the largest relative change that a search found; whiskers: its sd.",
        "Pale: up to the mean of the proven bounds, which no change can exceed.",
    ]
    shown = picture(result.plot().figure, "Maps side by side", caption)
    table = Grid.of("All words", "draws", result.records())
    title = f"How far one word moves {either((each.name for each in result.maps), 'and')}"
    return Report(title, _lead(result), (coloured_text(result.text, words, details), shown, table, _facts(result)))


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
        said += f" {len(top)} words may be the first: they are not separated."
    if each.margin is None:
        return said + " Two words are separated where the lower bound of one is above the upper bound of the other."
    return said + (
        f" Means must differ by more than {each.margin:.3g} ({result.level:.0%} intervals, for all pairs together)."
    )


def _facts(result: DrawComparison) -> Facts:
    made = result.made or {}
    known = [(each.name, ", ".join(f"{key} {value}" for key, value in each.map.items())) for each in result.maps]
    keys = ("encoder", "revision", "layer", "normalized")
    source = ", ".join(f"{key} {result.text[key]}" for key in keys if result.text.get(key) is not None)
    known += [("encoded by", source), ("radius", f"{result.radius:g} of a word's own length")]
    known.append(("seeds of the draws", ", ".join(map(str, result.seeds))))
    known += facts_of(made) or [("version", f"wordsway {result.version}")]
    return Facts("How it was made", known, made.get("command"))
