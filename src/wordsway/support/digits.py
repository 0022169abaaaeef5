"""Numbers as people read them. Files and JSON have them in full."""

ROUNDING = 1e-6  # of numbers around 1: smaller ones are what rounding, in float32 at times, left of 0


def three(value: float | None, zero: float = 0.0) -> str:
    """Write a number with three significant digits: what a search finds varies by per cents. None is a dash. A size of
    less than `zero` is written as 0."""
    if value is None:
        return "-"
    size = abs(value)
    if size < zero:
        return "0"
    if 999.5 <= size < 1e6:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".") if value == 0 or 1e-3 <= size < 1e3 else f"{value:.3g}"


def count_of(count: int, what: str) -> str:
    """Write a number of things, one of them in the singular."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def signed(value: float) -> str:
    """Write a difference with three significant digits and its sign."""
    return three(value) if value < 0 else "+" + three(value)


def probability_name(probability: float | None) -> str:
    """Write a probability; the last digits of one that is nearly 0 or 1 say nothing."""
    if probability is None:
        return "-"
    if probability >= 0.9995:
        return ">0.999"
    return "<0.001" if probability < 5e-4 else f"{probability:.3f}"
