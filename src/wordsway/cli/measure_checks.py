"""What of `wordsway measure` can be told to be wrong before anything is loaded."""

from pathlib import Path
from typing import Any

from wordsway.support.errors import InputError
from wordsway.support.files import check_target

GAUSSIAN = ("synthetic", "correlated")


def check_early(
    radius: float, word: str | None, token: str | None, against: str | None, moves: bool, out: Path | None
) -> None:
    """What can be told before a model is loaded."""
    if not 0 < radius < float("inf"):
        raise InputError(f"--radius must be a positive number, got {radius}")
    if word is not None and token is not None:
        raise InputError("give --word or --token, not both")
    if against is not None and (word is not None or token is not None or moves):
        raise InputError("--against names the word itself: leave out --word, --token, --joint and --special")
    if out is not None:
        check_target(out)


def refuse_with_model(given: dict[str, Any], raw: bool, layer: int, activation: str, temperature: float) -> None:
    """What belongs to a map must not be ignored when a model is measured."""
    used = [option for option, value in given.items() if value is not None]
    used += ["--raw"] * raw + ["--layer"] * (layer != 0) + ["--activation"] * (activation != "relu")
    used += ["--temperature"] * (temperature != 1.0)
    if used:
        hint = "; for two texts: wordsway substitute --candidates, or ws.change" if used[0] == "--against" else ""
        raise InputError(f"{used[0]} belongs to a map, not to --model; leave one of them out{hint}")


def refuse_text_options(
    encoder: str | None,
    model: str | None,
    against: str | None,
    word: str | None,
    joint: bool,
    special: bool,
    raw: bool,
    layer: int,
    max_tokens: int | None,
) -> None:
    """What makes no sense without a text must not be ignored."""
    given = {
        "--model": model is not None,
        "--against": against is not None,
        "--word": word is not None,
        "--joint": joint,
        "--special": special,
        "--raw": raw,
        "--layer": layer != 0,
        "--max-tokens": max_tokens is not None,
        f"--encoder {encoder}": encoder is not None and encoder not in GAUSSIAN,
    }
    for option, used in given.items():
        if used:
            raise InputError(f'{option} needs a text: wordsway measure "YOUR TEXT", --file PATH, or - for stdin')
