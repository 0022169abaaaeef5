"""Ranges of the numbers in recipes of maps: within them a search and a proof end, with numbers that mean something."""

from typing import Any

from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_size

DEEPEST = 1000  # layers; ten times as many take minutes for a text of five tokens
COLDEST, HOTTEST = 1e-3, 1e30  # below, attention is a maximum, which has no gradients, and a proof takes very long


def check_depth(depth: Any) -> int:
    """Return a number of layers, or raise an InputError."""
    if check_size(depth, "depth") > DEEPEST:
        raise InputError(f"depth must be at most {DEEPEST} layers, got {depth}", argument="depth")
    return depth


def check_temperature(temperature: Any) -> float:
    """Return a temperature, or raise an InputError."""
    number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not number or not COLDEST <= temperature <= HOTTEST:
        message = f"temperature must be a number from {COLDEST:g} to {HOTTEST:g}, got {temperature!r}"
        raise InputError(message, argument="temperature")
    return temperature
