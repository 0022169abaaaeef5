"""Refuse what cannot fit, before any work, and say how much it would need."""

import math

from wordsway.support.errors import TooLargeError

GIB = 2**30


def show_bytes(count: float) -> str:
    """A size for people: '354 MB', '19.0 TB'."""
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while count >= 1000 and len(units) > 1:
        count, units = count / 1000, units[1:]
    return f"{count:.0f} {units[0]}" if count >= 100 or units[0] == "B" else f"{count:.1f} {units[0]}"


def available_bytes() -> float:
    """Return the bytes of memory that a new allocation could get now: of the machine, and by the limits of this
    process (ulimit -d and -v)."""
    import psutil

    return max(0, min(psutil.virtual_memory().available, *_left_by_limits()))


def _left_by_limits() -> tuple[float, ...]:
    """Return what the limits of this process leave; infinity where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return (math.inf,)
    import psutil

    used = psutil.Process().memory_info()
    limits = ((resource.RLIMIT_DATA, getattr(used, "data", 0)), (resource.RLIMIT_AS, used.vms))
    most = [(resource.getrlimit(kind)[0], size) for kind, size in limits]
    return tuple(math.inf if limit == resource.RLIM_INFINITY else limit - size for limit, size in most)


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
