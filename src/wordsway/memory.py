"""Refuse what cannot fit, before any work, and say how much it would need."""

from wordsway.errors import TooLargeError

GIB = 2**30


def show_bytes(count: float) -> str:
    """A size for people: '354 MB', '19.0 TB'."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            break
        count /= 1000
    else:
        unit = "PB"
    return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"


def available_bytes() -> int:
    """What this machine could give to a new allocation now."""
    import psutil

    return psutil.virtual_memory().available


def fits(need: float, share: float = 0.7) -> bool:
    """Whether `need` bytes stay within a share of what is available."""
    return need <= share * available_bytes()


def require(need: float, what: str, instead: str) -> None:
    """Raise an error that names the size of `what` unless it fits."""
    if not fits(need):
        raise TooLargeError(
            f"{what} needs {show_bytes(need)}, but only {show_bytes(available_bytes())} of memory is available; "
            f"{instead}"
        )
