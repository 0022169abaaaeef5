"""Names that a shell offers when Tab is pressed. Nothing heavy is imported: a shell asks at every press, and waits.

The names are those of `support/names.py`, which needs no torch.
"""

from collections.abc import Callable

from wordsway.support import names as known

Complete = Callable[[str], list[str]]


def one_of(*names: str) -> Complete:
    """Offer names that begin with what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def list_of(*names: str) -> Complete:
    """Complete names by commas: the last of them is completed, and none is offered twice."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in taken]

    return complete


def models(incomplete: str) -> list[str]:
    """Offer models that need no download."""
    from wordsway.models.loading.installed import models_at_hand

    return one_of(*(model.name for model in models_at_hand()))(incomplete)


def predictors(incomplete: str) -> list[str]:
    """Offer models that need no download, but those without a prediction that are known by name."""
    return [name for name in models(incomplete) if name not in known.WITHOUT_PREDICTION]


def encoders(incomplete: str) -> list[str]:
    """Offer models without classifiers, and Gaussian words."""
    return [name for name in models(incomplete) if name != "sentiment"] + one_of(*known.GAUSSIAN)(incomplete)


def studies(incomplete: str) -> list[str]:
    """Offer the built-in studies."""
    return one_of(*known.studies())(incomplete)


def figures(incomplete: str) -> list[str]:
    """Offer the built-in studies that are figures of the paper."""
    return one_of(*known.paper_figures())(incomplete)


def data(incomplete: str) -> list[str]:
    """Offer labelled texts by name, and the tables under WORDSWAY_DATA."""
    from wordsway.models.loading.installed import tables_at_hand

    return one_of(*known.DATA, *(table.name for table in tables_at_hand()))(incomplete)
