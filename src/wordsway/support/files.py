"""Files that are written where their path points and appear whole or not at all; reading them; where the cache is."""

import errno
import os
import re
import stat
import sys
import tempfile
from pathlib import Path

from wordsway.support.errors import InputError

_MOST_OF_STDIN = 256_000_000  # bytes: a device or a program may never stop sending
STDOUT = "-"  # how a user writes standard output
_DESCRIPTORS = re.compile(r"/dev/fd/(\d{1,4})|/proc/self/fd/(\d{1,4})")


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write to where a path points. A file appears whole or not at all: it is written beside its place and moved there;
    what a symbolic link points to is written, and the link stays. A device, a pipe and standard output ("-") are
    written in place."""
    target = check_target(path)
    if isinstance(target, int):
        return _write_open(target, content)
    if target.exists() and not target.is_file():
        return _write_in_place(target, content)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name[:100], suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):  # of a full disk it names no file; else the temporary one
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is standard output, a device or a pipe: what has no name of its own to tell a format by."""
    target = target_of(path)
    return isinstance(target, int) or (target.exists() and not target.is_file() and not target.is_dir())


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is standard output."""
    return target_of(path) == 1


def target_of(path: str | os.PathLike[str]) -> Path | int:
    """Find what a path points to: the file at the end of symbolic links, or the number of an open file of this
    process. The link /dev/stdout leads to a file where output goes to one, which must not be replaced under it."""
    text = os.fspath(path)
    for number, names in enumerate((("/dev/stdin",), (STDOUT, "/dev/stdout"), ("/dev/stderr",))):
        if text in names:
            return number
    match = _DESCRIPTORS.fullmatch(text)
    return int(match[1] or match[2]) if match else Path(os.path.realpath(text))


def check_target(path: str | os.PathLike[str]) -> Path | int:
    """Return what a path points to (as `target_of`), or raise an OSError that names the file, not a temporary one,
    unless it can be written there."""
    target = target_of(path)
    if isinstance(target, int):
        if target == 0:
            raise OSError(
                errno.EBADF, "Standard input cannot be written to; use - for standard output", os.fspath(path)
            )
        try:
            os.fstat(target)
        except OSError:
            raise OSError(errno.EBADF, "No file is open under this number; name a file", os.fspath(path)) from None
        return target
    if os.path.islink(target):
        raise OSError(errno.ELOOP, "This symbolic link points to itself; remove it", os.fspath(path))
    if target.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, "This is a folder, but a file is to be written; name a file in it", os.fspath(path)
        )
    if target.exists() and not target.is_file():
        if stat.S_ISBLK(target.stat().st_mode):
            raise OSError(errno.EPERM, "This is a disk, which is not written to; name a file", os.fspath(path))
        return target
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder; make it first (mkdir -p)", str(target.parent))
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "This folder cannot be written to; name another place", str(target.parent))
    return target


def _write_open(number: int, content: bytes) -> None:
    """Write to an open file of this process, after what was printed before."""
    streams = {1: sys.stdout, 2: sys.stderr}
    if number in streams:
        stream = streams[number]
        stream.flush()
        stream.buffer.write(content)
        return stream.flush()
    with os.fdopen(os.dup(number), "wb") as file:
        file.write(content)


def _write_in_place(target: Path, content: bytes) -> None:
    """Write to a device or a pipe."""
    try:
        handle = os.open(target, os.O_WRONLY | os.O_NONBLOCK)  # which does not wait for a reader
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "Nothing reads this pipe; start its reader first", str(target)) from None
        raise
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def read_stdin() -> bytes:
    """Read standard input to its end, or raise an InputError where it has none in sight."""
    content = sys.stdin.buffer.read(_MOST_OF_STDIN + 1)
    if len(content) > _MOST_OF_STDIN:
        raise InputError(f"standard input has more than {_MOST_OF_STDIN:,} bytes; write it to a file, and name that")
    return content


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file, or standard input by its name; a device or a pipe may have no end."""
    target = target_of(path)
    if target == 0:
        return read_stdin()
    if isinstance(target, int) or (target.exists() and not target.is_file() and not target.is_dir()):
        raise InputError(
            f"{os.fspath(path)!r} is a device or a pipe, not a file; copy it to a file, or give - and pipe it to stdin"
        )
    return Path(path).read_bytes()


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
