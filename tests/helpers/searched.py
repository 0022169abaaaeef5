"""Outputs with numbers that a search found in a deep model, which vary with the processor: what holds of them.

Names say which numbers these are: those under a heading of that name in a table, or right behind that name in a line.
They are marked, so that whoever compares lines knows: each is at least what is written, less the search's own spread.
All other numbers keep their tolerance.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wordsway.maps.base import TRAINED_SPREAD

AT_LEAST, FLOOR = "\u2265", "\u2264"  # before a number that was searched for, and before one that it cannot be below
NUMBER = re.compile(r"(?<![\w.])[-+]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
_RANKS = re.compile(r"^ +\d+(?:-\d+)?(?= )")
# What depends on which words tie, and on how long the search was.
_VARYING = {
    re.compile(r"^Largest possible effect found: .*$"): "TOP",
    re.compile(r"(one of \d+ words that tie|word \d+)(?=, found by search)"): "TOP",
    re.compile(r"^( evaluations +)\d+"): r"\1SOME",
    re.compile(r"\d+(?=% above the value found)"): "SOME",
}


@dataclass(frozen=True)
class Searched:
    names: tuple[str, ...]
    floors: tuple[str, ...] = ()

    @staticmethod
    def of(note: str) -> "Searched":
        """From "NAME; NAME above NAME; NAME"."""
        names, _, floors = note.partition(" above ")
        return Searched(*(tuple(part.strip() for part in each.split(";") if part.strip()) for each in (names, floors)))

    def marked(self, lines: Sequence[str]) -> list[str]:
        """Lines with a sign before every number that was searched for, and before those that it cannot be below."""
        spans: list[tuple[int, int, str]] = []  # of headings, with their sign
        found = []
        for line in lines:
            if not _in_table(line):
                spans = []
            headings = [
                (match.start(), match.end(), sign)
                for name, sign in self._signs()
                for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", line)
            ]
            if headings and line.startswith(" ") and not NUMBER.search(line):
                spans = headings
            signs = {
                number.start(): sign
                for number in NUMBER.finditer(line)
                for start, end, sign in spans
                if number.start() < end and start < number.end()
            }
            for name, sign in self._signs():
                behind = rf"(?<!\w){re.escape(name)}[ :]+((?:{NUMBER.pattern}\s*)+)"
                for run in re.finditer(behind, line):
                    signs |= {run.start(1) + number.start(): sign for number in NUMBER.finditer(run[1])}
            for start in sorted(signs, reverse=True):
                line = line[:start] + signs[start] + line[start:]
            for pattern, instead in _VARYING.items():
                line = pattern.sub(instead, line)
            found.append(line)
        return found

    def _signs(self) -> list[tuple[str, str]]:
        return [*((name, AT_LEAST) for name in self.names), *((name, FLOOR) for name in self.floors)]


def high_enough(written: str, printed: str) -> bool:
    """Whether a number that was searched for is at least the one that is written, less the spread and the rounding."""
    digits = len(written.partition(".")[2])
    return _value(printed) >= _value(written) * (1 - TRAINED_SPREAD) - 0.5 * 10.0**-digits


def too_low(lines: Sequence[str]) -> str:
    """A number of a marked output that is below what it cannot be below: those of its line, or of other lines."""
    above = {k: _numbers(line, FLOOR) for k, line in enumerate(lines)}
    searched = {k: _numbers(line, AT_LEAST) for k, line in enumerate(lines)}
    common = [number for k, numbers in above.items() if not searched[k] for number in numbers]
    for k, numbers in searched.items():
        for number in numbers:
            for floor in above[k] or common:
                last = 1.01 * 10.0 ** -len(floor.partition(".")[2])
                if _value(number) < _value(floor) - last:
                    return f"{number} was searched for, but is below {floor}"
    return ""


def same_order(written: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Marked `printed` lines with the rows of each table of words in the order of the written ones, without ranks; rows
    that are written nowhere take the place of the last dots. Lines of no such table stay."""
    wanted = [_key(line) for line in without_ranks(written)]
    dots = max([k for k, line in enumerate(written) if line == "..."], default=len(written))
    found: list[str] = []
    rows: list[str] = []
    for line in [*without_ranks(printed), ""]:
        if line.startswith(" RANK"):
            rows.append(line)
            continue
        found += sorted(rows, key=lambda row: wanted.index(_key(row)) if _key(row) in wanted else dots)
        rows = []
        found.append(line)
    return found[:-1]


def without_ranks(lines: Sequence[str]) -> list[str]:
    """Lines whose ranks in tables of words are the same."""
    inside, found = False, []
    for line in lines:
        inside = _in_table(line) and (inside or re.match(r" rank +word\b", line) is not None)
        found.append(_RANKS.sub(" RANK", line) if inside else line)
    return found


def _key(row: str) -> str:
    """What a row is about: its words and whole numbers."""
    return " ".join(NUMBER.sub(lambda number: "#" if "." in number[0] else number[0], row).split())


def _in_table(line: str) -> bool:
    return line.startswith(" ") or line == "..."


def _numbers(line: str, sign: str) -> list[str]:
    return [number[0] for number in NUMBER.finditer(line) if line[: number.start()].endswith(sign)]


def _value(number: str) -> float:
    return float(number.replace(",", ""))
