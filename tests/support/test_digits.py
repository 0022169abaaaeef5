"""Numbers as tables and pages show them."""

import pytest

from wordsway.support.digits import ROUNDING, signed, three


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"), (0.0, "0.00"), (0.52524, "0.525"), (3.2921, "3.29"), (-0.05261, "-0.0526"), (27.713, "27.7"),
        (100.0, "100"), (999.4, "999"), (999.6, "1,000"), (-12345.6, "-12,346"), (2e7, "2e+07"), (0.9999, "1.00"),
        (0.000123456, "0.000123"), (1.1e-14, "1.1e-14"), (0.3, "0.300"),
    ],
)  # fmt: skip
def test_three_digits(value: float | None, shown: str) -> None:
    assert three(value) == shown


def test_what_rounding_leaves_is_zero_where_that_is_said() -> None:
    assert three(1e-17) == "1e-17" and three(-1e-17, ROUNDING) == "0" and three(1e-5, ROUNDING) == "1e-05"


def test_differences_have_a_sign() -> None:
    assert [signed(value) for value in (0.5, -0.5, 0.0)] == ["+0.500", "-0.500", "+0.00"]
