"""`wordsway measure` with several models: the answer of each one in its own units, side by side a word."""

from pathlib import Path
from typing import Any

from wordsway.cli.help_pages import TextCommand
from wordsway.cli.measure_answers import measure_model
from wordsway.cli.measure_steps import option_names
from wordsway.cli.option_values import budget_of, check_of, numbers_of
from wordsway.cli.output import finish
from wordsway.cli.saving import check_files
from wordsway.cli.show_comparison import show_comparison
from wordsway.support.errors import InputError

_TAKEN = ("text", "file", "models", "of", "at", "radius", "budget", "max_tokens", "seed", "device", "out", "as_json",
          "quiet", "debug", "own", "word", "no_certificate")  # fmt: skip


def answer_models(text: str | None) -> None:
    """Measure one text with several models, as the command's options say, and show them side by side."""
    from wordsway.measures.compare_results import compare_results
    from wordsway.measures.question import Question
    from wordsway.measures.text_answer import SMALL

    asked = TextCommand.asked.get()
    for name, option in asked.given.items():
        if name not in _TAKEN:
            raise InputError(f"{option} does not go with several models; leave it out, or name one model")
    values = asked.values
    if text is None:
        raise InputError("several models are compared on a text; give one in quotes", argument="text")
    models: list[str] = values["models"]
    if len(set(models)) < len(models):
        raise InputError(f"the same model twice: {', '.join(models)}; leave one of them out")
    check_files(values["out"])
    check_of(values["of"])
    radius = _radius(values["radius"])
    budget: str | None = values["budget"]
    options: dict[str, Any] = {name: values[name] for name in ("word", "max_tokens", "seed", "device")}
    options |= {"budget": budget_of(budget), "output": values["of"]}
    options |= {"radius": radius, "certificate": not values["no_certificate"]}
    options |= {} if values["at"] is None else {"at": values["at"].value}
    small = radius if "radius" in asked.given else SMALL
    with option_names():
        questions = [Question(text, model=name, random_draws=0, **options) for name in models]
    results = [measure_model(question, [min(small, radius)], effects=False) for question in questions]
    finish(compare_results(results, names=_names(models)), values["as_json"], values["out"], show_comparison)


def _names(models: list[str]) -> list[str]:
    """Call models by their last names, unless two share one."""
    short = [Path(name).name for name in models]
    return short if len(set(short)) == len(short) else models


def _radius(text: str) -> float:
    radii = numbers_of(text, "--radius")
    if len(radii) != 1 or not 0 < radii[0] < float("inf"):
        raise InputError(f"--radius must be one positive number with several models, got {text!r}")
    return radii[0]
