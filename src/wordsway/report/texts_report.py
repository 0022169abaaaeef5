"""Many texts as a report."""

from typing import Any

from wordsway.measures.ranks import NOT_IMPORTANCE
from wordsway.measures.text_results import TextResults
from wordsway.report.measurement import facts_of
from wordsway.report.parts import Facts, Grid, Heading, Report
from wordsway.report.svg import picture
from wordsway.studies.corpus import COLUMNS, Corpus
from wordsway.support.digits import count_of

_TEXTS = {
    "text_number": "number",
    "real_of": "replaced",
    "real_word": "by real word",
    "real_distance": "distance",
    "first_word": "changed",
    "flips_at": "flips at",
    "flips_to": "flips to",
    "flipped": "words that flip",
    "real_flips": "by a real word",
}
_CHANGED = {"first_word": "changed most", "mean": "mean of its words", "flips": "words that flip"}
_WORDS = {"text": "word", "occurrences": "places", "low": "95% from", "high": "95% to", "flips": "share that flips"}
_FLIPPED = {"value": "flips at (mean)", "flipped": "share of places with a flip", "real": "share with a real word"}

_NOTE = (
    "The nearest real word that flips the prediction, in the place of which word and at which distance; then the word "
    "that needs the smallest change of its embedding, and that change. Both are in units of the embedding's own norm."
)


def of_corpus(result: Corpus) -> Report:
    """Make the report of many texts."""
    parts: list[Any] = []
    for subject in result.subjects:
        if len(result.subjects) > 1:
            parts.append(Heading(subject, result.finding(subject)))
        parts += _about(result, subject)
    rows = [{k: v for k, v in row.items() if k != "text"} for row in result.records()]
    more = "The texts are in the table above; files that are saved as .csv or .parquet have them in every row."
    parts.append(Grid.of("Every word of every text", "words", rows, more=more))
    shown = [name for name in COLUMNS if any(name in row for row in rows)]
    parts.append(Facts("What the columns mean", [(name, COLUMNS[name]) for name in shown]))
    made = result.made or {}
    known = [("measured with", ", ".join(result.subjects)), ("budget", result.budget)]
    known += [(f"text {number} failed", error) for number, error in result.failed.items()]
    known += facts_of(made) or [("version", f"wordsway {result.version}")]
    parts.append(Facts("How it was made", known, made.get("command")))
    lead = [f"{count_of(len(result.rows), 'word')} of {count_of(result.measured, 'text')} were measured."]
    lead += [f"{len(result.empty)} texts are empty."] if result.empty else []
    lead += [f"{len(result.failed)} texts could not be measured; the errors are below."] if result.failed else []
    return Report(result.finding(), [*lead, NOT_IMPORTANCE], parts)


def of_texts(result: TextResults) -> Report:
    """Make the report of a call with a list of texts."""
    listed = [{"number": number, "text": text} for number, text in enumerate(result.texts, 1)]
    column = (result.compared or ((), ""))[1]
    shown = picture(result.plot().figure, f"{column}, text by text", ["text 1 is the first text, and so on."])
    made = result.made or {}
    known = facts_of(made) or [("version", f"wordsway {result.version}")]
    grids = [Grid.of("Texts", "texts", listed), Grid.of("All rows of all texts", "rows", result.records())]
    title = f"{type(result.results[0]).__name__}: {len(result.texts)} texts"
    return Report(title, [result.summary()], [shown, *grids, Facts("How it was made", known, made.get("command"))])


def _about(result: Corpus, subject: str) -> list[Any]:
    """Make the picture of a subject's words, the table of texts and the tables over all texts."""
    flips = result.separating(subject) == "flips_at"
    caption = ["Each dot is a word, counted without regard to case; in brackets: how often it occurs."]
    first = "Words that need the smallest change to flip the prediction" if flips else "Words with the largest change"
    if any(row["low"] is not None for row in result.words(subject)[:20]):
        caption.append("Lines are 95% intervals of the mean that hold together, for words of three texts or more.")
    shown = [picture(result.plot().figure, first, caption)] if subject == result.subjects[0] else []
    texts = [_named(row, _TEXTS | ({} if flips else _CHANGED)) for row in result.by_text(subject)]
    title = "What flips each text" if flips else "What changes each text most"
    names = _WORDS | (_FLIPPED if flips else {"value": "change over the mean of its text"})
    note = "Words are counted without regard to case. 95% intervals hold together, and are given from three texts on."
    words = [_named(row, names) for row in result.words(subject)]
    kinds = [_named(row, names | {"text": "kind of word"}) for row in result.kinds(subject)]
    grids = [
        Grid.of(title, "texts", texts, more=_NOTE if flips else ""),
        Grid.of("Words over all texts", "over-texts", words, more=note),
        Grid.of("Kinds of words over all texts", "kinds", kinds),
    ]
    return [*shown, *grids]


def _named(row: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in row.items()}
