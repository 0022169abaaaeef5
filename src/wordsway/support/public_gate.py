"""The gate of the public functions: arguments are checked by their annotations before any work.

`@public` on a function or class of `wordsway.__all__` refuses, with an `InputError` that names the argument, what no
annotation allows (None for a name, a list for a number) and what no code of ours could work with: whole numbers beyond
64 bits, paths with a NUL character, and tensors that are sparse, quantized or without values. What an argument means is
checked by the function itself. Errors of the system, such as a path that is too long, become an `InputError` too.
"""

import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextvars import ContextVar
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from wordsway.support.errors import InputError, PlaceError, one_line

Thing = TypeVar("Thing", bound=Callable[..., Any])
LARGEST = 2**63 - 1  # whole number, of seeds too: what tensors, tables and the files of runs can hold
_PLAIN = frozenset({int, float, bool, str, type(None)})  # whether one fits depends on its type alone
_outermost: ContextVar[str | None] = ContextVar("outermost", default=None)  # the public call that the user made
_MOST_OF_A_RANGE = 10**7  # numbers, which take no memory before they are a list
_DEEPEST = 3  # lists within lists that are looked at: names, texts and numbers do not lie deeper


def public(thing: Thing) -> Thing:
    """Put a function, or the constructor of a class, behind the gate."""
    if isinstance(thing, type):
        thing.__init__ = _gated(thing.__init__, thing.__name__)  # pyright: ignore[reportAttributeAccessIssue]
        return thing  # pyright: ignore[reportReturnType]
    return _gated(thing, getattr(thing, "__name__", "call"))


def called_by_the_user() -> str | None:
    """Name the public function or class that the user called, while it works."""
    return _outermost.get()


def is_public(thing: Any) -> bool:
    """Tell whether a function or class is behind the gate."""
    function = thing.__init__ if isinstance(thing, type) else thing
    return hasattr(function, "behind_the_gate")


def _gated(function: Any, name: str) -> Any:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        for key, value in signature.bind(*given, **options).arguments.items():
            kind, hint = signature.parameters[key].kind, _hints(function).get(key, Any)
            several = value if kind is kind.VAR_POSITIONAL else value.values() if kind is kind.VAR_KEYWORD else [value]
            for each in several:
                check_argument(hint, each, key)
        before = _outermost.set(_outermost.get() or name)
        try:
            return function(*given, **options)
        except OSError as error:
            if type(error).__module__.startswith("wordsway"):
                raise
            raise PlaceError(error) from error
        except UnicodeEncodeError as error:  # of a path, or of a name that becomes one
            raise InputError(f"{name}: a name or path is not valid Unicode: {one_line(error)}") from error
        except (OverflowError, RecursionError) as error:
            raise InputError(f"{name}: an argument is too large or too deep: {one_line(error)}") from error
        finally:
            _outermost.reset(before)

    call.behind_the_gate = True  # pyright: ignore[reportAttributeAccessIssue]
    return call


@functools.cache
def _hints(function: Any) -> dict[str, Any]:
    """Read the annotations of a function's parameters, when they are first needed. A decorator that lets a parameter
    take more says so in `also_takes`."""
    also: dict[str, Any] = getattr(function, "also_takes", {})  # functools.wraps hands it on
    hints = get_type_hints(inspect.unwrap(function))
    return {name: hint | also[name] if name in also else hint for name, hint in hints.items()}


def check_argument(hint: Any, value: Any, name: str) -> None:
    """Raise an InputError unless a value is one that an argument may have by its annotation, and can be worked with."""
    _check_plain(value, name, 0)
    if not _allows(hint, value):
        raise InputError(f"{name} must be {_wanted(hint)}, got {_shown(value)}", argument=name)
    if os.PathLike in [get_origin(each) or each for each in _options(hint)] and isinstance(value, str | os.PathLike):
        if "\0" in os.fspath(value):
            raise InputError(f"{name} is a path with a NUL character, which no file has", argument=name)


