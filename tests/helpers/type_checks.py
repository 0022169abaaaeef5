"""Checks of types and shapes while tests run, at a price that tests can pay.

pytest decorates every function of the package with jaxtyping's and beartype's checks (`--jaxtyping-packages`). A check
takes longer than many of the functions that searches call thousands of times, and functions inside of functions are
compiled for it whenever they are made. So in each test the first FIRST calls of a function are checked, and from then
on one in EVERY. Calls of a function inside of another are counted together.
"""

import functools
import inspect
from collections import Counter
from dataclasses import is_dataclass
from types import CodeType
from typing import Any

import jaxtyping

FIRST, EVERY = 8, 32
calls: Counter[CodeType] = Counter()
_check_always = jaxtyping.jaxtyped


def install() -> None:
    """Take the place of jaxtyping's decorator, before the package is imported."""
    jaxtyping.jaxtyped = check_some


def begin_test() -> None:
    """Forget which calls came before: each test has its own first ones."""
    calls.clear()


def check_some(fn: Any = None, *, typechecker: Any) -> Any:
    """Decorate a function, or the making of a dataclass, as jaxtyping does, but check only some of its calls."""
    if fn is None:
        return functools.partial(check_some, typechecker=typechecker)
    if inspect.isfunction(fn):
        return _checked_at_times(fn, typechecker)
    if is_dataclass(fn) and "__init__" in vars(fn):
        fn.__init__ = _checked_at_times(fn.__init__, typechecker)  # pyright: ignore[reportAttributeAccessIssue]
    return fn


def _checked_at_times(fn: Any, typechecker: Any) -> Any:
    code, checked = fn.__code__, None

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        calls[code] += 1
        if calls[code] > FIRST and calls[code] % EVERY:
            return fn(*args, **kwargs)
        if checked is None:  # made when it is first needed: many functions of a module are never called
            checked = _check_always(fn, typechecker=typechecker)
        return checked(*args, **kwargs)

    return call
