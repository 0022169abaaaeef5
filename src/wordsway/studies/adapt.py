"""Studies adapted: to another encoder, data or number of trials, and to how many coordinates an encoder has."""

from dataclasses import replace

from wordsway.datasets.text_sources import PADDINGS
from wordsway.studies.cells.kinds import kind_of
from wordsway.studies.study import Study
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
    """Make a study with another encoder, data, padding, number of trials or seed; its panels are checked. Each kind of
    cell says what that means for it. A panel with one trial keeps it: there is nothing to average over."""
    if padding is not None and padding not in PADDINGS:
        raise InputError(f"padding={padding!r} is not known; use: {', '.join(PADDINGS)}")
    given = {"encoder": encoder, "data": data, "padding": padding, "chat_model": chat_model, "seed": seed}
    asked = {name: value for name, value in given.items() if value is not None}
    panels = []
    for panel in study.panels:
        changes = kind_of(panel.measure).adapt({**panel.values, "skip": panel.skip}, asked)
        skip = changes.pop("skip", panel.skip)
        count = panel.trials if trials is None or panel.trials == 1 else trials
        panels.append(replace(panel.changed(**changes), trials=count, skip=skip).checked())
    return study.with_panels(panels)


def narrowed(study: Study) -> tuple[Study, list[str]]:
    """A study whose d is never more than its encoder has, and what was changed for that."""
    panels, notes = [], []
    for panel in study.panels:
        most = None if panel.skip is not None else kind_of(panel.measure).most_coordinates(panel.values)
        asked = panel.values.get("d")
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
