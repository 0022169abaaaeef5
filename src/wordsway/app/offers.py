"""Which models the page offers: the bundled ones and those whose files are at hand. A page must not make anybody's
machine fetch or open anything else."""

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordsway.models.loading import bundled
from wordsway.models.loading.installed import HUB_NAMES
from wordsway.models.loading.sentiment import NAME as SENTIMENT
from wordsway.support.errors import InputError


@dataclass(frozen=True)
class Offer:
    """A model as the command line names it, and as people do."""

    name: str
    label: str


def find_offers(folders: Sequence[Path] = ()) -> dict[str, Offer]:
    """By name: the bundled models, those where WORDSWAY_MODELS says, and those in `folders`."""
    found: list[Offer] = []
    if importlib.util.find_spec(bundled.PACKAGE) is not None:
        found += [Offer(bundled.NAME, "minilm"), Offer(SENTIMENT, "sentiment, a classifier")]
    home = os.environ.get("WORDSWAY_MODELS")
    if home:
        found += _models(Path(home).expanduser(), named=True)
    for folder in folders:
        here = list(_models(folder.expanduser()))
        if not here:
            raise InputError(
                f"--models {str(folder)!r} has no model: a folder with config.json and safetensors, or a .gguf file"
            )
        found += here
    return {offer.name: offer for offer in found}


def _models(place: Path, named: bool = False) -> Iterator[Offer]:
    """Models in a folder, or one or two folders further down. Those with a name of ours in WORDSWAY_MODELS go by it."""
    if place.is_file() and place.suffix == ".gguf":
        yield Offer(str(place.resolve()), place.stem)
    elif place.is_dir():
        for folder in sorted([place, *place.glob("*/"), *place.glob("*/*/")]):
            first = folder.relative_to(place).parts[:1]
            if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
                name = first[0] if named and first and first[0] in HUB_NAMES else None
                yield Offer(name or str(folder.resolve()), name or folder.name)
            for file in sorted(folder.glob("*.gguf")):
                yield Offer(str(file.resolve()), file.stem)
