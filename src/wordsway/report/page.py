"""Parts to HTML. Everything that comes from a text, a file or a model passes through the templates' escaping; scripts
other than our own are forbidden by the page itself, and it asks no network for anything."""

import base64
import hashlib
import os
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway import __version__
from wordsway.measures.results import Sensitivity
from wordsway.report.measurement import detail_of, of_measurement
from wordsway.report.parts import LEVELS, Report
from wordsway.support.digits import three
from wordsway.support.errors import InputError, one_line
from wordsway.support.public_gate import public
from wordsway.support.result import Result, load_result

if TYPE_CHECKING:
    from jinja2 import Environment


@public
def report_html(source: Any) -> str:
    """Make the page of a result of any kind, of its .json file, or of a run's folder."""
    if not isinstance(source, str | os.PathLike) or Path(source).is_dir():
        return html_of(report_of(source))
    try:  # a file's values may be of any type
        return html_of(report_of(source))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, InputError):
            raise
        what = f"{type(error).__name__}: {one_line(error)}"
        raise InputError(f"{os.fspath(source)!r} is a damaged result, make it again: {what}") from None


def report_of(source: Any) -> Report:
    """Find the parts of the page of a result, a result's file or a run's folder."""
    if isinstance(source, Report):
        return source
    if isinstance(source, Sensitivity):
        return of_measurement(source)
    if isinstance(source, Result):
        from wordsway.report.model_results import of_result

        return of_result(source)
    if isinstance(source, str | os.PathLike):
        return _of_path(source)
    raise InputError(f"a report is made of a result, a result's file or a run's folder, not of {type(source).__name__}")


def _of_path(path: str | os.PathLike[str]) -> Report:
    """Make the report of a run's folder or a result's file."""
    place, name = Path(path), os.fspath(path)
    if place.is_dir():
        from wordsway.report.runs import of_run
        from wordsway.studies.loaded_run import Run
        from wordsway.studies.run.store import has_run

        if not has_run(place):
            raise InputError(f"there is no run in the folder {name!r}; give one that wordsway run or reproduce wrote")
        return of_run(Run.read(place))
    if not place.exists():
        raise InputError(
            f"there is no file or folder {name!r}; give a result (-o result.json of a command) or a run's folder"
        )
    return report_of(load_result(place))


def html_of(report: Report) -> str:
    code = script()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _template("page.html").render(
        report=report,
        parts=report.parts,
        policy=policy,
        style=stylesheet(),
        script=code,
        version=__version__,
        levels=range(LEVELS),
    )


def fragment_html(result: Result) -> str:
    """Render what a result says, its words, pictures and tables, for a page that has our stylesheet and script; how it
    was made is left out."""
    report = report_of(result)
    parts = [part for part in report.parts if part.kind != "facts"]
    return _template("fragment.html").render(lead=report.lead, parts=parts, levels=range(LEVELS))


def word_fragment(result: Sensitivity, word: int) -> str:
    """Render the details of one explained word."""
    found = next((each for each in result.explained or () if each.word == word), None)
    if found is None:
        raise InputError(f"word {word} was not explained")
    return _template("detail.html").render(detail=detail_of(result, found))


def render_part(name: str, **values: Any) -> str:
    """Render a template of ours; all values are escaped but markup that we made."""
    return _template(name).render(**values)


@lru_cache
def stylesheet() -> str:
    return _asset("report.css")


@lru_cache
def script() -> str:
    return _asset("report.js")


def _asset(name: str) -> str:
    return files("wordsway.report").joinpath("assets", name).read_text(encoding="utf-8")


def _template(name: str) -> Any:
    return _environment().get_template(name)


@lru_cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("wordsway.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["figure"] = figure
    made.filters["found"] = three
    return made


def figure(value: Any) -> str:
    """Write a number for people."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return three(value)
