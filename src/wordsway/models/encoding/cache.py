"""Embeddings on disk: one safetensors file a text, found by a hash of text, encoder, revision and layer.

A file appears whole or not at all, so two processes that write the same one do no harm, nor does a kill. A file that
cannot be read, or that others may have written, is as good as none. When the disk is full or the folder cannot be
written, work goes on without.
"""

import hashlib
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from wordsway.support.cache_files import digest, tell_unused, usable, write_cached
from wordsway.support.errors import InputError, TextWarning
from wordsway.support.files import cache_folder
from wordsway.tokens import Tokens

_FORMAT = "wordsway.embedding/2"
_STALE = 3600.0  # seconds after which a half-written file belongs to a process that is gone


class EmbeddingCache:
    """`recipe` says everything but the text that the rows depend on, as JSON values."""

    def __init__(self, folder: Path | None, recipe: dict[str, Any]) -> None:
        self.folder = folder or cache_folder() / "embeddings"
        self.recipe = recipe
        self._open = True
        self._written = False

    def read(self, text: str) -> Tokens | None:
        """Read the kept rows of a text; None where there are none."""
        from safetensors import SafetensorError, safe_open

        path = self._path(text)
        if not usable(path):
            return None
        try:
            with safe_open(path, framework="pt") as file:
                found = file.metadata() or {}
                X = file.get_tensor("X")
            if found["sum"] != _checksum(X, found["tokens"]):
                raise ValueError
            tokens = _tokens_of(X, json.loads(found["tokens"]), text)
            os.utime(path)  # the files used last are the last to go
        except (SafetensorError, InputError, OSError, KeyError, TypeError, ValueError):
            tell_unused(path, f"{path} is damaged, or was not written by this user's wordsway")
            return None
        return tokens

    def write(self, tokens: Tokens) -> None:
        """Keep the tokens of a text."""
        from safetensors.torch import save

        if not self._open:
            return
        kept = json.dumps(
            {
                "tokens": tokens.tokens,
                "word_ids": tokens.word_ids,
                "special": tokens.special.tolist(),
                "offsets": tokens.offsets,
                "ids": tokens.ids,
                "source": tokens.source,
                "full_length": tokens.full_length,
                "unknown": tokens.unknown,
            }
        )
        X = tokens.X.contiguous()
        path = self._path(tokens.text)
        try:
            write_cached(path, save({"X": X}, {"tokens": kept, "sum": _checksum(X, kept)}))
            self._written = True
        except OSError as error:
            self._open = False
            reason = error.strerror or str(error)
            warnings.warn(f"embeddings are not cached in {self.folder}: {reason}", TextWarning, stacklevel=2)

    def prune(self) -> None:
        """Remove the files that were not used for longest while there is more than WORDSWAY_CACHE_GB (4) of them."""
        if not self._written:
            return
        most, files = _most_bytes(), []
        for path in self.folder.glob("*/*"):
            try:
                state = path.stat()
                if path.suffix == ".part" and time.time() - state.st_mtime > _STALE:
                    path.unlink()
                elif path.suffix == ".safetensors":
                    files.append((state.st_mtime, state.st_size, path))
            except OSError:
                continue  # another process removed it
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= most:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _path(self, text: str) -> Path:
        key = json.dumps([_FORMAT, self.recipe, text], sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest}.safetensors"


def _tokens_of(X: torch.Tensor, kept: Any, text: str) -> Tokens:
    """Put together what was kept; a TypeError where something is of another type than was written."""
    words, ids = kept["word_ids"], kept["ids"]
    lists = [kept["tokens"], words, kept["special"], kept["offsets"], ids, kept["unknown"]]
    if not all(isinstance(each, list) for each in lists) or not isinstance(kept["source"], dict):
        raise TypeError
    numbers = [*ids, *(number for pair in kept["offsets"] for number in pair)]
    maybe = [number for number in (*words, kept["full_length"]) if number is not None]
    right = X.dtype == torch.float32 and all(isinstance(token, str) for token in (*kept["tokens"], *kept["unknown"]))
    right = right and all(isinstance(flag, bool) for flag in kept["special"])
    if not right or not all(type(number) is int for number in (*numbers, *maybe)):
        raise TypeError
    return Tokens(
        X=X,
        tokens=tuple(kept["tokens"]),
        word_ids=tuple(words),
        special=torch.tensor(kept["special"], dtype=torch.bool),
        offsets=tuple((start, end) for start, end in kept["offsets"]),
        text=text,
        normalized=False,
        ids=tuple(ids),
        source=kept["source"],
        full_length=kept["full_length"],
        unknown=tuple(kept["unknown"]),
    )


def _checksum(X: torch.Tensor, text: str) -> str:
    return digest([text.encode(), X.numpy().data])


def _most_bytes() -> float:
    text = os.environ.get("WORDSWAY_CACHE_GB", "4")
    try:
        most = float(text) * 1e9
    except ValueError:
        most = -1.0
    if not most >= 0:
        raise InputError(f"WORDSWAY_CACHE_GB must be a number of gigabytes, got {text!r}")
    return most
