"""Stand-ins."""

from html import escape
from typing import Any


def text_fragment(result: Any) -> str:
    low = min(w.lower for w in result.words)
    high = max(w.lower for w in result.words)
    return (
        "<p class='text'>"
        + " ".join(
            f"<button type='button' class='word level-{round(8 * (w.lower - low) / ((high - low) or 1))}' data-word='{w.word}'>{escape(w.text)}</button>"
            for w in result.words
        )
        + "</p>"
    )


def word_fragment(result: Any, word: int) -> str:
    return f"<p>word {word}</p>"


def report_html(result: Any) -> str:
    return "<!doctype html><title>report</title>" + text_fragment(result)


def stylesheet() -> str:
    return "".join(
        f".level-{k}{{background:rgb({247 - k * 29},{251 - k * 22},{255 - k * 12});color:{'#111' if k < 5 else '#fff'}}}"
        for k in range(9)
    )


def script() -> str:
    return ""


def explain(phi: Any, tokens: Any, result: Any, words: Any, **more: Any) -> Any:
    return result
