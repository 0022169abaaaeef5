"""The public function `encode`: texts in, `Tokens` out, whatever the encoder is."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import torch

from wordsway.models.encoding.cache import EmbeddingCache
from wordsway.models.encoding.synthetic import FunctionEncoder, SyntheticEncoder
from wordsway.models.loading import bundled
from wordsway.models.loading.bundled_embeddings import bundled_embeddings
from wordsway.models.loading.load import live_encoder, load_encoder
from wordsway.models.loading.locate import locate
from wordsway.models.running.encoder import Encoder, check_text, warn_of
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_size
from wordsway.support.progress import Progress, shown_progress
from wordsway.support.public_gate import public
from wordsway.tokens import Tokens, normalize_rows

_SYNTHETIC = {"synthetic": SyntheticEncoder(), "correlated": SyntheticEncoder(correlation=0.5)}


@overload
def encode(
    texts: str,
    encoder: Any = ...,
    *,
    tokenizer: Any = ...,
    layer: int = ...,
    normalize: bool = ...,
    max_tokens: int | None = ...,
    device: torch.device | str = ...,
    cache: bool | str | os.PathLike[str] | None = ...,
    progress: Progress = ...,
) -> Tokens: ...
@overload
def encode(
    texts: list[str] | tuple[str, ...],
    encoder: Any = ...,
    *,
    tokenizer: Any = ...,
    layer: int = ...,
    normalize: bool = ...,
    max_tokens: int | None = ...,
    device: torch.device | str = ...,
    cache: bool | str | os.PathLike[str] | None = ...,
    progress: Progress = ...,
) -> list[Tokens]: ...
@public
def encode(
    texts: str | Sequence[str],
    encoder: Any = "minilm",
    *,
    tokenizer: Any = None,
    layer: int = 0,
    normalize: bool = True,
    max_tokens: int | None = None,
    device: torch.device | str = "cpu",
    cache: bool | str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Tokens | list[Tokens]:
    """Embed a text, or a list of texts.

    `encoder` is "minilm" (bundled), a folder, a GGUF file or an id of the Hugging Face hub, a live model (with its
    `tokenizer=`, or the pair of both), "synthetic" or "correlated" (Gaussian rows; `SyntheticEncoder` has options), or
    any function of a text. `layer` is the hidden state that becomes X: 0 is the embedding layer's output, and layers
    after it do not run. Rows are rescaled to norm sqrt(d) unless `normalize=False`. A text that is longer than the
    model takes is an error unless `max_tokens` says how much of it to keep.

    A list is embedded in batches and kept on disk (`cache`: True for a list and False for one text unless given, or a
    folder) where the encoder was given by name. `progress` is called with (texts done, texts in all), or
    True to show it; without it, a long list shows a bar on a terminal.
    """
    single = isinstance(texts, str)
    if not single and (not isinstance(texts, Sequence) or isinstance(texts, bytes)):
        hint = "; pass its .texts" if hasattr(texts, "texts") else ""
        raise InputError(f"texts must be a str or a list of them, got {type(texts).__name__}{hint}", argument="texts")
    items = [texts] if single else list(texts)
    names = ["the text"] if single else [f"text {k}" for k in range(len(items))]
    checked = [check_text(text, name) for text, name in zip(items, names, strict=True)]
    check_size(layer, "layer", least=0)
    if not (cache is None or isinstance(cache, bool | str | os.PathLike)):
        raise InputError(f"cache must be True, False or a folder, got {cache!r}", argument="cache")
    if max_tokens is not None:
        check_size(max_tokens, "max_tokens")
    if not checked:
        return []
    find, recipe = _resolve(encoder, tokenizer, find_device(device), layer)
    store = None
    if recipe is not None and (not single if cache is None else cache):
        folder = Path(cache) if isinstance(cache, str | os.PathLike) else None
        store = EmbeddingCache(folder, {**recipe, "layer": layer, "max_tokens": max_tokens})
    elif cache and recipe is None:
        raise InputError(
            "cache= needs an encoder that is given by name: a live object has no revision to go by", argument="cache"
        )
    with shown_progress(progress, "text", len(checked)) as report:
        raw = _embed(checked, find, store, layer, max_tokens, report)
    warn_of(raw, str(raw[0].source.get("encoder")))
    found = [_prepare(tokens, normalize) for tokens in raw]
    return found[0] if single else found


def _embed(
    texts: list[str],
    find: Callable[[], Encoder],
    store: EmbeddingCache | None,
    layer: int,
    max_tokens: int | None,
    report: Callable[[int, int], None],
) -> list[Tokens]:
    """Raw tokens of distinct texts, each from the store or else from the encoder, which is loaded only if needed."""
    done: dict[str, Tokens] = {}
    distinct = list(dict.fromkeys(texts))
    for text in distinct:
        kept = store.read(text) if store else None
        if kept is not None:
            done[text] = kept
    missing = [text for text in distinct if text not in done]
    report(len(done), len(distinct))
    if missing:
        model = find()
        model.check_layer(layer)
        for index, tokens in model.embed(missing, layer, max_tokens):
            done[missing[index]] = tokens
            if store:
                store.write(tokens)
            report(len(done), len(distinct))
    if store:
        store.prune()
    return [done[text] for text in texts]


def find_encoder(encoder: Any, tokenizer: Any, device: torch.device) -> Encoder:
    """The encoder that `encode` would use, loaded."""
    return _resolve(encoder, tokenizer, device)[0]()


def _resolve(
    encoder: Any, tokenizer: Any, device: torch.device, layer: int | None = None
) -> tuple[Callable[[], Encoder], dict[str, Any] | None]:
    """Return a function that opens the encoder, and what its rows depend on (None where that is unknown). It is the
    whole encoder unless one hidden state is enough."""
    if isinstance(encoder, tuple) and len(encoder) == 2 and tokenizer is None:
        encoder, tokenizer = encoder
    if isinstance(encoder, str) and encoder in _SYNTHETIC:
        encoder = _SYNTHETIC[encoder]
    if isinstance(encoder, Encoder):
        return lambda: encoder, None
    if isinstance(encoder, str | os.PathLike):
        if tokenizer is not None:
            raise InputError(
                "tokenizer= belongs to a live model; one that is given by name brings its own", argument="tokenizer"
            )
        location = locate(encoder)
        recipe = {"encoder": location.name, "revision": location.revision, "device": device.type}
        if location.name == bundled.NAME and layer == 0 and device.type == "cpu":
            return lambda: bundled_embeddings(location), recipe
        return lambda: load_encoder(location, str(device)), recipe
    if hasattr(encoder, "base_model") and hasattr(encoder, "config"):
        return lambda: live_encoder(encoder, tokenizer), None
    if isinstance(encoder, torch.nn.Module):
        raise InputError(
            f"{type(encoder).__name__} is not a model of the transformers library; give a function of a text"
        )
    if callable(encoder):
        if tokenizer is not None:
            raise InputError("tokenizer= belongs to a live model, not to a function of a text", argument="tokenizer")
        return lambda: FunctionEncoder(encoder), None
    raise InputError(
        f"encoder must be a name, a folder, a model with its tokenizer or a function, got {encoder!r}",
        argument="encoder",
    )


def _prepare(tokens: Tokens, normalize: bool) -> Tokens:
    X = normalize_rows(tokens.X) if normalize else tokens.X
    return replace(tokens, X=X, normalized=normalize, source={**tokens.source, "normalized": normalize})
