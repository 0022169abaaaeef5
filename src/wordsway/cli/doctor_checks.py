"""Checks of `wordsway doctor --check`: torch, its devices, a small measurement, a word that is encoded."""

import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from wordsway.cli.doctor import ABSENT, BROKEN, NOTE, OK, Finding, requirements, wanted
from wordsway.cli.doctor import _devices as looked_at
from wordsway.models.loading import bundled
from wordsway.models.loading.installed import models_at_hand
from wordsway.support.errors import InputError, one_line
from wordsway.support.memory import show_bytes
from wordsway.support.provenance import processor


def devices() -> Iterator[Finding]:
    """Look at the machine, and at what torch makes of it."""
    yield from (finding for finding in looked_at() if finding.name == "memory")
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


def checks() -> Iterator[Finding]:
    yield _tried("measure", _measure, "pip install --force-reinstall wordsway")
    text = _requirements_met("text")
    if text:
        yield _tried("encode", _encode, "pip install --force-reinstall 'wordsway[text]'")
    else:
        yield Finding("check", "encode", ABSENT, "texts need the extra [text]", "pip install 'wordsway[text]'")


def _requirements_met(extra: str) -> bool:
    try:
        return wanted("", extra, requirements(metadata.distribution("wordsway"), extra), "").state == OK
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
