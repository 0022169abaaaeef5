"""The blocks of README.md and docs/, and how an output is compared with the one that is written there.

A block may have notes before it, comments that nobody sees on the page:

    <!-- docs: skip because REASON -->          it is not run
    <!-- docs: needs smollm2 -->                it is run where that model is at hand
    <!-- docs: within 0.05 because REASON -->   numbers may differ by that share (0.002 unless given)
    <!-- docs: searched NAMES above NAMES -->   numbers under or behind these names come from a search
    <!-- docs: exit 2 -->                       the exit code of its commands
    <!-- docs: output -->                       what the Python block before it prints
    <!-- docs: setup
    code that runs before a Python block -->

A number that a search found in a deep model varies with the processor, so it is only to be at least the one that is
written, less the search's own spread; rows of a table of words may come in another order, and other words may tie.
"above NAMES" (it may be left out) names numbers that it cannot be below, in its line or else in the output. Names are
separated by semicolons.

In an output that is written down, a line of three dots stands for any lines, and three dots at a line's end for the
rest of it. An output is what goes to stdout; for an exit code other than 0, what goes to stderr as well.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from searched import AT_LEAST, NUMBER, Searched, high_enough, same_order, too_low, without_ranks

ROOT = Path(__file__).parents[2]
TOLERANCE = 2e-3  # a search in float32 may end elsewhere in the third digit on another processor

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```\s*$", re.M | re.S)
_NOTE = re.compile(r"<!-- docs: (.*?)-->", re.S)
_BARS = re.compile("[█░]+")  # drawn from numbers that stand beside them, and are compared there
_TIMES = re.compile(r"\b\d+(?:\.\d+)? ?(?:s|ms|min|minutes|seconds|GB|MB)\b|\b\d+ workers?\b")


@dataclass(frozen=True)
class Block:
    page: str
    line: int  # of the fence, from 1
    kind: str  # the language, or ""
    text: str
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name in its first line, if the block is a file's content."""
        found = re.match(r"# (\S+\.(?:py|toml|csv|txt))\b", self.text)
        return found[1] if found else None

    def note(self, word: str) -> str | None:
        """What a note says after its first word."""
        for note in self.notes:
            first, _, rest = note.partition(" ") if not note.startswith("setup") else ("setup", "", note[5:])
            if first == word:
                return rest.strip("\n ") if word != "setup" else rest
        return None

    def commands(self) -> list[tuple[str, list[str] | None]]:
        """Command lines, each with the output written below it (None: none is)."""
        if self.kind not in ("", "sh", "console", "bash"):
            return []
        if not re.search(r"^\$ ", self.text, re.M):
            joined = re.sub(r"\\\n\s*", "", self.text)
            return [(line, None) for line in joined.splitlines() if _is_command(line)]
        found: list[tuple[str, list[str] | None]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and isinstance(output := found[-1][1], list):
                output.append(line)
        return found


def _is_command(line: str) -> bool:
    return re.match(r"(wordsway|make|pip|python|dask|source|export|docker|cd)\b", line) is not None


def all_blocks() -> list[Block]:
    found = []
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = file.read_text(encoding="utf-8")
        end = 0
        for fence in _FENCE.finditer(text):
            between = text[end : fence.start()]
            tail = re.search(r"((?:<!-- docs: (?:(?!-->).)*-->\s*)+)\Z", between, re.S)
            notes = tuple(note.rstrip() for note in _NOTE.findall(tail[1])) if tail else ()
            line = text.count("\n", 0, fence.start()) + 1
            found.append(Block(str(file.relative_to(ROOT)), line, fence[2], fence[3], notes))
            end = fence.end()
    return found


def inline_commands() -> list[tuple[str, str]]:
    """Commands in running text, as (page, command): `wordsway ...`."""
    found = []
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        prose = _FENCE.sub("", file.read_text(encoding="utf-8"))
        for code in re.findall(r"`(wordsway [^`]+)`", prose):
            found.append((str(file.relative_to(ROOT)), " ".join(code.split())))
    return found


def words_of(command: str) -> list[str]:
    """A command line as a shell splits it, without its comment."""
    return shlex.split(command, comments=True)


def differences(
    written: Sequence[str], printed: Sequence[str], tolerance: float = TOLERANCE, searched: Searched | None = None
) -> str:
    """What is different between an output in the docs and a real one, in one message; "" for nothing."""
    written, printed = _trimmed(written), _trimmed(printed)
    if searched is None:
        return _differences(written, printed, tolerance)
    written, printed = searched.marked(written), searched.marked(printed)
    if AT_LEAST not in "".join(written):
        return f"the docs have no number that belongs to {', '.join(searched.names)}"
    if low := too_low(printed):
        return low
    return _differences(without_ranks(written), same_order(written, printed), tolerance)


def _differences(written: list[str], printed: list[str], tolerance: float) -> str:
    while written and written[0] != "...":
        if not printed:
            return f"it prints no more, but the docs have {written[0]!r}"
        if why := _line_differs(written[0], printed[0], tolerance):
            return f"{why}:\n  docs   {written[0]}\n  prints {printed[0]}"
        written, printed = written[1:], printed[1:]
    if not written:
        return f"it also prints {printed[0]!r}" if printed else ""
    rest = written[1:]
    tries = [_differences(rest, printed[skip:], tolerance) for skip in range(len(printed) + 1)] if rest else [""]
    return "" if "" in tries else tries[0]


def _trimmed(lines: Sequence[str]) -> list[str]:
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def _line_differs(written: str, printed: str, tolerance: float) -> str:
    if written.endswith(" ..."):
        written = written[:-4]
        printed = " ".join(printed.split()[: len(written.split())])
    shapes, numbers = [], []
    for line in (written, printed):
        line = _BARS.sub("BAR", _TIMES.sub("TIME", " ".join(line.split())))
        numbers.append([(found[0], line[: found.start()].endswith(AT_LEAST)) for found in NUMBER.finditer(line)])
        shapes.append(NUMBER.sub("#", line))
    if shapes[0] != shapes[1]:
        return "words differ"
    for (old, searched), (new, _) in zip(*numbers, strict=True):
        if searched and not high_enough(old, new):
            return f"{new} is less than {old} by more than the search's spread"
        if not searched and not _close(old, new, tolerance):
            return f"{old} is not {new}"
    return ""


def _close(written: str, printed: str, tolerance: float) -> bool:
    """Small whole numbers are equal; others differ by the tolerance, or by one in the last of three digits or more."""
    first, second = (float(text.replace(",", "")) for text in (written, printed))
    if "." not in written + printed and "e" not in written + printed and max(abs(first), abs(second)) < 1000:
        return first == second
    digits = len(written.partition(".")[2])
    last = 1.01 * 10.0**-digits if digits >= 3 and "e" not in written else 1e-9
    return abs(first - second) <= max(tolerance * max(abs(first), abs(second)), last)
