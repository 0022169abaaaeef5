"""Results as data frames, where pandas is installed."""

from collections.abc import Mapping, Sequence
from typing import Any

from wordsway.support.errors import InputError


def frame(rows: Sequence[dict[str, Any]], attributes: Mapping[str, Any] | None = None) -> Any:
    """Make a pandas DataFrame of some rows, with `attributes` as its attrs."""
    try:
        import pandas
    except ImportError:
        raise InputError("a data frame needs pandas: pip install pandas; .to_dict() needs nothing") from None
    made = pandas.DataFrame(list(rows))
    made.attrs.update(attributes or {})
    return made
