"""Embeddings on disk: one safetensors file a text, found by a hash of text, encoder, revision and layer.

A file appears whole or not at all, so two processes that write the same one do no harm, nor does a kill. A file that
cannot be read is as good as none. When the disk is full or the folder cannot be written, work goes on without.
"""

import hashlib
import json
import os
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import torch

from wordsway.support.errors import InputError, TextWarning
from wordsway.support.files import cache_folder, write_bytes
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
        if not path.is_file():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                found = file.metadata() or {}
                X = file.get_tensor("X")
            if found["sum"] != _checksum(X, found["tokens"]):
                return None
            kept = json.loads(found["tokens"])
            tokens = Tokens(
                X=X,
                tokens=tuple(kept["tokens"]),
                word_ids=tuple(kept["word_ids"]),
                special=torch.tensor(kept["special"], dtype=torch.bool),
                offsets=tuple((start, end) for start, end in kept["offsets"]),
                text=text,
                normalized=False,
                ids=tuple(kept["ids"]),
                source=kept["source"],
                full_length=kept["full_length"],
                unknown=tuple(kept["unknown"]),
            )
            os.utime(path)  # the files used last are the last to go
        except (SafetensorError, InputError, OSError, KeyError, TypeError, ValueError):
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
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, save({"X": X}, {"tokens": kept, "sum": _checksum(X, kept)}))
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


def _checksum(X: torch.Tensor, text: str) -> str:
    """Tells a file that was damaged from one that was not."""
    return f"{zlib.crc32(text.encode(), zlib.crc32(X.numpy().data)):08x}"


def _most_bytes() -> float:
    text = os.environ.get("WORDSWAY_CACHE_GB", "4")
    try:
        most = float(text) * 1e9
    except ValueError:
        most = -1.0
    if not most >= 0:
        raise InputError(f"WORDSWAY_CACHE_GB must be a number of gigabytes, got {text!r}")
    return most
