"""What a report can be made of: a run's folder, or the file of a result."""

import json
import os
from pathlib import Path

from wordsway.measures.results import FORMAT, load_result
from wordsway.report.measurement import of_measurement
from wordsway.report.model_results import of_values
from wordsway.report.parts import Report
from wordsway.report.runs import of_run
from wordsway.studies.run.store import has_run
from wordsway.support.errors import InputError


def of_path(path: str | os.PathLike[str]) -> Report:
    """The report of a folder or file, or an InputError that says what would do."""
    place, name = Path(path), os.fspath(path)
    if place.is_dir():
        if not has_run(place):
            raise InputError(f"there is no run in the folder {name!r}; give one that wordsway run or reproduce wrote")
        return of_run(place)
    if not place.exists():
        raise InputError(f"there is no file or folder {name!r}; give a result (--out of a command) or a run's folder")
    try:
        values = json.loads(place.read_text(encoding="utf-8"), parse_constant=_refused)
    except (ValueError, RecursionError):
        raise InputError(f"{name!r} is no result: it is not JSON; results are what --out of a command writes") from None
    if isinstance(values, dict) and values.get("format") == FORMAT:
        return of_measurement(load_result(place))
    return of_values(values, repr(name))


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no number that a result has")
