"""Many texts as a report."""

from typing import Any

from wordsway.measures.ranks import NOT_IMPORTANCE
from wordsway.measures.text_results import TextResults
from wordsway.report.measurement import facts_of
from wordsway.report.parts import Facts, Grid, Heading, Report
from wordsway.report.svg import picture
from wordsway.studies.corpus import COLUMNS, Corpus
from wordsway.studies.corpus_pictures import MOST_DOTS
from wordsway.support.digits import count_of

# Columns of the tables of a page in their order, the most important first, with their titles.
_TEXTS = {
    "text_number": "no.",
    "text": "text",
    "real_of": "replaced",
    "real_word": "by",
    "real_distance": "distance",
    "first_word": "changed",
    "flips_at": "flips at",
    "prediction": "prediction",
    "probability": "P",
    "flips_to": "flips to",
    "flipped": "words that flip",
    "real_flips": "by a real word",
    "words": "words",
}
_CHANGED = {
    "text_number": "no.",
    "text": "text",
    "first_word": "changed most",
    "fall": "fall",
    "change": "change",
    "mean": "mean of its words",
    "prediction": "prediction",
    "probability": "P",
    "flips": "words that flip",
    "words": "words",
}
_COMPARED = {"low": "95% from", "high": "95% to"}
_COUNTED = {"texts": "texts", "occurrences": "places"}
_FLIPPED = {"flipped": "flip found", "real": "by a real word"}  # shares of the places
_LAST = ("prediction", "probability", "radius", "tried", "text", "subject")  # of the table of all words

_NOTE = (
    "The nearest real word that flips the prediction, in the place of which word and at which distance; then the word "
    "that needs the smallest change of its embedding, and that change. Both are in units of the embedding's own norm."
)
_EASIER = (
    "Easier than: the share of the other words of its text that need a larger change to flip it (0.5 is an average "
    "word), as a mean over texts, so that a text near a tie counts like any other. Words without a flip need more than "
    "those with one; texts without any flip are not compared. Flip found, by a real word: shares of its places."
)
_COUNTING = "Words are counted without regard to case. 95% intervals hold together, and are given from three texts on."


def of_corpus(result: Corpus) -> Report:
    """Make the report of many texts."""
    parts: list[Any] = []
    for subject in result.subjects:
        if len(result.subjects) > 1:
            parts.append(Heading(subject, result.finding(subject)))
        parts += _about(result, subject)
    rows = [_important_first(row) for row in result.records()]
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
    lead += [result.leading()] if result.leading() else []
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
    """Make the table of a subject's texts, the picture of them, and the tables over all texts."""
    flips = result.separating(subject) == "flips_at"
    texts = [_named(row, _TEXTS if flips else _CHANGED) for row in result.by_text(subject)]
    title = "What flips each text" if flips else "What changes each text most"
    value = {"text": "word", "value": "easier than" if flips else "change over the mean of its text"}
    names = value | _COMPARED | _COUNTED | (_FLIPPED if flips else {"flips": "share that flips"})
    note = f"{_EASIER} {_COUNTING}" if flips else _COUNTING
    words = [_named(row, names) for row in result.words(subject)]
    kinds = [_named(row, names | {"text": "kind of word"}) for row in result.kinds(subject)]
    return [
        Grid.of(title, "texts", texts, more=_NOTE if flips else ""),
        *([_picture(result, flips)] if subject == result.subjects[0] else []),
        Grid.of("Kinds of words over all texts", "kinds", kinds),
        Grid.of("Words over all texts", "over-texts", words, more=note),
    ]


def _picture(result: Corpus, flips: bool) -> Any:
    """Draw the texts of the first subject, and the words that several of them have."""
    caption = [f"Each dot is a text, beside it the word that {'needs least' if flips else 'changes it most'}."]
    if result.measured > MOST_DOTS:
        caption = ["How the texts are distributed."]
    if shared := result.shared_words():
        caption.append("At the right, each dot is a word; in brackets: how often it occurs.")
        if shared[0]["low"] is not None:
            caption.append("Lines are 95% intervals of the mean that hold together, for words of three texts or more.")
    title = "The smallest change that flips each text" if flips else "The largest change of each text"
    return picture(result.plot().figure, title, caption)


def _important_first(row: dict[str, Any]) -> dict[str, Any]:
    """Order a row of the table of all words: its text's number, the word and what was found, then the rest."""
    own = [name for name in row if name not in COLUMNS]
    first = [name for name in COLUMNS if name in row and name not in _LAST]
    return {name: row[name] for name in (*first, *own, *_LAST) if name in row and name != "text"}


def _named(row: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {title: row[name] for name, title in names.items() if name in row}
