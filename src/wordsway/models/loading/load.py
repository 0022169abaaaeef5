"""From files or a live model to an encoder (`load_encoder`) or a whole model with its head (`open_model`).

Weights come from safetensors or GGUF files only, and no code that comes with a model is run. What was loaded is kept in
memory, as loading takes longer than most texts.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import torch

from wordsway.models.loading import bundled, sentiment
from wordsway.models.loading.locate import Location, locate
from wordsway.models.loading.reinit import Redraw, draw_weights, keep_embeddings, split_name
from wordsway.models.running.checks import check_encoder
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.models.running.model import Transformer
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError, one_line
from wordsway.support.files import read_bytes
from wordsway.support.progress import bars_for_people

_MOST_LAYERS = 10_000
_MOST_OF_ANYTHING = 2**62  # some configurations say "no limit" by a huge number

# What the check of a live model found, for a tokenizer and its padding; the model itself must not be kept alive by it.
_checked: WeakKeyDictionary[Any, tuple[tuple[int, str], tuple[int | None, bool]]] = WeakKeyDictionary()


def open_model(model: Any = bundled.NAME, tokenizer: Any = None, device: torch.device | str = "cpu") -> Transformer:
    """A model by name ("minilm", "sentiment", "mpnet", a folder, a GGUF file, an id of the hub; "reinit:" before it for
    weights drawn anew), a live one with its tokenizer (or the pair of both), or one that is open already."""
    if isinstance(model, Transformer):
        return model
    if isinstance(model, tuple) and len(model) == 2 and tokenizer is None:
        model, tokenizer = model
    if isinstance(model, str | os.PathLike):
        if tokenizer is not None:
            raise InputError(
                "tokenizer= belongs to a live model; one that is given by name brings its own", argument="tokenizer"
            )
        name, redraw = split_name(os.fspath(model))
        if redraw is not None and name == sentiment.NAME:
            known = redraw.named(bundled.NAME)
            raise InputError(f"{sentiment.NAME!r} is {bundled.NAME!r} with a head; name that one: {known!r}")
        if name == sentiment.NAME:
            return _sentiment(str(find_device(device)))
        return _named(locate(model), str(find_device(device)))
    if hasattr(model, "base_model") and hasattr(model, "config"):
        encoder = live_encoder(model, tokenizer)
        return Transformer(encoder, model)
    raise InputError(
        f"model must be a name, a folder, or a model with its tokenizer, got {type(model).__name__}", argument="model"
    )


@lru_cache(maxsize=2)
def _named(location: Location, device: str) -> Transformer:
    """With the head that its files were saved with; a masked-word head is of no use here and left out."""
    saved = architecture(location)
    kind = (
        "AutoModelForSequenceClassification"
        if saved.endswith("ForSequenceClassification")
        else "AutoModelForCausalLM"
        if saved.endswith(("ForCausalLM", "LMHeadModel"))
        else "AutoModel"
    )
    if kind == "AutoModel":
        encoder = load_encoder(location, device)
        return Transformer(encoder, encoder.model)
    whole = read_model(location, kind, device)
    encoder = check_encoder(PretrainedEncoder(whole, read_tokenizer(location), location.name, location.revision))
    return Transformer(encoder, whole)


@lru_cache(maxsize=1)
def _sentiment(device: str) -> Transformer:
    encoder = load_encoder(locate(bundled.NAME), device)
    return Transformer(encoder, encoder.model, sentiment.sentiment_head(), sentiment.NAME)


def live_encoder(model: Any, tokenizer: Any) -> PretrainedEncoder:
    """Make an encoder of a live model, checked when it is first seen."""
    if tokenizer is None:
        raise InputError("a live model needs its tokenizer: give tokenizer= too")
    encoder = PretrainedEncoder(model, tokenizer)
    key, (known, found) = (id(tokenizer), tokenizer.padding_side), _checked.get(model, (None, (None, False)))
    if known == key:
        encoder.first_position, stops_early = found
        encoder.blocks = encoder.blocks if stops_early else None
    else:
        check_encoder(encoder)
        _checked[model] = (key, (encoder.first_position, encoder.blocks is not None))
    return encoder


@lru_cache(maxsize=2)
def load_encoder(location: Location, device: str) -> PretrainedEncoder:
    """Load the encoder of a model's files, and check it."""
    model = read_model(location, "AutoModel", device)
    return check_encoder(PretrainedEncoder(model, read_tokenizer(location), location.name, location.revision))


