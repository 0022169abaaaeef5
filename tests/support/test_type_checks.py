"""Which calls are checked for types and shapes while tests run: the first ones of each test, and some later ones."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from beartype import beartype
from jaxtyping import Float, TypeCheckError
from torch import Tensor

import type_checks
from type_checks import EVERY, FIRST, check_some
from wordsway.search.regions import Ball
from wordsway.support.digits import three


@check_some(typechecker=beartype)
def add(X: Float[Tensor, "n d"], row: Float[Tensor, " d"]) -> Float[Tensor, "n d"]:
    return X + row


def test_the_first_calls_and_some_later_ones_are_checked() -> None:
    X, odd = torch.ones(3, 4), torch.ones(3, 1)
    refused = []
    for call in range(1, 3 * EVERY + 1):
        try:
            add(X, odd)
        except TypeCheckError:
            refused.append(call)
    assert refused == [*range(1, FIRST + 1), *range(EVERY, 3 * EVERY + 1, EVERY)]
    assert torch.equal(add(X, torch.ones(4)), X + 1)
    type_checks.begin_test()
    with pytest.raises(TypeCheckError):
        add(X, odd)


def test_functions_in_functions_and_dataclasses_are_checked() -> None:
    def outer() -> Any:
        @check_some(typechecker=beartype)
        def inner(count: int) -> int:
            return count

        return inner

    @check_some(typechecker=beartype)
    @dataclass(frozen=True)
    class Named:
        name: str

    made: list[Any] = [outer() for _ in range(FIRST + 2)]
    for each in made[:FIRST]:
        with pytest.raises(TypeCheckError):
            each("one")
    assert made[-1]("one") == "one"  # they count together
    with pytest.raises(TypeCheckError):
        Named(3)  # pyright: ignore[reportArgumentType]
    assert Named("a").name == "a"


def test_the_package_is_checked() -> None:
    with pytest.raises(TypeCheckError):
        three("much")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeCheckError):
        Ball("2", 2, 5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeCheckError):
        Ball(2.0, 1, 5).normed(torch.ones(5, dtype=torch.long))
