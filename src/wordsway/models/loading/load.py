"""From a name or a live model to a `Transformer`: with its head where its files have one."""

import os
from functools import lru_cache
from typing import Any

import torch

from wordsway.models.encoding.encode import live_encoder
from wordsway.models.loading import bundled, sentiment
from wordsway.models.loading.locate import Location, architecture, load, locate, read_model, read_tokenizer
from wordsway.models.loading.reinit import split_name
from wordsway.models.running.checks import check_encoder
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.models.running.model import Transformer
from wordsway.support.devices import find_device
from wordsway.support.errors import InputError


def open_model(model: Any = bundled.NAME, tokenizer: Any = None, device: torch.device | str = "cpu") -> Transformer:
    """A model by name ("minilm", "sentiment", "mpnet", a folder, a GGUF file, an id of the hub; "reinit:" before it for
    weights drawn anew), a live one with its tokenizer (or the pair of both), or one that is open already."""
    if isinstance(model, Transformer):
        return model
    if isinstance(model, tuple) and len(model) == 2 and tokenizer is None:
        model, tokenizer = model
    if isinstance(model, str | os.PathLike):
        if tokenizer is not None:
            raise InputError("tokenizer= belongs to a live model; one that is given by name brings its own")
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
    raise InputError(f"model must be a name, a folder, or a model with its tokenizer, got {type(model).__name__}")


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
        encoder = load(location, device)
        return Transformer(encoder, encoder.model)
    whole = read_model(location, kind, device)
    encoder = check_encoder(PretrainedEncoder(whole, read_tokenizer(location), location.name, location.revision))
    return Transformer(encoder, whole)


@lru_cache(maxsize=1)
def _sentiment(device: str) -> Transformer:
    encoder = load(locate(bundled.NAME), device)
    return Transformer(encoder, encoder.model, sentiment.sentiment_head(), sentiment.NAME)
