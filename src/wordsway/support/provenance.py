"""Provenance of a measurement: versions, processor, memory, the command."""

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from wordsway import __version__


def made(command: Sequence[str] | None = None) -> dict[str, Any]:
    """Describe how a result was made, as JSON values; `command` are the words that were typed."""
    return {
        "command": None if command is None else shlex.join(command),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "processor": f"{platform.system()} {platform.machine()}, {processor()}, {os.cpu_count()} cores",
        "peak_bytes": peak_bytes(),
    }


def reset_peak() -> None:
    """Begin anew with the process's peak memory, where the system lets us."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def peak_bytes() -> int:
    """Peak resident memory since the last reset or, where there is none, since the process began."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # not on Windows
        import psutil

        return int(psutil.Process().memory_info().rss)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@lru_cache(maxsize=1)
def machine() -> str:
    return f"{platform.node()} {platform.system()} {platform.machine()} {processor()} {os.cpu_count()} cores"


def processor() -> str:
    """Name the processor, or at least its kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration, UnicodeDecodeError):
        return platform.processor() or platform.machine() or "unknown processor"


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "wordsway": __version__}
    for name in ("torch", "numpy", "scipy", "transformers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
