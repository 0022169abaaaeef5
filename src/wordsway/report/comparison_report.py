"""Results side by side as a report."""

from wordsway.measures.comparison import Comparison
from wordsway.measures.ranks import NOT_IMPORTANCE
from wordsway.report.measurement import facts_of
from wordsway.report.parts import Facts, Grid, Report
from wordsway.report.svg import picture


def of_comparison(result: Comparison) -> Report:
    """Make the report of results side by side."""
    ranked = result.ranked_by
    lead = [f"{result.finding[:1].upper()}{result.finding[1:]}. {result.reading}"]
    lead += [f"{side.name}: {side.about}." for side in result.sides]
    lead += [
        f"{quantity[:1].upper()}{quantity[1:]}." for quantity in dict.fromkeys(side.quantity for side in result.sides)
    ]
    lead += result.only_lines
    lead += [NOT_IMPORTANCE] if ranked else []
    scale = "Both panels have one scale" if result.same else "Each panel has an axis of its own"
    caption = [f"{scale}; rows are in the order of the first result."]
    if ranked:
        caption.append(f"{ranked[:1].upper()}{ranked[1:]}")
    if result.same:
        caption.append("Differences are second minus first; a hollow dot is a tie.")
    shown = picture(result.plot().figure, "Side by side", caption)
    table = Grid.of("All rows", "comparison", result.records())
    made = result.made or {}
    known = facts_of(made) or [("version", f"wordsway {result.version}")]
    facts = Facts("How it was made", known, made.get("command"))
    return Report(result.title, lead, (shown, table, facts))
