"""Refuse what cannot fit, before any work, and say how much it would need."""

from wordsway.support.errors import TooLargeError

GIB = 2**30


def show_bytes(count: float) -> str:
    """A size for people: '354 MB', '19.0 TB'."""
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while count >= 1000 and len(units) > 1:
        count, units = count / 1000, units[1:]
    return f"{count:.0f} {units[0]}" if count >= 100 or units[0] == "B" else f"{count:.1f} {units[0]}"


def available_bytes() -> int:
    """Return the bytes of memory that a new allocation could get now."""
    import psutil

    return psutil.virtual_memory().available


SHARE = 0.7  # of what is available, so that the rest of the machine goes on


def fits(need: float, share: float = SHARE) -> bool:
    """Whether `need` bytes stay within a share of what is available."""
    return need <= share * available_bytes()


def require(need: float, what: str, instead: str) -> None:
    """Raise an error that names the size of `what` unless it fits."""
    if not fits(need):
        raise TooLargeError(
            f"{what} needs {show_bytes(need)}, but only {show_bytes(available_bytes())} of memory is available "
            f"({SHARE:.0%} of it may be used); {instead}"
        )
