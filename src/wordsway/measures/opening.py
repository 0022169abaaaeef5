"""From what people have (names, live models, maps, texts, lists of texts) to a map with weights and an encoded text."""

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from wordsway.maps.base import FeatureMap
from wordsway.maps.from_callable import as_map
from wordsway.maps.map_names import is_map
from wordsway.maps.named import named_map
from wordsway.measures.text_results import TextResults
from wordsway.models.encoding.encode import encode
from wordsway.models.loading.load import open_model
from wordsway.models.moving.map import PretrainedMap
from wordsway.models.running.model import Transformer
from wordsway.support.errors import InputError
from wordsway.support.names import ENCODER
from wordsway.support.progress import Progress, shown_progress
from wordsway.tokens import Tokens, as_text

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Source:
    """Options of a model or map and its texts, as `word_sensitivity` has them; None is for what was not given."""

    output: str | None = None
    at: str | None = None
    tokenizer: Any = None
    encoder: Any = None
    max_tokens: int | None = None
    seed: int = 0
    device: torch.device | str = "cpu"
    called: str = "phi"  # the argument that names the model or map

    def open(self, given: Any, text: Any, *more: Any) -> tuple[FeatureMap, tuple[Any, ...]]:
        """Return the map, and the texts encoded for it; rows and encoded texts stay as they are."""
        texts = (text, *more)
        if isinstance(given, str) and is_map(given):
            self._refuse_model_options(f"the map {given!r}")
            encoded = tuple(self._encode(each) for each in texts)
            n, d = as_text(encoded[0]).shape
            return named_map(given, n, d, self.seed, device=self.device), encoded
        if is_model(given):
            if self.encoder is not None:
                raise InputError("encoder= belongs to a map; a model embeds its texts itself", argument="encoder")
            opened = open_model(given, self.tokenizer, self.device)
            phi = PretrainedMap(opened, self.output, at=self.at or "embeddings")
        else:
            self._refuse_model_options("a map with weights")
            phi = as_map(given, self.called)
        return phi, tuple(self._encoded(phi, each) for each in texts)

    def _encoded(self, phi: FeatureMap, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        return phi.encode(text, self.max_tokens) if isinstance(phi, PretrainedMap) else self._encode(text)

    def _encode(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        encoder = ENCODER if self.encoder is None else self.encoder
        return encode(text, encoder, max_tokens=self.max_tokens, device=self.device)

    def _refuse_model_options(self, what: str) -> None:
        for name in ("output", "at", "tokenizer"):
            if getattr(self, name) is not None:
                raise InputError(f"{name}= belongs to a model, not to {what}", argument=name)


def is_model(given: Any) -> bool:
    """Tell whether this names or is a pre-trained model, rather than a map or a function of rows."""
    live = hasattr(given, "base_model") and hasattr(given, "config")
    return live or isinstance(given, str | os.PathLike | Transformer) or (isinstance(given, tuple) and len(given) == 2)


def texts_of(given: Any) -> list[str | Tokens] | None:
    """Return the texts of a list, or of a column of a data frame; None where one text or rows were given."""
    if isinstance(given, str | Tokens | Tensor):
        return None
    listed = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(listed, list | tuple) or not any(isinstance(each, str | Tokens) for each in listed):
        return None
    wrong = next((k for k, each in enumerate(listed, 1) if not isinstance(each, str | Tokens)), None)
    if wrong is not None:
        raise InputError(f"text {wrong} of the list is no text: {type(listed[wrong - 1]).__name__}", argument="text")
    return list(listed)


def over_texts(function: Function) -> Function:
    """Let a function of a text, or of a model or map and a text, take a list of texts. It then returns the results of
    all (`TextResults`). `progress` is called with (texts done, texts in all); without it, a terminal shows a bar."""
    parameters = inspect.signature(function).parameters
    names = list(parameters)
    place = 0 if names[0] == "text" else 1
    text_name = names[place]

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        text = given[place] if len(given) > place else options.get(text_name)
        texts = texts_of(text)
        if texts is None:
            return function(*given, **options)
        told = options.pop("progress", None)
        quiet = {"progress": lambda done, total: None} if "progress" in parameters else {}

        def measure(each: str | Tokens) -> Any:
            if len(given) > place:
                return function(*given[:place], each, *given[place + 1 :], **options, **quiet)
            return function(*given, **{**options, **quiet, text_name: each})

        return _each(texts, told, measure)

    cast(Any, call).also_takes = {text_name: Sequence}
    return cast(Function, call)


def _each(texts: Sequence[str | Tokens], told: Progress, measure: Callable[[Any], Any]) -> TextResults:
    """Measure one text after another."""
    results: list[Any] = []
    with shown_progress(told, "text", len(texts)) as tell:
        for number, text in enumerate(texts, 1):
            try:
                results.append(measure(text))
            except InputError as error:
                raise InputError(f"text {number} of {len(texts)}: {error}", argument=error.argument) from error
            tell(number, len(texts))
    return TextResults(tuple(text if isinstance(text, str) else text.text for text in texts), tuple(results))