def read_model(location: Location, kind: str, device: str) -> Any:
    """A model from its files by one of the library's `Auto` classes: float32, in eval mode, its weights frozen."""
    import torch
    import transformers

    if location.redraw is not None:
        return _redrawn(location, location.redraw, kind, device)
    with _quiet():
        try:
            model, report = getattr(transformers, kind).from_pretrained(
                location.folder,
                dtype=torch.float32,
                use_safetensors=None if location.gguf else True,
                output_loading_info=True,
                **_options(location),
            )
        except Exception as error:  # damaged files raise many kinds of errors
            raise InputError(f"cannot load {location.name!r}: {one_line(error)}; {_again(location)}") from error
    # A pooler on top is not part of any hidden state; everything else must come from the file.
    unused = "pooler" if kind == "AutoModel" else None
    missing = sorted(key for key in report["missing_keys"] if unused is None or unused not in key)
    if missing or report["mismatched_keys"]:
        lacking = f"lacks weights of its own architecture, such as {(missing or ['?'])[0]!r}"
        raise InputError(f"{location.name!r} {lacking}; {_again(location)}")
    return model.eval().requires_grad_(False).to(device)


def _redrawn(location: Location, redraw: Redraw, kind: str, device: str) -> Any:
    import transformers

    with _quiet():
        try:
            model = draw_weights(getattr(transformers, kind), _config(location), redraw)
        except Exception as error:  # a configuration that does not fit raises many kinds of errors
            raise InputError(f"cannot draw weights for {location.name!r}: {one_line(error)}") from error
    if redraw.kind == "reinit-layers":
        keep_embeddings(model, read_model(replace(location, redraw=None), kind, "cpu"))
    return model.requires_grad_(False).to(device)


def architecture(location: Location) -> str:
    """The class that the model's files were saved from, as far as they say."""
    if location.gguf:
        return "ForCausalLM"  # what GGUF files hold
    return next(iter(getattr(_config(location), "architectures", None) or [""]))


def width(location: Location) -> int:
    """Return the number of coordinates of a hidden state."""
    return int(_config(location).hidden_size)


def size(location: Location) -> tuple[int, int, int]:
    """Coordinates, layers and heads; BERT-Base's where the configuration calls them by names of its own."""
    names = (("hidden_size", 768), ("num_hidden_layers", 12), ("num_attention_heads", 12))
    found = (getattr(_config(location), name, None) or usual for name, usual in names)
    d, layers, heads = (int(value) for value in found)
    return d, layers, heads


@lru_cache(maxsize=4)
def _config(location: Location) -> Any:
    from transformers import AutoConfig

    if not location.gguf:
        _check_claims(location)
    with _quiet():
        try:
            return AutoConfig.from_pretrained(location.folder, **_options(location))
        except Exception as error:  # damaged files raise many kinds of errors
            why = f"cannot read the configuration of {location.name!r}: {one_line(error)}"
            raise InputError(f"{why}; {_again(location)}") from error


def _check_claims(location: Location) -> None:
    """Raise an InputError for a configuration that claims a model which nobody has: building it would take forever."""
    try:
        claims = json.loads(read_bytes(location.folder / "config.json"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"config.json of {location.name!r} is not JSON: {one_line(error)}; {_again(location)}"
        ) from None
    for key, value in _entries(claims):
        most = _MOST_LAYERS if "layer" in key else _MOST_OF_ANYTHING
        if isinstance(value, int) and value > most:
            raise InputError(f"config.json of {location.name!r} has {key} above {most:,}; {_again(location)}")


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Go through the entries of a configuration, also of those within it: one for text, one for images."""
    pending = [value]
    while pending:
        block = pending.pop()
        if isinstance(block, dict):
            yield from block.items()
            pending.extend(block.values())


def count_tokens(texts: Sequence[str], name: str | os.PathLike[str]) -> list[int]:
    """Count the tokens of each text, special ones included, by the tokenizer alone."""
    tokenizer = read_tokenizer(locate(name))
    return [len(ids) for ids in tokenizer(list(texts), split_special_tokens=True, verbose=False)["input_ids"]]


@lru_cache(maxsize=2)
def read_tokenizer(location: Location) -> Any:
    """The tokenizer of a model's files, kept in memory."""
    from transformers import AutoTokenizer

    with _quiet():
        try:
            return AutoTokenizer.from_pretrained(location.folder, use_fast=True, **_options(location))
        except Exception as error:  # damaged files raise many kinds of errors
            why = f"cannot load the tokenizer of {location.name!r}: {one_line(error)}"
            raise InputError(f"{why}; {_again(location)}") from error


def _options(location: Location) -> dict[str, Any]:
    files = {"gguf_file": location.gguf} if location.gguf else {}
    return {"local_files_only": True, "trust_remote_code": False, **files}


def _again(location: Location) -> str:
    """Say what to do about files that cannot be loaded."""
    if location.gguf:
        return "download the file again, or use safetensors"
    return "is it whole? Download it again, or write it with save_pretrained of the model and of its tokenizer"


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's load reports, as what matters of them is checked, and without bars where nobody looks."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with bars_for_people():
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
