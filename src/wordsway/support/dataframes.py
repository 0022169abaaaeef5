"""Results as data frames, where pandas is installed."""

from collections.abc import Sequence
from typing import Any

from wordsway.support.errors import InputError


def frame(rows: Sequence[dict[str, Any]]) -> Any:
    """A pandas DataFrame of some rows."""
    try:
        import pandas
    except ImportError:
        raise InputError("a data frame needs pandas: pip install pandas; .to_dict() needs nothing") from None
    return pandas.DataFrame(list(rows))
