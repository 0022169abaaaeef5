"""What a measurement is: numbers with where they come from, as JSON."""

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wordsway.errors import InputError

FORMAT = "wordsway.sensitivity/1"


@dataclass(frozen=True)
class TokenSensitivity:
    """The bounds for one token. `upper` is None where there is no certificate; `upper_reason` then says why."""

    token: int
    lower: float
    upper: float | None
    upper_failure: float
    upper_reason: str | None
    evaluations: int


@dataclass(frozen=True)
class RandomChange:
    """The average case: relative change under deltas that are uniform on the sphere of the same radius."""

    mean: float
    sd: float
    quantiles: dict[str, float]
    draws: int


@dataclass(frozen=True)
class Sensitivity:
    """The word sensitivity of a map at a text: what a search found (`lower`), and what no delta can exceed (`upper`,
    except with probability `upper_failure` over the draw of lazy weights).

    `token` and `delta` are where `lower` is attained; `checked` says how `lower` was evaluated in the end.
    """

    lower: float
    upper: float | None
    upper_failure: float
    upper_reason: str | None
    token: int
    delta: Tensor
    radius: float
    per_token: tuple[TokenSensitivity, ...]
    random: RandomChange | None
    evaluations: int
    checked: str
    map: dict[str, Any]
    n: int
    d: int
    seed: int
    seconds: float
    version: str

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["delta"] = self.delta.tolist()
        values["per_token"] = [asdict(token) for token in self.per_token]
        values["random"] = None if self.random is None else asdict(self.random)
        return {"format": FORMAT, **values}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON. The file appears whole or not at all."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file beside its place and move it there, so that a killed run leaves no half of it."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_result(path: str | os.PathLike[str]) -> Sensitivity:
    """Read what `Sensitivity.save` wrote."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {os.fspath(path)!r}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{os.fspath(path)!r} is not JSON: {error}") from None
    found = values.get("format") if isinstance(values, dict) else None
    if found != FORMAT:
        raise InputError(f"{os.fspath(path)!r} is not a saved result: its format is {found!r}, not {FORMAT!r}")
    try:
        del values["format"]
        values["delta"] = torch.tensor(values["delta"], dtype=torch.float64)
        values["per_token"] = tuple(TokenSensitivity(**token) for token in values["per_token"])
        values["random"] = None if values["random"] is None else RandomChange(**values["random"])
        return Sensitivity(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{os.fspath(path)!r} is a damaged result: {error}") from None


def summarize(changes: Tensor) -> RandomChange:
    """Mean, standard deviation and quantiles of relative changes."""
    changes = changes.double()
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    values = torch.quantile(changes, torch.tensor(levels, dtype=torch.float64)).tolist()
    sd = float(changes.std()) if len(changes) > 1 else math.nan
    return RandomChange(
        float(changes.mean()),
        0.0 if math.isnan(sd) else sd,
        {f"{level:g}": value for level, value in zip(levels, values, strict=True)},
        len(changes),
    )