def _check_plain(value: Any, name: str, depth: int) -> None:
    """Refuse numbers and tensors that nothing here can work with, also inside lists and tables."""
    if isinstance(value, int):
        check_whole(value, name)
    elif isinstance(value, range):
        count = -((value.start - value.stop) // value.step)  # len() is an error beyond 63 bits
        if count > _MOST_OF_A_RANGE:
            raise InputError(f"{name} has more than {_MOST_OF_A_RANGE:,} numbers; give fewer", argument=name)
    elif isinstance(value, list | tuple | Set) and depth < _DEEPEST:
        numbers = [item for item in value if type(item) is int]
        for item in (min(numbers), max(numbers)) if numbers else ():
            check_whole(item, name)
        for item in value:
            if type(item) not in _PLAIN:
                _check_plain(item, name, depth + 1)
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, item in value.items():
            _check_plain(item, f"{name}[{_shown(key)}]", depth + 1)
    elif hasattr(value, "layout") and hasattr(value, "is_meta"):
        _check_tensor(value, name)


def check_whole(value: int, name: str) -> None:
    """Raise an InputError for a whole number that tensors, tables and the files of runs cannot hold. Its digits are not
    shown: there may be thousands."""
    if not -LARGEST <= value <= LARGEST:
        raise InputError(f"{name} has a whole number of {value.bit_length()} bits; 63 are the most", argument=name)


def read_whole(text: str, name: str) -> int:
    """Read the digits of a whole number, or raise an InputError where there are more than `check_whole` allows."""
    if len(text) > len(str(LARGEST)):  # Python itself reads some thousands of digits, and raises an error beyond
        raise InputError(f"{name} has a whole number of {len(text):,} digits; 18 are the most", argument=name)
    check_whole(number := int(text), name)
    return number


def _check_tensor(tensor: Any, name: str) -> None:
    import torch

    if tensor.layout is not torch.strided:
        raise InputError(f"{name} is a sparse tensor; give {name}.to_dense()", argument=name)
    if tensor.is_meta:
        raise InputError(f"{name} is on the device meta, so it has no values; put them on cpu", argument=name)
    if tensor.is_quantized:
        raise InputError(f"{name} is a quantized tensor; give {name}.dequantize()", argument=name)


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _allows(hint: Any, value: Any) -> bool:
    """Whether a value fits an annotation; annotations that say more than we can test allow everything."""
    return any(_allows_one(option, value) for option in _options(hint))


def _allows_one(hint: Any, value: Any) -> bool:
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return any(value is each or value == each for each in inner if type(value) is type(each))
    if origin is bool:
        return isinstance(value, bool)
    if origin in (int, float):
        return _is_number(value, "__index__" if origin is int else "__float__")
    if origin in (str, os.PathLike):
        return isinstance(value, origin)
    if origin in (Sequence, Iterable, list, tuple):
        one = getattr(value, "ndim", 1) == 0  # a tensor of no dimension says that it can be gone through
        return isinstance(value, Iterable) and not one and _items_fit(inner, value)
    if origin is Mapping or origin is dict:
        return isinstance(value, Mapping)
    if origin is Callable:
        return callable(value)
    if hasattr(origin, "array_type"):  # a tensor with a shape, of jaxtyping, which checks shapes where that is wanted
        return isinstance(value, origin.array_type)
    if getattr(origin, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(origin) if not name.startswith("_"))
    return not isinstance(origin, type) or isinstance(value, origin) or _is_array(origin, value)


def _is_array(kind: type, value: Any) -> bool:
    """Whether a value is an array of another library where a tensor is taken."""
    return kind.__name__ == "Tensor" and hasattr(value, "__array__")


def _is_number(value: Any, method: str) -> bool:
    """Whether a value is one number: a plain one, or what numpy and torch have of one element and no dimension."""
    return not isinstance(value, str) and hasattr(value, method) and getattr(value, "ndim", 0) == 0


def _items_fit(inner: tuple[Any, ...], value: Any) -> bool:
    kind, *rest = inner or (Any,)
    if isinstance(value, str):  # one name for a list of names: the function says what it takes
        return any(each in (str, Any) for each in _options(kind))
    if isinstance(value, range):
        return all(_allows(kind, number) for number in value[:1])
    if not isinstance(value, list | tuple) or (rest and rest[0] is not Ellipsis):
        return True
    return all(_allows(kind, item) for item in _one_of_each_type(kind, value))


def _one_of_each_type(kind: Any, items: Iterable[Any]) -> Iterable[Any]:
    """Leave out items that fit if another one does: a long text has thousands of plain numbers and strings."""
    if any(get_origin(option) is Literal for option in _options(kind)):
        return items
    plain = {type(item): item for item in items if type(item) in _PLAIN}
    return [*plain.values(), *(item for item in items if type(item) not in _PLAIN)]


_WORDS = {int: "a whole number", float: "a number", str: "a str", bool: "True or False", os.PathLike: "a path",
          type(None): "None"}  # fmt: skip


def _wanted(hint: Any) -> str:
    """Describe an annotation in words."""
    parts = []
    for option in _options(hint):
        origin = get_origin(option) or option
        if origin is Literal:
            parts += [repr(each) for each in get_args(option)]
        elif origin in (Sequence, Iterable, list, tuple):
            inner = [each for each in get_args(option) if each is not Ellipsis]
            parts.append(f"a list, each {_wanted(inner[0])}" if inner else "a list")
        else:
            name = "Tensor" if hasattr(origin, "array_type") else getattr(origin, "__name__", "value")
            parts.append(_WORDS.get(origin) or f"a {name}")
    return " or ".join(dict.fromkeys(parts))


def _shown(value: Any) -> str:
    """Show a value in a message: a short one itself, of others the type; of a list, also the types of its items."""
    if isinstance(value, str | int | float | None):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    if isinstance(value, list | tuple) and 0 < len(value):
        kinds = sorted({type(item).__name__ for item in value[:1000]})
        return f"{type(value).__name__} of {', '.join(kinds[:3])}"
    return type(value).__name__
