"""Built-in studies as one run: which panels can be had here, and what is written at the end."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wordsway.studies.adapt import adapted, narrowed
from wordsway.studies.cells.recipes import revision_of
from wordsway.studies.claims import Verdict
from wordsway.studies.figures.draw import save_figure
from wordsway.studies.loaded_run import Run
from wordsway.studies.run.tables import Table
from wordsway.studies.study import Study
from wordsway.studies.toml_files import draft_studies, layout_of
from wordsway.support.errors import InputError
from wordsway.support.files import write_bytes, write_text
from wordsway.support.names import paper_figures


def known_studies(names: Sequence[str], scale: str, **options: Any) -> tuple[list[Study], list[str]]:
    """Find the studies asked for (the paper's unless named) at a scale, with what a reader should know of them: which
    panels cannot be run here and why, and where d is smaller than published. `options` are those of `adapted`."""
    notes: list[str] = []
    found, problems = [], []
    for study in draft_studies(names or paper_figures(), scale):
        study = adapted(study, **options)
        panels = []
        for panel in study.panels:
            try:
                next((revision_of(cell) for cell in panel.cells()), "")
            except InputError as error:
                problems.append(error)
                panel = replace(panel, skip=str(error))
            if panel.skip is not None:
                notes.append(f"{study.name} {panel.id} is not run: {panel.skip}")
            panels.append(panel)
        study, narrow = narrowed(study.with_panels(panels))
        notes += narrow
        found.append(study)
    if not any(panel.skip is None for study in found for panel in study.panels):
        if problems:
            hint = "" if options.get("data") else " (--encoder mpnet, minilm or synthetic may be at hand)"
            raise InputError(f"{problems[0]}{hint}")
        raise InputError(f"there is nothing to run: {'; '.join(notes)}")
    return found, notes


@dataclass(frozen=True)
class Written:
    """Files of a run for people, with the table and the verdicts of the studies that were asked for."""

    table: Table
    verdicts: list[Verdict]
    paths: list[Path]


def joined(known: Sequence[Study], asked: Sequence[Study]) -> list[Study]:
    """Built-in studies, with the panels that a run has of them already."""
    by_name = {study.name: study for study in known}
    return [
        study.joined(by_name[study.name], layout_of(study.name)) if study.name in by_name else study for study in asked
    ]


def replaced(known: Sequence[Study], asked: Sequence[Study]) -> list[str]:
    """Tell which panels of a run's plan have other settings now: a reader of its figures should know."""
    before = {(study.name, panel.id): panel for study in known for panel in study.panels}
    found = []
    for study in asked:
        for panel in study.panels:
            old = before.get((study.name, panel.id))
            if old is None or old == panel:
                continue
            names = [k for k in {**old.values, **panel.values} if old.values.get(k) != panel.values.get(k)]
            names += ["trials"] if old.trials != panel.trials else []
            if names:
                found.append(
                    f"{study.name} {panel.id} was in this folder with other settings ({', '.join(names)}); what was "
                    "measured is kept, but figures and tables are now of the new ones"
                )
    return found


def write_files(run: Run, names: Sequence[str]) -> Written:
    """Write figures (PNG, PDF, SVG) and tables (CSV, Parquet where pyarrow is installed) of some studies of a run, and
    the claims table of all."""
    paths: list[Path] = []
    for study in run.studies:
        table = run.tables[study.name]
        if study.name not in names or not table.rows:
            continue
        paths += save_figure(run.figure(study).figure, run.folder, study.name)
        for kind in ("csv", "parquet"):
            try:
                content = table.export(kind)
            except InputError:
                continue  # no pyarrow: the CSV file has it all
            paths.append(run.folder / f"{study.name}.{kind}")
            write_bytes(paths[-1], content)
    if run.verdicts:
        paths.append(run.folder / "claims.csv")
        write_text(paths[-1], claims_csv(run.verdicts))
        paths.append(run.folder / "claims.md")
        write_text(paths[-1], claims_markdown(run.verdicts))
    return Written(run.table(names), [each for each in run.verdicts if each.study in names], paths)


def claims_csv(found: Sequence[Verdict]) -> str:
    table = Table(tuple(asdict(each) for each in found))
    return table.to_csv()


def claims_markdown(found: Sequence[Verdict]) -> str:
    heading = ("study", "claim", "source", "", "predicted", "holds if", "measured", "95% interval", "verdict")
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    for each in found:
        verdict = each.verdict + (f" ({each.note})" if each.note else "")
        cells = (f"{each.study} {each.panel}", each.says, each.source, each.group, figure(each.predicted), each.wanted,
                 figure(each.measured), interval(each), verdict)  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def interval(each: Verdict) -> str:
    return "" if each.low is None or each.high is None else f"{each.low:.3g} to {each.high:.3g}"
