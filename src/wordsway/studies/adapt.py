"""Studies adapted: to another encoder, data or number of trials, and to how many coordinates an encoder has."""

from dataclasses import fields, replace
from typing import Any

from wordsway.datasets.training_sets import PADDINGS
from wordsway.models.loading.reinit import split_name
from wordsway.studies.cells.recipes import KINDS
from wordsway.studies.cells.sensitivity_cell import SYNTHETIC
from wordsway.studies.study import Panel, Study
from wordsway.support.errors import InputError


def adapted(
    study: Study,
    *,
    encoder: str | None = None,
    data: str | None = None,
    padding: str | None = None,
    chat_model: str | None = None,
    trials: int | None = None,
    seed: int | None = None,
) -> Study:
    """A study with another encoder, data, padding, number of trials or seed. Panels about a model's layers follow the
    encoder; of synthetic rows there is no model, so they are skipped. A panel with one trial keeps it: there is
    nothing to average over."""
    panels = []
    for panel in study.panels:
        known = {f.name for f in fields(KINDS[panel.measure])}
        new: dict[str, Any] = {}
        for name, value in (("encoder", encoder), ("data", data), ("padding", padding), ("seed", seed)):
            if value is not None and name in known:
                new[name] = value
        if panel.measure == "prompts":
            if chat_model is not None:
                panel, new["model"] = replace(panel, skip=None), chat_model
        elif encoder is not None and "model" in known:
            if encoder == SYNTHETIC:
                panel = replace(panel, skip="synthetic rows have no model behind them")
            else:
                new["model"] = _following(panel.values.get("model"), encoder)
        if padding is not None and padding not in PADDINGS:
            raise InputError(f"padding={padding!r} is not known; use: {', '.join(PADDINGS)}")
        if (data or padding) and panel.skip is None and {**panel.values, **new}.get("encoder") == SYNTHETIC:
            raise InputError("data and padding are about real texts, but the encoder is synthetic; name another one")
        count = panel.trials if trials is None or panel.trials == 1 else trials
        panels.append(Panel.of(replace(panel.changed(**new), trials=count).to_dict()))
    return study.with_panels(panels)


def _following(models: Any, encoder: str) -> Any:
    """Another model in the place of a panel's own; where weights of one were drawn anew, so are those of the other."""
    listed = models if isinstance(models, list | tuple) else [models]
    trained = split_name(encoder)[1] is None
    redraws = [split_name(model)[1] if isinstance(model, str) else None for model in listed]
    new = dict.fromkeys(redraw.named(encoder) if redraw and trained else encoder for redraw in redraws)
    return list(new) if len(new) > 1 else next(iter(new))


def narrowed(study: Study) -> tuple[Study, list[str]]:
    """A study whose d is never more than its encoder has, and what was changed for that."""
    panels, notes = [], []
    for panel in study.panels:
        most, asked = _coordinates(panel), panel.values.get("d")
        asked = asked if isinstance(asked, list | tuple) else [asked]
        fitting = list(dict.fromkeys(d if d is None else min(d, most or d) for d in asked))
        if fitting != list(asked):
            notes.append(
                f"{study.name} {panel.id}: d={', '.join(map(str, asked))} becomes d={', '.join(map(str, fitting))}, "
                f"as {panel.values['encoder']} has {most} coordinates"
            )
            panel = panel.changed(d=fitting)
        panels.append(panel)
    return study.with_panels(panels), notes


def _coordinates(panel: Panel) -> int | None:
    """How many coordinates the one encoder of a panel has; None where there is none, or no bound."""
    from wordsway.models.loading.load import width
    from wordsway.models.loading.locate import locate

    encoder = panel.values.get("encoder", SYNTHETIC)
    if panel.skip is not None or not isinstance(encoder, str) or encoder == SYNTHETIC:
        return None
    return width(locate(encoder))
