"""A run's folder as a report: every study with its figures, claims and numbers."""

import json
from collections.abc import Sequence
from typing import Any

from wordsway.report.parts import Claims, Facts, Grid, Heading, Picture, Report
from wordsway.report.svg import picture
from wordsway.studies.claims import FAILS, HOLDS, Verdict, exponent_over_trials
from wordsway.studies.figures.draw import draw_study
from wordsway.studies.loaded_run import Run
from wordsway.studies.run.store import PROVENANCE
from wordsway.studies.run.tables import Table
from wordsway.studies.study import Panel, Study


def of_run(run: Run) -> Report:
    """Make the report of all that a run has measured so far."""
    parts: list[Any] = []
    for study in run.studies:
        parts += _study(run, study)
    parts += _whole(run)
    titles = [study.title or study.name for study in run.studies]
    title = titles[0] if len(titles) == 1 else f"{len(titles)} studies of word sensitivity"
    return Report(title, _lead(run.table(), run.verdicts), parts)


def _lead(table: Table, judged: Sequence[Verdict]) -> list[str]:
    said = [f"{len(table):,} rows were measured."]
    if judged:
        holds, fails = (sum(each.verdict == kind for each in judged) for kind in (HOLDS, FAILS))
        said.append(
            f"Of {len(judged)} claims {holds} hold, {fails} do not, {len(judged) - holds - fails} are not tested."
        )
    if table.missing:
        said.append(f"{table.missing:,} cells are not measured yet, so figures and verdicts may change.")
    if table.failed:
        said.append(f"{len(table.failed)} cells failed; they are listed at the end.")
    return said


def _study(run: Run, study: Study) -> list[Any]:
    rows = run.tables[study.name].rows
    judged = [each for each in run.verdicts if each.study == study.name]
    skipped = [f"{panel.id}: {panel.skip}" for panel in study.panels if panel.skip is not None]
    note = f"Not run: {'; '.join(skipped)}." if skipped else ""
    parts: list[Any] = [Heading(f"{study.name}: {study.title}" if study.title else study.name, note)]
    told: set[str] = set()
    for panel in study.panels:
        mine = [row for row in rows if row["panel"] == panel.id]
        if not mine:
            continue
        about = [each for each in judged if each.panel == panel.id]
        see = "" if panel.measure in told else panel.kind.drawn_as().see
        told.add(panel.measure)
        caption = [see, *(_sentence(each) for each in about[:4])]
        parts.append(_picture(run, study, panel, [text for text in caption if text]))
        fits = _exponents(panel, mine)
        if fits:
            parts.append(
                Grid.of(f"{study.name} {panel.id}: exponents in n", f"{study.name}-{panel.id}-exponents", fits)
            )
    if judged:
        parts.append(Claims(f"{study.name}: what was claimed, and what was measured", judged))
    if rows:
        more = f"With the provenance of every row: wordsway export {run.folder.name}"
        timed = [name for row in rows for name in row if name.endswith("_seconds")]
        hidden = ("study", "part", *PROVENANCE, *timed)
        parts.append(Grid.of(f"{study.name}: all rows", study.name, rows, hidden, more, fold=True))
    return parts


def _picture(run: Run, study: Study, panel: Panel, caption: list[str]) -> Picture:
    """Cut a panel out of its study's figure; one that the layout leaves out is drawn for itself."""
    drawn = run.figure(study)
    if panel.id not in drawn.places:
        drawn = draw_study(study.only([panel.id]), run.tables[study.name], run.arrays)
    with drawn.only(panel.id) as place:
        return picture(drawn.figure, f"{study.name} {panel.title or panel.id}", caption, place)


def _sentence(each: Verdict) -> str:
    says = each.says[:1].upper() + each.says[1:]
    where = f" ({each.group})" if each.group else ""
    if each.measured is None:
        return f"{says}{where}: not tested, {each.note}."
    ends = "" if each.low is None or each.high is None else f" [{each.low:.3g} to {each.high:.3g}]"
    note = f" ({each.note})" if each.note else ""
    return f"{says}{where}: measured {each.measured:.3g}{ends}, {each.verdict}{note}."


def _exponents(panel: Panel, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fit how a number falls with n, for every line of a picture of curves: slopes of its logarithm, with their 95%
    intervals."""
    varied, column = panel.axes(), panel.kind.drawn_as().slope
    if column is None or len(varied.get("n", ())) < 3:
        return []
    names = [*(name for name in varied if name != "n"), *panel.kind.within]
    groups: dict[tuple[Any, ...], list[tuple[Any, float, float]]] = {}
    for row in rows:
        if row.get(column):
            groups.setdefault(tuple(row.get(name) for name in names), []).append((row["trial"], row["n"], row[column]))
    found = []
    for values, points in groups.items():
        slope = exponent_over_trials(points)
        if slope is not None:
            ends = {"exponent, mean of trials": slope.value, "95% from": slope.low, "95% to": slope.high}
            found.append(dict(zip(names, values, strict=True)) | ends)
    return found


def _whole(run: Run) -> list[Any]:
    results = list(run.results.values())
    parts: list[Any] = [Heading("How it was made")]
    done = [each.provenance for each in results if each.done]
    facts = [("folder", run.folder.name)]
    if done:
        versions = [
            json.loads(each["versions"]) if isinstance(each["versions"], str) else each["versions"] for each in done
        ]
        said = dict.fromkeys(", ".join(f"{name} {number}" for name, number in each.items()) for each in versions)
        seeds = sorted({each.recipe["seed"] for each in results if each.recipe.get("seed") is not None})
        machines = dict.fromkeys(str(each["machine"]).partition(" ")[2] for each in done)  # without the host's name
        facts += [
            ("cells", f"{len(done):,}, {sum(each['seconds'] for each in done):,.0f} s of work on one thread each"),
            ("memory", f"{max(each['peak_bytes'] for each in done) / 1e9:.2f} GB at most in a worker"),
            ("seeds", ", ".join(map(str, seeds[:20])) + (" and more" if len(seeds) > 20 else "")),
            ("made at", f"{min(each['started'] for each in done)} to {max(each['started'] for each in done)}"),
            ("versions", "; ".join(said)),
            ("machine", "; ".join(machines)),
        ]
    parts.append(Facts("Command, versions, time, memory", facts, run.command))
    if run.table().failed:
        rows = [{"cell": label, "error": error} for label, error in run.table().failed.items()]
        parts.append(Grid.of("Cells that failed", "failed", rows))
    return parts
