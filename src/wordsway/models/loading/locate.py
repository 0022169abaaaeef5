"""From a name to a model's files: the bundled one, a folder, a GGUF file, or an id of the Hugging Face hub.

`locate` says where the files are and which revision they are, without loading anything heavy.
"""

import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from wordsway.models.loading import bundled
from wordsway.models.loading.installed import HUB_NAMES, SENTIMENT, folder_names, models_at_hand, own_folder
from wordsway.models.loading.reinit import Redraw, split_name
from wordsway.support.errors import InputError, one_line
from wordsway.support.progress import bars_for_people

EXTRA = "pip install 'wordsway[text]'"
HUB_SECONDS = 5  # how long to wait for an answer of the hub
_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Location:
    """The location of a model's files. `revision` changes when they do. With `redraw`, the weights are not those of the
    files."""

    name: str
    folder: Path
    revision: str
    gguf: str | None = None
    redraw: Redraw | None = None


def locate(name: str | os.PathLike[str]) -> Location:
    """The files of a model by name, downloading them where the hub must be asked."""
    require_transformers()
    text, redraw = split_name(os.fspath(name))
    if redraw is not None:
        found = locate(text)
        if found.gguf:
            raise InputError(
                f"{os.fspath(name)!r}: a GGUF file does not say how its architecture is initialised; name a folder "
                "with config.json and safetensors, or a hub id"
            )
        revision = f"{found.revision}+{redraw.kind}@{redraw.seed or 0}"
        return replace(found, name=os.fspath(name), revision=revision, redraw=redraw)
    path = Path(text).expanduser()
    if text == bundled.NAME:
        return Location(text, bundled.find(), bundled.SHA256[:12])
    if text in HUB_NAMES:
        folder = _local_models(text)
        return _hub(HUB_NAMES[text]) if folder is None else Location(text, folder, _fingerprint(folder))
    if text == SENTIMENT and not path.is_dir():
        raise InputError(f"{text!r} is a classifier: use it as --model {text}, or its encoder {bundled.NAME!r}")
    if path.is_file() and path.suffix == ".gguf":
        _require_gguf()
        return Location(text, path.parent, _fingerprint(path), path.name)
    if path.is_dir():
        return _folder(text, path)
    own = own_folder(text)
    if own is not None:
        return _folder(text, own)
    if path.is_file():
        raise InputError(
            f"{text!r} is a file, but a model is a folder with safetensors, a .gguf file or a hub id; {advice(text)}"
        )
    if not _ID.fullmatch(text) or text.startswith(".") or path.suffix == ".gguf":
        kind = "file" if path.suffix == ".gguf" else "model folder"
        raise InputError(f"there is no {kind} {text!r}, and it is no name of a model on the hub either; {advice(text)}")
    return _hub(text)


def advice(name: str) -> str:
    """Say what to do when no model has this name, and suggest the closest known name."""
    names = [bundled.NAME, SENTIMENT, *HUB_NAMES, *folder_names(), *(model.name for model in models_at_hand())]
    known = list(dict.fromkeys(names))
    near = get_close_matches(name, known, 1)
    meant = f"did you mean {near[0]!r}? Else " if near and near[0] != name else ""
    return f"{meant}use a folder, or the bundled {bundled.NAME!r}; wordsway doctor lists all that are at hand"


def require_transformers() -> None:
    """A clear word where the core is installed alone."""
    if importlib.util.find_spec("transformers") is None:
        raise InputError(f"encoding text needs the transformers library; install the extra: {EXTRA}")


def _require_gguf() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("gguf", "accelerate")):
        raise InputError("GGUF files need gguf and accelerate; install the extra: pip install 'wordsway[gguf]'")


def _folder(name: str, folder: Path) -> Location:
    weights = sorted(file.name for file in folder.iterdir() if file.suffix in (".safetensors", ".gguf"))
    if (folder / "config.json").is_file() and any(file.endswith(".safetensors") for file in weights):
        return Location(name, folder, _fingerprint(folder))
    gguf = [file for file in weights if file.endswith(".gguf")]
    if len(gguf) == 1:
        _require_gguf()
        return Location(name, folder, _fingerprint(folder / gguf[0]), gguf[0])
    if gguf:
        raise InputError(f"{name!r} has several GGUF files: name one of them, such as {str(Path(name) / gguf[0])!r}")
    if list(folder.glob("*.bin")) or list(folder.glob("*.pt*")):
        raise InputError(
            f"{name!r} has pickled weights only, which are not loaded because a pickle can run code; "
            "save it again with model.save_pretrained(folder), which writes safetensors"
        )
    raise InputError(f"{name!r} is no model folder: it needs config.json and a .safetensors file, or one .gguf file")


def _hub(name: str) -> Location:
    """A snapshot of the hub's repository: from the local cache, else downloaded if the hub answers soon."""
    from huggingface_hub import HfApi, constants, errors, snapshot_download, try_to_load_from_cache

    # By the branch's name, not its commit, or else the cache could not be found by name when offline.
    ask = {"repo_id": name, "allow_patterns": _FILES, "ignore_patterns": ["*/*"]}
    try:
        return _snapshot(name, Path(snapshot_download(**ask, local_files_only=True)))
    except errors.HFValidationError:
        raise InputError(f"there is no model folder {name!r}, nor can the hub have one; {advice(name)}") from None
    except errors.LocalEntryNotFoundError:
        pass
    try:
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE is set; unset it to download")
        info = HfApi().model_info(name, timeout=HUB_SECONDS)
    except errors.GatedRepoError:
        raise InputError(f"{name!r} is gated: accept its terms on the hub, then run `hf auth login`") from None
    except errors.RepositoryNotFoundError:
        raise InputError(
            f"there is no model {name!r} on the hub (or it is private), nor a folder here; {advice(name)}"
        ) from None
    except Exception as error:  # the client's many network errors have no public class in common
        # Other programs keep only the files that they need; these may be enough.
        config = try_to_load_from_cache(name, "config.json")
        if isinstance(config, str) and list(Path(config).parent.glob("*.safetensors")):
            return _snapshot(name, Path(config).parent)
        raise InputError(
            f"{name!r} is not in the local cache, and the hub cannot be reached ({one_line(error)}); {advice(name)}"
        ) from error
    if not any(file.rfilename.endswith(".safetensors") for file in info.siblings or []):
        raise InputError(f"{name!r} has no safetensors weights on the hub; pickled weights are not loaded")
    try:
        with bars_for_people():
            return _snapshot(name, Path(snapshot_download(**ask)))
    except Exception as error:  # network, disk and client errors have no public class in common
        raise InputError(f"downloading {name!r} failed ({one_line(error)}); run again to go on") from error


def _snapshot(name: str, folder: Path) -> Location:
    return Location(name, folder, folder.name)  # the client names a snapshot's folder by its commit


def _local_models(name: str) -> Path | None:
    """A folder of that name where WORDSWAY_MODELS says; the model may be one folder further down."""
    home = os.environ.get("WORDSWAY_MODELS")
    place = Path(home).expanduser() / name if home else None
    if place is None or not place.is_dir():
        return None
    return next((folder for folder in (place, *sorted(place.iterdir())) if (folder / "config.json").is_file()), None)


def _fingerprint(place: Path) -> str:
    """Changes when a file's name, size or time does."""
    files = [place] if place.is_file() else sorted(file for file in place.iterdir() if file.is_file())
    seen = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((str(place.resolve()), seen)).encode()).hexdigest()[:12]
