"""What a shell offers when Tab is pressed. Nothing heavy is imported: a shell asks at every press, and waits.

The names are written here a second time, as their homes load torch; a test holds the two lists together.
"""

from collections.abc import Callable
from importlib.resources import files

MAPS = ("rf", "drf", "raf", "relu-raf", "linear-raf", "transformer")
ENCODERS = ("synthetic", "correlated")
SCALES = ("smoke", "laptop", "paper")
BUDGETS = ("quick", "default", "thorough")
ENGINES = ("inline", "processes", "dask")
DATA = ("sample", "imdb", "sentences")
OUTPUTS = ("last", "pooled", "logits", "all-layers")  # shells break words at colons
DEVICES = ("cpu", "cuda", "mps")
ACTIVATIONS = ("relu", "tanh", "gelu", "identity")
OBJECTIVES = ("align", "error", "penalized")
TRAININGS = ("finetune", "retrain", "both")

Complete = Callable[[str], list[str]]


def one_of(*names: str) -> Complete:
    """Names that begin with what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def list_of(*names: str) -> Complete:
    """The same for names by commas: the last of them is completed, and none is offered twice."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in taken]

    return complete


def models(incomplete: str) -> list[str]:
    """Models that need no download."""
    from wordsway.models.loading.installed import models_at_hand

    return one_of(*(model.name for model in models_at_hand()))(incomplete)


def encoders(incomplete: str) -> list[str]:
    """The same without classifiers, and with Gaussian words."""
    return [name for name in models(incomplete) if name != "sentiment"] + one_of(*ENCODERS)(incomplete)


def studies(incomplete: str) -> list[str]:
    """Studies that come along."""
    names = (file.name for file in (files("wordsway.studies") / "built_in").iterdir())
    return one_of(*sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))(incomplete)


def figures(incomplete: str) -> list[str]:
    """Those that are the paper's."""
    return [name for name in studies(incomplete) if name.startswith("fig")]


def data(incomplete: str) -> list[str]:
    """Labelled texts by name, and the tables under WORDSWAY_DATA."""
    from wordsway.models.loading.installed import tables_at_hand

    return one_of(*DATA, *(table.name for table in tables_at_hand()))(incomplete)
