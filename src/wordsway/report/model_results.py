"""Results other than measurements as reports."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wordsway import __version__
from wordsway.report.comparison_report import of_comparison
from wordsway.report.draws_report import of_draws
from wordsway.report.measurement import facts_of, of_measurement
from wordsway.report.parts import Facts, Grid, Report
from wordsway.report.radius_results import of_flips, of_profile
from wordsway.report.svg import picture
from wordsway.report.texts_report import of_corpus, of_texts
from wordsway.support.digits import three
from wordsway.support.result import Result

if TYPE_CHECKING:  # a page of one kind of result does not need the others, nor torch
    from wordsway.measures.attention_maps import AttentionMaps
    from wordsway.measures.best_words import Substitutions
    from wordsway.measures.compare_word import Substitution
    from wordsway.measures.layer_profile import LayerProfile
    from wordsway.measures.prompts import PromptChange


def of_result(result: Result) -> Report:
    """Make the report of a result. A kind that has no page of its own gets its summary, picture and table."""
    page = _KINDS.get(type(result).__name__)
    return _plain(result) if page is None else page(result)


def _plain(result: Result) -> Report:
    kind = type(result).__name__
    shown = picture(result.plot().figure, "Picture", [])
    grid = Grid.of("Table", kind.lower(), result.records())
    return Report(kind, [result.summary()], (shown, grid, _facts(result, {})))


def _layers(profile: "LayerProfile") -> Report:
    caption = [
        "Orange: the largest change that a search found, layer by layer; at least that much is possible.",
        "Grey: random moves of the same size. The gap between the two is how special the worst case is.",
    ]
    if profile.real_word is not None:
        caption.append(f"Green: towards the real word \u201c{profile.replacement}\u201d, the best of those tried.")
    shown = picture(profile.plot().figure, "Layer by layer", caption)
    last = profile.searched[-1]
    lead = [
        f"A move of \u201c{profile.word_text}\u201d (word {profile.word}) of norm {three(profile.radius)} changes the "
        f"last layer by at least {three(last)} times its own norm; random moves of that size by "
        f"{three(profile.noise[-1])}.",
        f"The text: {profile.text}",
    ]
    table = Grid.of("All layers", "layers", profile.records())
    facts = {"model": profile.model, "moved at": profile.at, "seed": profile.seed, "evaluations": profile.evaluations}
    return Report(f"One word through the layers of {profile.model}", lead, (shown, table, _facts(profile, facts)))


def _attention(result: "AttentionMaps") -> Report:
    maps = {"before": result.shown()} | ({"after": result.shown(True)} if result.compares else {})
    head = "the mean over heads" if result.head is None else f"head {result.head}"
    caption = [
        f"Layer {result.layer}, {head}. A row says where a token looks; dark is much.",
        "A dark column is a token that draws attention from everywhere.",
    ]
    rows = [
        {"map": name, "from": a, "to": b, "weight": weight}
        for name, (weights, names) in maps.items()
        for a, line in zip(names, weights.tolist(), strict=True)
        for b, weight in zip(names, line, strict=True)
    ]
    parts: list[Any] = [picture(result.plot().figure, "Where the model looks", caption)]
    if result.targets:
        parts.append(Grid.of("What a move can draw", "targets", result.targets))
    parts += [
        Grid.of("All weights", "weights", rows),
        _facts(result, {"model": result.model, "text": result.text}),
    ]
    lead = [f"The text: {result.text}"] + ([f"Beside it: {result.other}"] if result.other else [])
    return Report(f"Attention of {result.model}", lead, parts)


def _substitutions(result: "Substitutions") -> Report:
    rows = [{k: v for k, v in row.items() if k not in ("word", "text")} | {"place": row["word"]}
            for row in result.records()]  # fmt: skip
    flips = " Orange, hatched: the prediction flips." if any(one.flips for one in result.top) else ""
    tried = sum(one.evaluated for one in result.tried)
    lead = [f"The text: {result.text}"]
    if result.top:
        best = result.best
        lead.append(
            f"\u201c{best.after}\u201d in the place of \u201c{best.before}\u201d changes the output "
            f"({result.output}) by {three(best.change)} times its own norm, the most of {tried:,} words tried"
            + ("." if all(one.exhaustive for one in result.tried) else "; a better one may have been missed.")
        )
    if result.prediction is not None:
        lead.append(f"Now the model says {result.prediction!r} ({result.probability:.3f}).")
    caption = [f"Each bar is a text with one word replaced.{flips}"]
    parts = [picture(result.plot().figure, "Real words that move it most", caption)] if result.top else []
    counts = [
        {"word": one.text, **{k: getattr(one, k) for k in ("candidates", "evaluated", "exhaustive", "flips")}}
        for one in result.tried
    ]
    facts = {"model": result.model, "output": result.output, "seed": result.seed}
    grids = [Grid.of("All replacements", "replacements", rows), Grid.of("What was tried", "tried", counts)]
    return Report(f"Real words against {result.model}", lead, [*parts, *grids, _facts(result, facts)])


def _substitution(result: "Substitution") -> Report:
    worst = of_measurement(result.worst)
    low = "" if result.share_at_least is None else f"{result.share_at_least:.1%} to "
    lead = [
        f"\u201c{result.after}\u201d in the place of \u201c{result.before}\u201d (word {result.word}) "
        f"changes the features by {three(result.change)} times their norm: "
        f"{low}{result.share:.1%} of the worst case.",
        f"It moves the word by {result.size:.2f} radii.",
    ]
    if result.random is not None:
        lead.append(
            f"Random words there do {result.random.mean:.3g} on average; {result.above_random:.0%} of "
            f"{result.random.draws} do less than this one."
        )
    return Report("One substitution beside the worst case", lead, worst.parts)


def _prompts(result: "PromptChange") -> Report:
    answers = [
        {"prompt": result.before, "answer": result.answer_before},
        {"prompt": result.after, "answer": result.answer_after},
    ]
    lead = [f"The next token's distribution changes by {three(result.kl)} nats (Kullback-Leibler)."]
    shown = picture(result.plot().figure, "The likeliest next tokens", ["Blue: the first prompt. Orange: the second."])
    parts = (Grid.of("Answers", "answers", answers), shown, Grid.of("The next token", "next-token", result.records()),
             _facts(result, {"model": result.model, "chat template": result.chat}))  # fmt: skip
    return Report(f"Two prompts to {result.model}", lead, parts)


def _facts(result: Any, facts: Mapping[str, Any]) -> Facts:
    made = getattr(result, "made", None) or {}
    known = [(name, str(value)) for name, value in facts.items() if value is not None]
    known += facts_of(made) or [("version", f"wordsway {getattr(result, 'version', __version__)}")]
    return Facts("How it was made", known, made.get("command"))


_KINDS: dict[str, Callable[[Any], Report]] = {
    "Sensitivity": of_measurement,
    "LayerProfile": _layers,
    "AttentionMaps": _attention,
    "Substitutions": _substitutions,
    "Substitution": _substitution,
    "PromptChange": _prompts,
    "FlipRadii": of_flips,
    "RadiusProfile": of_profile,
    "DrawComparison": of_draws,
    "Comparison": of_comparison,
    "Corpus": of_corpus,
    "TextResults": of_texts,
}
