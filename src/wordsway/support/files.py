"""Files that appear whole or not at all, and where the cache is."""

import errno
import os
import tempfile
from pathlib import Path

from wordsway.support.errors import InputError


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place and move it there, so that a killed run leaves no half of it."""
    target = Path(path)
    check_target(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise an OSError that names the file, not a temporary one, unless it can be made where it is to be."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, "This is a folder, but a file is to be written; name a file in it", str(target)
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder; make it first (mkdir -p)", str(target.parent))
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "This folder cannot be written to; name another place", str(target.parent))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as UTF-8, in the way of `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def decode(content: bytes, name: str) -> str:
    """UTF-8 text, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise InputError(
            f"{name} is not UTF-8 text: byte {byte:#04x} at position {error.start}; a text in another encoding is "
            "converted by: iconv -f LATIN1 -t UTF-8 OLD > NEW"
        ) from None


def cache_folder() -> Path:
    """WORDSWAY_CACHE, or wordsway/ in the user's cache folder. It may not exist yet."""
    own = os.environ.get("WORDSWAY_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wordsway"
