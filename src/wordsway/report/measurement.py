"""A measurement as parts of a report."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name, tie_sentence
from wordsway.measures.results import Sensitivity, WordExplanation, WordSensitivity
from wordsway.report.coloured import ColouredWord, bars_of, coloured_text
from wordsway.report.parts import Detail, Facts, Grid, Report, Seen, Words
from wordsway.report.svg import picture
from wordsway.studies.panels.scene import COLOURS, MARKERS, clip
from wordsway.support.digits import three
from wordsway.support.plotting import lines

_MOST_SEEN = 24  # tokens listed with their attention
_MOST_LINES = 5


def of_measurement(result: Sensitivity) -> Report:
    """The whole report of a text, or of synthetic tokens."""
    parts: list[Any] = []
    if result.words and result.text is not None:
        parts.append(words_of(result))
        parts.append(_words_table(result))
        layered = [each for each in result.explained or () if each.layers is not None]
        if layered:
            parts.append(_layers(result, layered))
    if result.words is None or len(result.per_token) != len(result.words):
        parts.append(_tokens_table(result))
    parts.append(made_of(result))
    return Report(f"How far one word moves {name_of(result)}", lead_of(result), parts)


def name_of(result: Sensitivity) -> str:
    """The map in a few words."""
    if result.map["map"] == "pretrained":
        return f"{result.map['model']} ({result.map['output']})"
    return str(result.map["map"])


def lead_of(result: Sensitivity) -> list[str]:
    top = result.top_words
    what = f"token {result.token}"
    if top and top[0].tokens == result.tokens:  # a special token may do more than any word
        what = f"\u201c{clip(top[0].text)}\u201d (word {top[0].word})" if len(top) == 1 else "one word"
    if result.together is not None:
        what = f"tokens {', '.join(map(str, result.tokens))} together"
    said = [f"Changing {what} can alter the output by {result.lower:.3g} times its own size (found by search)."]
    if len(top) > 1:
        names = [f"\u201c{clip(word.text)}\u201d" for word in top]
        said.append(f"Largest possible effect found: {tie_sentence(names, result.spread)}")
    if result.upper is not None:
        odds = f" (except with probability {result.upper_failure:.2g})" if result.upper_failure else ""
        count = len(result.per_token)
        alone = "it" if result.together is None else "these tokens"
        whose = alone if count == 1 else f"any of the {count} tokens or words that were measured"
        said.append(f"No allowed change to {whose} can exceed {result.upper:.3g} (proven){odds}.")
    else:
        why = result.upper_reason
        said.append(
            "An upper bound was not asked for." if why == "not asked for" else f"There is no upper bound: {why}."
        )
    if result.random is not None:
        said.append(f"The typical (random) change of that size alters it by {result.random.mean:.3g}.")
    if result.words:
        said.append(NOT_IMPORTANCE)
    if not result.words and result.text is not None:
        said.append(f"The text: {clip(result.text['text'], 400)}")
    return said


def words_of(result: Sensitivity) -> Words:
    """The text of a measurement with its words coloured, and what is known of some of them."""
    assert result.words is not None and result.text is not None
    words = [
        ColouredWord(
            w.word, w.span, w.text, (w.rank, w.tied), w.lower, _bound_notes(w.lower, w.upper), (w.lower, w.upper)
        )
        for w in result.words
    ]  # fmt: skip
    details = {each.word: detail_of(result, each) for each in result.explained or ()}
    return replace(coloured_text(result.text, words, details, lines=True), bars=bars_of(words))


def _bound_notes(lower: float, upper: float | None) -> tuple[str, ...]:
    """Say a word's bounds, a line each."""
    return f"at least {three(lower)}", "no upper bound is known" if upper is None else f"at most {three(upper)}"


def detail_of(result: Sensitivity, explained: WordExplanation) -> Detail:
    before, after = explained.attention_before, explained.attention_after
    if before is None or after is None or result.text is None:
        return Detail(explained, (), 0, None)
    names = _token_names(result.text)
    seen = [Seen(name, a, b) for name, a, b in zip(names, before, after, strict=True)]
    kept = set(sorted(range(len(seen)), key=lambda k: -abs(seen[k].after - seen[k].before))[:_MOST_SEEN])
    listed = [each for k, each in enumerate(seen) if k in kept]
    return Detail(explained, listed, len(seen) - len(listed), (sum(before) / len(before), sum(after) / len(after)))


