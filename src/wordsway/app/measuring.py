"""The worker's tasks: answer a question about a text, and explain a word. Results are kept for a while."""

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.app.jobs import Job
from wordsway.app.model_loading import load
from wordsway.app.page_request import PageRequest, check_length
from wordsway.support.errors import InputError, TextWarning

if TYPE_CHECKING:
    from wordsway.maps.base import FeatureMap
    from wordsway.measures.draws_result import DrawComparison
    from wordsway.measures.flip_radii import FlipRadii
    from wordsway.measures.profile_result import RadiusProfile
    from wordsway.measures.question import OpenQuestion
    from wordsway.measures.results import Sensitivity, TokenSensitivity
    from wordsway.tokens import Tokens

    Answer = Sensitivity | DrawComparison | FlipRadii | RadiusProfile

MOST_KEPT = 4  # results in memory, each with its map


@dataclass(frozen=True)
class Measured:
    """A result with what made it. `phi` is None when its weights had to make room, and for a model."""

    request: PageRequest
    phi: "FeatureMap | None"
    tokens: "Tokens"
    result: "Answer"

    @property
    def single(self) -> "Sensitivity | None":
        """The measurement of one map whose words can be explained; a model has none."""
        from wordsway.measures.draws_result import DrawComparison
        from wordsway.measures.results import Sensitivity

        result = self.result.first if isinstance(self.result, DrawComparison) else self.result
        return result if isinstance(result, Sensitivity) else None

    @property
    def draws(self) -> int | None:
        """The number of draws of the weights that were made, where these were compared."""
        from wordsway.measures.draws_result import DrawComparison

        return len(self.result.seeds) if isinstance(self.result, DrawComparison) else None

    def explained(self, single: "Sensitivity") -> "Measured":
        """Take the measurement of one map with more words explained."""
        from wordsway.measures.draws_result import DrawComparison

        whole = replace(self.result, first=single) if isinstance(self.result, DrawComparison) else single
        return replace(self, result=whole)


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
        from wordsway.report.page import fragment_html
        from wordsway.support.provenance import made

        kept.make_room()
        job.say("loading", what=Path(request.model or request.encoder).name)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always", TextWarning)
            measured = _answer(request, job)
        command = request.command(measured.draws)
        about = {**made(), "command": command}
        if measured.single is not None:
            measured = measured.explained(replace(measured.single, made=about))
        measured = replace(measured, result=replace(measured.result, made=about))
        kept.put(job.id, measured)
        said = [str(note.message) for note in notes if issubclass(note.category, TextWarning)]
        explains = measured.single is not None
        job.say("done", fragment=fragment_html(measured.result), command=command, notes=said, explains=explains)

    return work


def _answer(request: PageRequest, job: Job) -> Measured:
    """Answer as `wordsway measure` does: a model, one map, or maps over draws of their weights."""
    from wordsway.measures.answers import answer_draws, answer_model, answer_seconds
    from wordsway.tokens import Tokens

    question = request.question()
    maps: list[FeatureMap] = []
    single = request.model is None and request.weights == 1
    opened = load(question.open, job) if single or request.model is not None else None
    tokens = load(partial(question.encode, request.text), job) if opened is None else opened.X
    assert isinstance(tokens, Tokens)
    check_length(tokens)
    job.check()
    words = _Words(job, tokens)

    def begin(seconds: float | None = None) -> None:
        about = {"words": len(tokens.pieces), "tokens": len(tokens), "seconds": seconds}
        job.say("text", segments=segments(tokens), steps=not single, **about)

    def keep(first: "OpenQuestion", result: "Sensitivity") -> "Sensitivity":
        maps.append(first.phi)
        return result

    if opened is None:
        begin()
        encoded = replace(question, text=tokens, n=None, max_tokens=None)
        count: dict[str, Any] = {"progress": partial(words.step, "map"), "each": words.add, "cancel": job.check}
        result = answer_draws(encoded, request.maps, request.weights, keep=keep, **count)
        return Measured(request, maps[0], tokens, result)
    if single:
        begin()
        return Measured(request, opened.phi, tokens, opened.measure(each=words.add, cancel=job.check))
    begin(answer_seconds(opened))
    progress = partial(words.step, "step")
    return Measured(request, None, tokens, answer_model(opened, progress=progress, each=words.put, cancel=job.check))


def explain_word(key: str, word: int, kept: Kept) -> Callable[[Job], None]:
    """Make the work of a job that says what the move found for one word does."""

    def work(job: Job) -> None:
        from wordsway.measures.explain import explain
        from wordsway.report.page import word_fragment

        measured = kept.get(key)
        single = None if measured is None else measured.single
        if measured is None or single is None:
            raise InputError("this result is no longer kept; measure the text again")
        if word not in {each.word for each in single.explained or ()}:
            if measured.phi is None:
                raise InputError("random features keep their weights until the next measurement; measure this again")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TextWarning)
                options: dict[str, Any] = {"seed": measured.request.seed, "cancel": job.check}
                single = explain(measured.phi, measured.tokens, single, [word], **options)
            kept.put(key, measured.explained(single))
        job.say("word", word=word, fragment=word_fragment(single, word))

    return work


class _Words:
    """Says the value by which a word is coloured as soon as it is known, and how far the work is."""

    def __init__(self, job: Job, tokens: "Tokens") -> None:
        self.job, self.tokens = job, tokens
        self.left = [len(pieces) for pieces in tokens.pieces]
        self.value = [0.0] * len(tokens.pieces)

    def add(self, entry: "TokenSensitivity") -> None:
        """Take a token that was measured: a word counts by its best token."""
        self.job.check()
        word = self.tokens.word_ids[entry.token]
        if word is None:
            return
        self.left[word] -= 1
        self._say(word, max(self.value[word], entry.lower))

    def put(self, word: int, value: float) -> None:
        """Take a whole word, by its number from 1."""
        self.job.check()
        self.left[word - 1] = 0
        self._say(word - 1, value)

    def step(self, what: str, done: int, total: int) -> None:
        """Say how far the work is."""
        self.job.check()
        self.job.say("step", what=what, done=done, total=total)

    def _say(self, word: int, value: float) -> None:
        self.value[word] = value
        self.job.say("move", word=word + 1, value=value, done=self.left.count(0), words=len(self.left))


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
