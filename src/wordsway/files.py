"""Files that appear whole or not at all, and where the cache is."""

import os
import tempfile
from pathlib import Path


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place and move it there, so that a killed run leaves no half of it."""
    target = Path(path)
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


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """The same for text, as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def cache_folder() -> Path:
    """WORDSWAY_CACHE, or wordsway/ in the user's cache folder. It may not exist yet."""
    own = os.environ.get("WORDSWAY_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wordsway"
