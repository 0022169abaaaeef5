"""Rules for moving several tokens together: their number, how they are chosen, and their balls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordsway.support.errors import InputError
from wordsway.support.names import BALLS, CHOICES
from wordsway.support.plain_checks import check_size

if TYPE_CHECKING:
    from wordsway.search.regions import Region


@dataclass(frozen=True)
class Several:
    """A rule for moving several tokens together: `count` of them, chosen by `by` (None: greedily, for a lazy map at
    random), each in a ball of its own ("each") or all in one ("shared", of the largest of their radii)."""

    count: int
    by: str | None
    ball: str

    @staticmethod
    def of(count: Any, by: Any, ball: Any, candidates: int) -> "Several":
        """Checked; `candidates` are how many tokens there are to choose from."""
        check_size(count, "tokens_at_once")
        if count > candidates:
            raise InputError(
                f"tokens_at_once={count} is more than the {candidates} tokens that may move; use at most {candidates}"
            )
        if by is not None and by not in CHOICES:
            raise InputError(f"choose={by!r} is not known; use one of: {', '.join(CHOICES)}")
        if ball not in BALLS:
            raise InputError(f"ball={ball!r} is not known; use one of: {', '.join(BALLS)}")
        if by == "given" and count != candidates:
            raise InputError(f"choose='given' moves all tokens that are named, {candidates}, not {count} of them")
        return Several(count, by, ball)

    def region(self, radii: Sequence[float], d: int) -> "Region":
        from wordsway.search.regions import Ball, Balls

        return Balls.of(radii, d) if self.ball == "each" else Ball(max(radii), len(radii), d)


def several_of(count: Any, by: Any, ball: Any, joint: bool, candidates: int) -> Several | None:
    """Check how many tokens move together, of so many candidates; None where each moves alone."""
    if count is None:
        if by is not None or ball != "each":
            raise InputError("choose= and ball= are about tokens that move together; say how many with tokens_at_once=")
        return None
    if joint:
        raise InputError("joint= moves the pieces of a word together; it does not go with tokens_at_once=")
    return Several.of(count, by, ball, candidates)
