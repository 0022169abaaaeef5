"""Studies that come along as one run: which panels can be had here, and what is written at the end."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wordsway.studies.adapt import adapted, narrowed
from wordsway.studies.cells.recipes import revision_of
from wordsway.studies.claims import Verdict, judge
from wordsway.studies.run.store import Store
from wordsway.studies.run.tables import Table, read_table
from wordsway.studies.study import Study
from wordsway.studies.toml_files import find_study
from wordsway.support.errors import InputError
from wordsway.support.files import write_bytes, write_text
from wordsway.support.names import paper_figures


def known_studies(names: Sequence[str], scale: str, **options: Any) -> tuple[list[Study], list[str]]:
    """The studies asked for (the paper's unless named) at a scale, with what a reader should know of them: which
    panels cannot be run here and why, and where d is smaller than published. `options` are those of `adapted`."""
    studies: dict[str, Study] = {}
    notes: list[str] = []
    for name in names or paper_figures():
        study = find_study(name, scale)
        known = studies.get(study.name)
        if known is not None:  # two panels of one figure
            ids = [panel.id for part in (known, study) for panel in part.panels]
            study = find_study(study.name, scale).only(ids)
        studies[study.name] = study
    found, problems = [], []
    for study in studies.values():
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


def verdicts(studies: Sequence[Study], table: Table) -> list[Verdict]:
    """The claims table of some studies."""
    found = []
    for study in studies:
        rows = table.of(study.name)
        skipped = {panel.id: panel.skip or "" for panel in study.panels}
        for claim in study.claims:
            found += judge(study.name, claim, rows, skipped.get(claim.panel, ""))
    return found


@dataclass(frozen=True)
class Written:
    """What is in a run's folder for people: the table, the verdicts, and the files."""

    table: Table
    verdicts: list[Verdict]
    paths: list[Path]


def joined(known: Sequence[Study], asked: Sequence[Study]) -> list[Study]:
    """Studies that come along, with the panels that a run has of them already."""
    by_name = {study.name: study for study in known}
    return [
        study.joined(by_name[study.name], find_study(study.name).layout) if study.name in by_name else study
        for study in asked
    ]


def replaced(known: Sequence[Study], asked: Sequence[Study]) -> list[str]:
    """What of a run's plan has other settings now: a reader of its figures and tables should know."""
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


def write_reports(store: Store, studies: Sequence[Study]) -> Written:
    """Figures (PNG, PDF, SVG), tables (CSV, Parquet where pyarrow is installed) of some studies of a run, and the
    claims table of all. The table and the verdicts that it gives back are of those studies."""
    from wordsway.studies.figures.draw import draw_study, save_figure

    table = read_table(store, studies)
    paths: list[Path] = []
    for study in studies:
        rows = Table(tuple(table.of(study.name)))
        if not rows.rows:
            continue
        paths += save_figure(draw_study(study, rows, store.arrays), store.folder, study.name)
        for kind in ("csv", "parquet"):
            try:
                content = rows.export(kind)
            except InputError:
                continue  # no pyarrow: the CSV file has it all
            paths.append(store.folder / f"{study.name}.{kind}")
            write_bytes(paths[-1], content)
    found = verdicts(store.studies(), read_table(store))
    if found:
        paths.append(store.folder / "claims.csv")
        write_text(paths[-1], claims_csv(found))
        paths.append(store.folder / "claims.md")
        write_text(paths[-1], claims_markdown(found))
    names = {study.name for study in studies}
    return Written(table, [each for each in found if each.study in names], paths)


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
