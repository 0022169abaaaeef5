"""Checks of plain arguments that several rooms share: sizes, tokens, budgets. They need no torch."""

from collections.abc import Sequence
from typing import Any

from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS
from wordsway.support.public_gate import check_whole

STRUCTURES = ("mean", "ar1")  # of the correlation between synthetic rows
FEWEST = 8  # evaluations below which a search is not worth its name
MOST = 10**7  # evaluations of a search: more would take days


def check_budget(name: str) -> None:
    """Raise an InputError unless a budget has that name."""
    if name not in BUDGETS:
        raise InputError(f"budget={name!r} is not known; use {', '.join(BUDGETS)}", argument="budget")


def check_effort(budget: int | str | None) -> int | str | None:
    """Return the budget of a search, a name or a number of evaluations, or raise an InputError."""
    if isinstance(budget, str) and budget not in BUDGETS:
        known = ", ".join(BUDGETS)
        raise InputError(f"budget={budget!r} is not known; use a number, or {known}", argument="budget")
    if budget is not None and not isinstance(budget, str):
        if check_size(budget, "budget", least=FEWEST) > MOST:
            raise InputError(f"budget={budget} is more than {MOST:,} evaluations, the most", argument="budget")
    return budget


def check_correlation(correlation: Any) -> float:
    if isinstance(correlation, bool) or not isinstance(correlation, int | float) or not 0 <= correlation < 1:
        raise InputError(f"correlation must be at least 0 and below 1, got {correlation!r}", argument="correlation")
    return correlation


def check_size(value: Any, name: str, least: int = 1) -> int:
    """`value` as a whole number of at least `least`, and of at most 63 bits."""
    if isinstance(value, int):
        check_whole(value, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}", argument=name)
    return value


def check_tokens(tokens: Sequence[int], n: int) -> tuple[int, ...]:
    """Distinct token indices in 0..n-1; negative indices count from the end."""
    found = []
    for token in tokens:
        if isinstance(token, bool) or not isinstance(token, int):
            raise InputError(f"a token must be a whole number, got {token!r}", argument="token")
        if not -n <= token < n:
            raise InputError(
                f"token {token} is out of range: the text has {n} tokens, so use 0 to {n - 1}", argument="token"
            )
        found.append(token % n)
    if not found:
        raise InputError("no token given; name at least one", argument="token")
    if len(set(found)) != len(found):
        raise InputError(f"a token is named twice in {list(tokens)}")
    return tuple(found)
