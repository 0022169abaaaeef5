"""Which files of the cache can be used: those that this user wrote, and nobody else may write to.

Each also carries a digest of its content under the user's own key, which tells a file that was damaged, or put there by
something else, from one of ours. The key is a file of the cache folder that only the user may read. A file that is not
to be used is as good as none: it is made again, and a warning says so, once a process.
"""

import errno
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wordsway.support.errors import TextWarning
from wordsway.support.files import cache_folder, write_bytes

_KEY_BYTES = 32
_told: set[str] = set()


def usable(path: Path) -> bool:
    """Tell whether a file is there that only this user can have written; says so where one is there and is not."""
    try:
        reason = why_not(path.parent) or why_not(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        reason = error.strerror or str(error)
    if reason is not None:
        tell_unused(path, reason)
    return reason is None


def why_not(path: Path) -> str | None:
    """Say why a file or folder is not to be used, where others may have written it."""
    state = os.lstat(path)
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        return f"{path} is neither a file nor a folder"
    if hasattr(os, "getuid") and state.st_uid != os.getuid():
        return f"{path} belongs to another user"
    if os.name == "posix" and state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to {path} (chmod go-w mends that)"
    return None


def tell_unused(path: Path, reason: str) -> None:
    """Warn that a file is not used; only of the first one."""
    if not _told:
        _told.add(str(path))
        warnings.warn(f"a file of the cache is not used, but made again: {reason}", TextWarning, stacklevel=3)


def write_cached(path: Path, content: bytes) -> None:
    """Write a file of the cache, which nobody else may read or write; an OSError where that cannot be."""
    make_private(path.parent)
    reason = why_not(path.parent)
    if reason is not None:
        raise PermissionError(errno.EACCES, reason)
    if path.is_symlink():  # not ours, and not to be followed
        path.unlink()
    write_bytes(path, content)
    path.chmod(0o600)


def make_private(folder: Path) -> None:
    """Make a folder of the cache for this user alone, and those above it that are missing."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def digest(parts: Iterable[Any], key: bytes | None = None) -> str:
    """Digest bytes, or what lies in memory as bytes, under a key: the user's unless another is given."""
    made = hmac.new(_user_key() if key is None else key, digestmod=hashlib.sha256)
    for part in parts:
        content = memoryview(part).cast("B")
        made.update(len(content).to_bytes(8, "big"))
        made.update(content)
    return made.hexdigest()


def _user_key() -> bytes:
    """Read the user's key, which is made at first use. Two processes that make one at a time agree on the first."""
    path = cache_folder() / "key"
    key = _read_key(path)
    if key is None:
        make_private(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix="key", suffix=".part")  # readable by the user alone
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
            if path.exists():
                os.replace(name, path)  # one that is not to be used
            else:
                os.link(name, path)
        except FileExistsError:
            pass
        finally:
            Path(name).unlink(missing_ok=True)
        key = path.read_bytes()
    return key


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes() if why_not(path) is None else b""
    except FileNotFoundError:
        return None
    return key if len(key) == _KEY_BYTES else None
