"""Numbers as people read them, with as many digits as say something."""


def three(value: float | None) -> str:
    """Write a number that a search found: three significant digits, as it varies by per cents."""
    if value is None:
        return "-"
    return f"{value:#.3g}".rstrip(".") if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.3g}"


def probability_name(probability: float | None) -> str:
    """Write a probability; the last digits of one that is nearly 0 or 1 say nothing."""
    if probability is None:
        return "-"
    if probability >= 0.9995:
        return ">0.999"
    return "<0.001" if probability < 5e-4 else f"{probability:.3f}"
