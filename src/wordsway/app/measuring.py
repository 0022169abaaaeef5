"""The worker's tasks: measure a text word by word, and explain a word. Measurements are kept for a while."""

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.app.jobs import Job
from wordsway.app.page_request import PageRequest, check_length
from wordsway.support.errors import InputError, TextWarning

if TYPE_CHECKING:
    from wordsway.maps.base import FeatureMap
    from wordsway.measures.results import Sensitivity, TokenSensitivity
    from wordsway.tokens import Tokens

MOST_KEPT = 4  # results in memory, each with its map


@dataclass(frozen=True)
class Measured:
    """A result with what made it. `phi` is None when its weights had to make room."""

    request: PageRequest
    phi: "FeatureMap | None"
    tokens: "Tokens"
    result: "Sensitivity"


class Kept:
    """The last few results, by the id of their job."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most, self._lock = most, threading.Lock()
        self._kept: OrderedDict[str, Measured] = OrderedDict()

    def put(self, key: str, measured: Measured) -> None:
        with self._lock:
            self._kept[key] = measured
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def make_room(self) -> None:
        """Maps that reveal their weights as they are asked may have gigabytes of them by now."""
        with self._lock:
            for key, measured in self._kept.items():
                if measured.phi is not None and measured.phi.remembers:
                    self._kept[key] = replace(measured, phi=None)

    def get(self, key: str) -> Measured | None:
        with self._lock:
            return self._kept.get(key)


def measure(request: PageRequest, kept: Kept) -> Callable[[Job], None]:
    """Make the work of a job that answers a request."""

    def work(job: Job) -> None:
        from wordsway.report.measurement import lead_of
        from wordsway.report.page import text_fragment
        from wordsway.support.provenance import made
        from wordsway.tokens import Tokens

        kept.make_room()
        job.say("loading", what=Path(request.model or request.encoder).name)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always", TextWarning)
            opened = request.question().open()
            phi, tokens = opened.phi, opened.X
            assert isinstance(tokens, Tokens)
            check_length(tokens)
            job.check()
            words = _Words(job, tokens)
            job.say("text", segments=segments(tokens), words=len(tokens.pieces), tokens=len(tokens))
            result = opened.measure(each=words.add, cancel=job.check)
        result = replace(result, made={**made(), "command": request.command()})
        kept.put(job.id, Measured(request, phi, tokens, result))
        said = [str(note.message) for note in notes if issubclass(note.category, TextWarning)]
        job.say("done", lead=lead_of(result), fragment=text_fragment(result), command=request.command(), notes=said)

    return work


def explain_word(key: str, word: int, kept: Kept) -> Callable[[Job], None]:
    """Make the work of a job that says what the move found for one word does."""

    def work(job: Job) -> None:
        from wordsway.measures.explain import explain
        from wordsway.report.page import word_fragment

        measured = kept.get(key)
        if measured is None:
            raise InputError("this result is no longer kept; measure the text again")
        phi, tokens, seed = measured.phi, measured.tokens, measured.request.seed
        if word not in {each.word for each in measured.result.explained or ()}:
            if phi is None:
                raise InputError("random features keep their weights until the next measurement; measure this again")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TextWarning)
                result = explain(phi, tokens, measured.result, [word], seed=seed, cancel=job.check)
            measured = replace(measured, result=result)
            kept.put(key, measured)
        job.say("word", word=word, fragment=word_fragment(measured.result, word))

    return work


class _Words:
    """Says a word's best bounds whenever one of its tokens is measured."""

    def __init__(self, job: Job, tokens: "Tokens") -> None:
        self.job, self.tokens = job, tokens
        self.left = [len(pieces) for pieces in tokens.pieces]
        self.lower = [0.0] * len(tokens.pieces)

    def add(self, entry: "TokenSensitivity") -> None:
        self.job.check()
        word = self.tokens.word_ids[entry.token]
        if word is None:
            return
        self.left[word] -= 1
        self.lower[word] = max(self.lower[word], entry.lower)
        self.job.say("move", word=word + 1, lower=self.lower[word], done=self.left.count(0), words=len(self.left))


def segments(tokens: "Tokens") -> list[dict[str, Any]]:
    """The text as written, cut into words (`word` is the number) and what stands between them; `left_out` is the end of
    a text that was cropped."""
    found: list[dict[str, Any]] = []
    cursor = 0
    for word, ((start, end), text) in enumerate(zip(tokens.spans, tokens.words, strict=True)):
        if start > cursor:
            found.append({"text": tokens.text[cursor:start]})
        found.append({"text": text, "word": word + 1})
        cursor = max(cursor, end)
    used = max([cursor, *(end for _, end in tokens.offsets)])
    if used > cursor:
        found.append({"text": tokens.text[cursor:used]})
    if tokens.text[used:]:
        found.append({"text": tokens.text[used:], "left_out": bool(tokens.text[used:].strip())})
    return found
