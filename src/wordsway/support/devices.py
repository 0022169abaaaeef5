"""Devices for tensors, and the precision in which a device can compute."""

import torch

from wordsway.support.errors import InputError, one_line


def find_device(device: torch.device | str) -> torch.device:
    """The device, or an InputError where this machine does not have it."""
    try:
        found = torch.device(device)
        torch.empty(1, device=found)
        if found.type == "meta":
            raise ValueError("what is on it has no values")
    except (RuntimeError, AssertionError, NotImplementedError, TypeError, ValueError) as error:
        reason = one_line(error).split(". ")[0]
        reason = f"{reason[:100]}..." if len(reason) > 100 else reason  # torch lists all that there could be
        raise InputError(
            f"device={str(device)!r} cannot be used here: {reason}; use cpu, or see which there are: "
            "wordsway doctor --check",
            argument="device",
        ) from None
    return found


def find_dtype(dtype: torch.dtype | str) -> torch.dtype:
    """float32 or float64, by name or as a torch dtype."""
    known = {"float32": torch.float32, "float64": torch.float64}
    found = known.get(dtype.removeprefix("torch.")) if isinstance(dtype, str) else dtype
    if found not in known.values():
        raise InputError(f"dtype={dtype!r} cannot be used; use float32 or float64", argument="dtype")
    assert found is not None
    return found


def precise(device: torch.device) -> torch.device:
    """The device itself where it has float64, else the CPU."""
    return torch.device("cpu") if device.type == "mps" else device