def _token_names(text: dict[str, Any]) -> list[str]:
    return [
        text["text"][start:end].strip() or name
        for name, (start, end) in zip(text["tokens"], text["offsets"], strict=True)
    ]


def _words_table(result: Sensitivity) -> Grid:
    ties = any(word.tied > 1 for word in result.words or ())  # then ranks are text, as "1-4" is no number
    best = {each.word: each.replacements[0] for each in result.explained or () if each.replacements}

    def row(word: WordSensitivity) -> dict[str, Any]:
        made = best.get(word.word)
        return {
            "rank": rank_name(word.rank, word.tied) if ties else word.rank,
            "word": word.text,
            "place": word.word,
            "at least": word.lower,
            "at most": word.upper,
            "best real word": None if made is None else made.text,
            "its change": None if made is None else made.change,
        }

    return Grid.of("All words", "words", [row(word) for word in result.ranked_words])


def _tokens_table(result: Sensitivity) -> Grid:
    names = None if result.text is None else _token_names(result.text)
    rows = [
        {
            "token": ", ".join(map(str, entry.tokens)),
            "text": None if names is None else " ".join(names[k] for k in entry.tokens),
            "at least": entry.lower,
            "at most": entry.upper,
            "radius": entry.radius,
            "evaluations": entry.evaluations,
        }
        for entry in sorted(result.per_token, key=lambda entry: -entry.lower)
    ]
    return Grid.of("All moves", "moves", rows)


def _layers(result: Sensitivity, explained: Sequence[WordExplanation]) -> Any:
    words = {word.word: word for word in result.ranked_words}
    order = list(words)
    shown = sorted(explained, key=lambda each: order.index(each.word))[:_MOST_LINES]
    series = {
        f"{words[each.word].text} (word {each.word})": (each.layers or (), COLOURS[k], MARKERS[k])
        for k, each in enumerate(shown)
    }
    layers = range(len(shown[0].layers or ()))
    labels = ("layer (0 is the input)", "relative change of its output")
    axes = lines(None, list(layers), series, {}, labels, "")
    caption = [
        "Each line is one move, the one that the search found for that word.",
        "Where a line rises, later layers pass the move on enlarged; where it falls, they absorb it.",
    ]
    return picture(axes.figure, "Layer by layer", caption)


def made_of(result: Sensitivity) -> Facts:
    made = result.made or {}
    radii = sorted({round(entry.radius, 4) for entry in result.per_token})
    reach = f"{radii[0]:g}" if len(radii) == 1 else f"{radii[0]:g} to {radii[-1]:g}"
    settings = ", ".join(f"{key} {value}" for key, value in result.map.items() if value is not None)
    facts = [
        ("map", settings),
        ("text", f"{result.n} tokens of {result.d} coordinates; moves of norm up to {reach}"),
        ("seed", str(result.seed)),
        ("search", f"{result.evaluations:,} evaluations in {result.seconds:.2f} s; checked by {result.checked}"),
    ]
    if result.text is not None:
        keys = ("encoder", "revision", "layer", "at", "normalized")
        source = ", ".join(f"{key} {result.text[key]}" for key in keys if result.text.get(key) is not None)
        facts.insert(1, ("encoded by", source))
    facts += facts_of(made)
    if not made:
        facts.append(("version", f"wordsway {result.version}"))
    return Facts("How it was made", facts, made.get("command"))


def facts_of(made: dict[str, Any]) -> list[tuple[str, str]]:
    """Versions, machine, memory and time, where they are known."""
    found = []
    if made.get("versions"):
        found.append(("versions", ", ".join(f"{name} {number}" for name, number in made["versions"].items())))
    if made.get("processor"):
        found.append(("machine", str(made["processor"])))
    if made.get("peak_bytes"):
        found.append(("memory", f"{made['peak_bytes'] / 1e9:.2f} GB at most"))
    if made.get("at"):
        found.append(("made at", str(made["at"])))
    return found
