"""Results other than measurements as reports, from what their files say."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from wordsway.measures.layer_profile import LayerProfile
from wordsway.measures.results import from_values
from wordsway.report.draws_report import of_draws
from wordsway.report.measurement import facts_of, of_measurement
from wordsway.report.parts import Facts, Grid, Report
from wordsway.report.radius_results import of_flips, of_profile
from wordsway.report.svg import picture
from wordsway.support.errors import InputError
from wordsway.support.plotting import bars, heat, new_axes

Values = Mapping[str, Any]


def of_values(values: Any, name: str) -> Report:
    """The report of a result by its JSON values; `name` is how an error calls it."""
    found = values.get("format") if isinstance(values, dict) else None
    if found not in _KINDS:
        known = "measure, flip, layers, attention, substitute (-o result.json) and runs' folders"
        raise InputError(f"{name} has the format {found!r}, which is no result that a report is made of: {known}")
    try:
        return _KINDS[found](values)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{name} is a damaged result: {type(error).__name__} {error}") from None


def _layers(values: Values) -> Report:
    fields: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k not in ("format", "made")
    }
    profile = LayerProfile(**fields)
    caption = [
        "Orange: the largest change that a search found, layer by layer; at least that much is possible.",
        "Grey: random moves of the same size. The gap between the two is how special the worst case is.",
    ]
    if profile.real_word is not None:
        caption.append(f"Green: towards the real word \u201c{profile.replacement}\u201d, the best of those tried.")
    shown = picture(profile.plot().figure, "Layer by layer", caption)
    last = profile.searched[-1]
    lead = [
        f"A move of \u201c{profile.word_text}\u201d (word {profile.word + 1}) of norm {profile.radius:.4g} changes the "
        f"last layer by at least {last:.4g} times its norm; random moves of that size by {profile.noise[-1]:.3g}.",
        f"The text: {profile.text}",
    ]
    table = Grid.of("All layers", "layers", profile.rows())
    facts = {"model": profile.model, "moved at": profile.at, "seed": profile.seed, "evaluations": profile.evaluations}
    return Report(f"One word through the layers of {profile.model}", lead, (shown, table, _facts(values, facts)))


def _attention(values: Values) -> Report:
    maps = {name: (torch.tensor(one["weights"]), one["tokens"]) for name, one in values["maps"].items()}
    side = min(8.0, 2.4 + 0.2 * max(len(names) for _, names in maps.values()))
    axes = new_axes(side * len(maps) + 0.6, side)
    figure = axes.figure
    figure.clear()
    places = list(figure.subplots(1, len(maps), squeeze=False)[0])
    most = max(float(weights.max()) for weights, _ in maps.values())
    word = values.get("word_text")
    titles = {
        "before": "as it is" if word else "the text",
        "after": f"\u201c{word}\u201d moved" if word else "the other",
    }
    marked = [k for k, name in enumerate(maps["before"][1]) if name == word]
    images = [
        heat(place, weights, names, titles[name], most, marked if word else ())
        for place, (name, (weights, names)) in zip(places, maps.items(), strict=True)
    ]
    figure.colorbar(images[0], ax=places, shrink=0.7, label="attention weight (row looks at column)")
    head = "the mean over heads" if values.get("head") is None else f"head {values['head']}"
    caption = [
        f"Layer {values['layer']}, {head}. A row says where a token looks; dark is much.",
        "A dark column is a token that draws attention from everywhere.",
    ]
    rows = [
        {"map": name, "from": a, "to": b, "weight": weight}
        for name, (weights, names) in maps.items()
        for a, line in zip(names, weights.tolist(), strict=True)
        for b, weight in zip(names, line, strict=True)
    ]
    parts: list[Any] = [picture(figure, "Where the model looks", caption)]
    if values.get("targets"):
        parts.append(Grid.of("What a move can draw", "targets", values["targets"]))
    parts += [
        Grid.of("All weights", "weights", rows),
        _facts(values, {"model": values["model"], "text": values["text"]}),
    ]
    lead = [f"The text: {values['text']}"] + ([f"Beside it: {values['other']}"] if values.get("other") else [])
    return Report(f"Attention of {values['model']}", lead, parts)


def _substitutions(values: Values) -> Report:
    rows = [
        {k: v for k, v in one.items() if k not in ("word", "text")} | {"place": one["word"] + 1}
        for one in values["top"]
    ]
    shown = sorted(values["top"], key=lambda one: -one["change"])[:20]
    names = [f"{one['before']} \u2192 {one['after']}" for one in shown]
    marks = [bool(one["flips"]) for one in shown]
    axes = bars(None, names, [one["change"] for one in shown], marks, "relative change", "")
    flips = " Orange, hatched: the prediction flips." if any(marks) else ""
    caption = [f"Each bar is a text with one word replaced.{flips}"]
    tried = sum(one["evaluated"] for one in values["tried"])
    exhaustive = all(one["exhaustive"] for one in values["tried"])
    lead = [f"The text: {values['text']}"]
    if values["top"]:
        best = shown[0]
        lead.append(
            f"\u201c{best['after']}\u201d in the place of \u201c{best['before']}\u201d changes {values['output']} by "
            f"{best['change']:.4g} times its norm, the most of {tried:,} words tried"
            + ("." if exhaustive else "; a better one may have been missed.")
        )
    if values.get("prediction") is not None:
        lead.append(f"Now the model says {values['prediction']!r} ({values['probability']:.3f}).")
    parts = [picture(axes.figure, "Real words that move it most", caption)] if values["top"] else []
    counts = [
        {"word": one["text"], **{k: one[k] for k in ("candidates", "evaluated", "exhaustive", "flips")}}
        for one in values["tried"]
    ]
    facts = {"model": values["model"], "output": values["output"], "seed": values["seed"]}
    grids = [Grid.of("All replacements", "replacements", rows), Grid.of("What was tried", "tried", counts)]
    return Report(f"Real words against {values['model']}", lead, [*parts, *grids, _facts(values, facts)])


def _substitution(values: Values) -> Report:
    worst = of_measurement(from_values(dict(values["worst"]), "the worst case"))
    low = "" if values["share_at_least"] is None else f"{values['share_at_least']:.1%} to "
    lead = [
        f"\u201c{values['after']}\u201d in the place of \u201c{values['before']}\u201d (word {values['word'] + 1}) "
        f"changes the features by {values['change']:.4g} times their norm: "
        f"{low}{values['share']:.1%} of the worst case.",
        f"It moves the word by {values['size']:.2f} radii.",
    ]
    if values.get("random") is not None:
        lead.append(
            f"Random words there do {values['random']['mean']:.3g} on average; {values['above_random']:.0%} of "
            f"{values['random']['draws']} do less than this one."
        )
    return Report("One substitution beside the worst case", lead, worst.parts)


def _prompts(values: Values) -> Report:
    rows = [{"likeliest for": name, "token": token, "before": a, "after": b}
            for name in ("before", "after") for token, a, b in values[f"top_{name}"]]  # fmt: skip
    answers = [{"prompt": values[name], "answer": values[f"answer_{name}"]} for name in ("before", "after")]
    lead = [f"The next token's distribution changes by {values['kl']:.4g} nats (Kullback-Leibler)."]
    parts = (Grid.of("Answers", "answers", answers), Grid.of("The next token", "next-token", rows),
             _facts(values, {"model": values["model"], "chat template": values["chat"]}))  # fmt: skip
    return Report(f"Two prompts to {values['model']}", lead, parts)


def _facts(values: Values, facts: Mapping[str, Any]) -> Facts:
    made = values.get("made") or {}
    known = [(name, str(value)) for name, value in facts.items() if value is not None]
    known += facts_of(made) or [("version", f"wordsway {values.get('version', 'unknown')}")]
    return Facts("How it was made", known, made.get("command"))


_KINDS: dict[str | None, Callable[[Values], Report]] = {
    "wordsway.sensitivity/2": lambda values: of_measurement(from_values(dict(values), "the result")),
    "wordsway.layers/1": _layers,
    "wordsway.attention/1": _attention,
    "wordsway.substitutions/1": _substitutions,
    "wordsway.substitution/1": _substitution,
    "wordsway.prompts/1": _prompts,
    "wordsway.flip-radius/1": of_flips,
    "wordsway.radius-profile/1": of_profile,
    "wordsway.draws/1": of_draws,
}
