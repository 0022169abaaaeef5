"""Which models can be used without a network. Looks at names of files only, so that it is quick enough for a shell's
completion."""

import importlib.util
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from wordsway.models.loading import bundled

SENTIMENT = "sentiment"  # the bundled encoder with a classifier on top
HUB_NAMES = {"mpnet": "sentence-transformers/all-mpnet-base-v2"}
_TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Found:
    """`name` is what a user gives to --model or --data; `place` is its file or folder."""

    name: str
    source: str
    place: Path

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return bytes_of([self.place] if self.place.is_file() else _listed(self.place))


def models_at_hand() -> list[Found]:
    """Bundled models, those under WORDSWAY_MODELS, and those in the hub's local cache."""
    return [*_bundled(), *_own(), *_cached()]


def own_folder(name: str) -> Path | None:
    """Find the model that the folder `name` of WORDSWAY_MODELS holds: a folder of its files, one with a GGUF file
    included."""
    place = next((each for each in _folders(folder_of("WORDSWAY_MODELS")) if each.name == name), None)
    if place is None:
        return None
    return next((each for each in (place, *_folders(place)) if _is_model(each) or any(each.glob("*.gguf"))), None)


def folder_names() -> list[str]:
    """List the folders of WORDSWAY_MODELS that hold a model."""
    names = [place.name for place in _folders(folder_of("WORDSWAY_MODELS"))]
    return [name for name in names if own_folder(name) is not None]


def tables_at_hand() -> list[Found]:
    """Tables under WORDSWAY_DATA; which of them have texts and labels is not looked at."""
    home = folder_of("WORDSWAY_DATA")
    return [Found(str(file), "WORDSWAY_DATA", file) for file in _listed(home) if file.suffix.lower() in _TABLES]


def bytes_of(files: Iterable[Path]) -> int:
    """Return the total size of files; one that is deleted meanwhile counts as 0."""
    total = 0
    for file in files:
        try:
            state = file.stat()
        except OSError:
            continue
        total += state.st_size if S_ISREG(state.st_mode) else 0
    return total


def folder_of(variable: str) -> Path | None:
    """The folder that an environment variable names, there or not."""
    home = os.environ.get(variable)
    return Path(home).expanduser() if home else None


def hub_cache() -> Path:
    """Return the folder of the hub client's downloads, by the client's own rules: importing it takes a while."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        own = folder_of(variable)
        if own is not None:
            return own
    home = folder_of("HF_HOME") or (folder_of("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "huggingface"
    return home / "hub"


def _bundled() -> Iterator[Found]:
    spec = importlib.util.find_spec(bundled.PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "model"
        if _is_model(folder):
            yield Found(bundled.NAME, "bundled", folder)
            yield Found(SENTIMENT, "bundled", folder)


def _own() -> Iterator[Found]:
    home = folder_of("WORDSWAY_MODELS")
    for place in _folders(home):
        # The model may be one folder further down.
        folder = next((each for each in (place, *_folders(place)) if _is_model(each)), None)
        if folder is not None:
            name = place.name if place.name in HUB_NAMES else str(folder)
            yield Found(name, "WORDSWAY_MODELS", folder)
        for file in sorted(place.glob("*.gguf")):
            yield Found(str(file), "WORDSWAY_MODELS", file)


def _cached() -> Iterator[Found]:
    for place in _folders(hub_cache()):
        if place.name.startswith("models--"):
            snapshots = [each for each in _folders(place / "snapshots") if _is_model(each)]
            if snapshots:
                yield Found(place.name.removeprefix("models--").replace("--", "/"), "hub cache", snapshots[-1])


def _folders(home: Path | None) -> list[Path]:
    return [place for place in _listed(home) if place.is_dir()]


def _listed(home: Path | None) -> list[Path]:
    try:
        return sorted(home.iterdir()) if home is not None else []
    except OSError:
        return []  # not there, or not ours to read


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))
