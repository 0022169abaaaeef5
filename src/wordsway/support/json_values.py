"""Dataclasses as JSON values and back, by the types of their fields."""

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from torch import Tensor
else:

    class Tensor:
        """Stands for torch's in the fields of results that are read without torch."""


_INFINITE = "infinite"  # how JSON, which has no infinity, says it


def to_values(thing: Any) -> Any:
    """Write a value, or a dataclass with all that it holds, as JSON values."""
    if is_dataclass(thing):
        return {each.name: to_values(getattr(thing, each.name)) for each in fields(thing)}
    if isinstance(thing, Mapping):
        return {str(name): to_values(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [to_values(value) for value in thing]
    if isinstance(thing, float) and math.isinf(thing) and thing > 0:
        return _INFINITE
    return thing if isinstance(thing, str | int | float | None) else thing.tolist()


def read_fields(kind: type, values: Mapping[str, Any], given: Sequence[str] = ()) -> dict[str, Any]:
    """Read the fields of a dataclass from JSON values: a TypeError says which is missing, unknown or of a wrong
    type. Fields that are `given` otherwise may be missing."""
    hints, known = get_type_hints(kind, localns={"Tensor": Tensor}), {each.name: each for each in fields(kind)}
    unknown = [name for name in values if name not in known]
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {unknown[0]!r}")
    for name, each in known.items():
        if name not in (*values, *given) and each.default is MISSING and each.default_factory is MISSING:
            raise TypeError(f"{name!r} is missing")
    return {name: _read(hints[name], value, name) for name, value in values.items()}


def _read(hint: Any, value: Any, name: str) -> Any:
    """Read one value of the type that a field has."""
    if hint is Any:
        return value
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _read_one_of(get_args(hint), value, name)
    if origin is Literal:
        return _checked(value in get_args(hint), value, name)
    if origin is tuple:
        return _read_tuple(get_args(hint), value, name)
    if origin in (dict, Mapping):
        _checked(isinstance(value, dict), value, name)
        return {key: _read(get_args(hint)[1], item, f"{name}.{key}") for key, item in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        _checked(isinstance(value, dict), value, name)
        return hint(**read_fields(hint, value))
    return _read_plain(hint, value, name)


def _read_one_of(options: Sequence[Any], value: Any, name: str) -> Any:
    if value is None and type(None) in options:
        return None
    problem = TypeError(f"{name!r} has a wrong value: {value!r}")
    for option in options:
        if option is not type(None):
            try:
                return _read(option, value, name)
            except TypeError as error:
                problem = error
    raise problem


def _read_tuple(parts: Sequence[Any], value: Any, name: str) -> tuple[Any, ...]:
    _checked(isinstance(value, list | tuple), value, name)
    if len(parts) == 2 and parts[1] is ...:
        return tuple(_read(parts[0], item, name) for item in value)
    _checked(len(parts) == len(value), value, name)
    return tuple(_read(part, item, name) for part, item in zip(parts, value, strict=True))


def _read_plain(hint: Any, value: Any, name: str) -> Any:
    """Read a number, a string or a tensor."""
    if hint is float:
        value = math.inf if value == _INFINITE else value
        return float(_checked(isinstance(value, int | float) and not isinstance(value, bool), value, name))
    if hint in (int, str, bool, type(None)):
        return _checked(type(value) is hint, value, name)
    if hint is Tensor:
        return _checked(_shape(value) is not None, value, name)
    import torch

    if hint is torch.Tensor or getattr(hint, "array_type", None) is torch.Tensor:
        _checked(isinstance(value, list), value, name)
        return torch.tensor(value, dtype=torch.float64)
    raise TypeError(f"{name!r} is of a type that files do not have: {hint}")


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of lists of numbers, as deep as they are; None where they are no rectangle."""
    if isinstance(value, int | float):
        return ()
    if not isinstance(value, list):
        return None
    shapes = {_shape(item) for item in value}
    inner = shapes.pop() if shapes else ()
    return None if shapes or inner is None else (len(value), *inner)


class KeptAsList:
    """A field with a tensor that is set as a list when a result is read: the tensor is made when it is asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        value = vars(owner)[self.name]
        if isinstance(value, list):
            import torch

            value = vars(owner)[self.name] = torch.tensor(value, dtype=torch.float64)
        return value

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)[self.name] = value


def _checked(right: bool, value: Any, name: str) -> Any:
    if not right:
        shown = repr(value)
        raise TypeError(f"{name!r} has a wrong value: {shown if len(shown) <= 60 else shown[:57] + '...'}")
    return value
