"""The result of a certificate: an upper bound, or the reason why there is none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """`upper` bounds the relative change of every allowed delta, except with probability `failure` over the draw of the
    weights; where there is no bound, `reason` says why."""

    upper: float | None
    failure: float = 0.0
    reason: str | None = None
