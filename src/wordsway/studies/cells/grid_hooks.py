"""Hooks that several kinds of cells share: what a grid means that has maps, real texts, or a model in it.

Each class is for kinds with the fields that it names, and a kind may have several of them among its bases.
"""

from collections.abc import Mapping
from typing import Any

from wordsway.maps.map_names import base_name
from wordsway.models.loading.reinit import split_name
from wordsway.studies.cells.base import Cell
from wordsway.support.errors import InputError, StudyError

SYNTHETIC = "synthetic"  # the encoder of Gaussian rows
# Fields that mean something for some maps only: a grid may have them beside others, where they keep their default.
_ONLY_FOR = {"depth": ("drf", "transformer"), "temperature": ("raf", "transformer")}


class OfMap(Cell):
    """Cells with a field `map`, and perhaps `depth` and `temperature`, which only some maps have."""

    map: str

    def maps(self) -> tuple[str, ...]:
        return (self.map,)

    @classmethod
    def refuse(cls, values: Mapping[str, Any]) -> None:
        super().refuse(values)
        asked = values.get("map", ())
        bases = {base_name(each) for each in ([asked] if isinstance(asked, str) else asked)}
        for name, maps in _ONLY_FOR.items():
            if name in values and not set(maps) & bases:
                raise StudyError(f"{name} is for {', '.join(maps)}, which is not among the maps", name)

    @classmethod
    def chosen(cls, values: dict[str, Any]) -> dict[str, Any]:
        base = base_name(values.get("map", ""))
        return super().chosen({k: v for k, v in values.items() if k not in _ONLY_FOR or base in _ONLY_FOR[k]})


class OfTexts(Cell):
    """Cells with a field `data`, the source of their texts."""

    data: Any

    def texts(self) -> tuple[str, ...]:
        return (self.data,) if isinstance(self.data, str) else ()


class OneTextForAllLengths(Cell):
    """Cells with the fields `n` and `at_least`: texts are long enough for the largest n, so that all n have one."""

    @classmethod
    def complete(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        complete = super().complete(values)
        lengths = values.get("n")
        if "at_least" not in complete and lengths is not None:
            complete["at_least"] = max(lengths) if isinstance(lengths, list | tuple) else lengths
        return complete


class OfEncoder(Cell):
    """Cells with a field `encoder`, which may be synthetic, and `d`, which is at most the encoder's."""

    encoder: str

    def models(self) -> tuple[str, ...]:
        return () if self.encoder == SYNTHETIC else (self.encoder,)

    @classmethod
    def adapt(cls, values: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
        changes = super().adapt(values, asked)
        real = "data" in asked or "padding" in asked
        if real and values.get("skip") is None and {**values, **changes}.get("encoder") == SYNTHETIC:
            raise InputError("data and padding are about real texts, but the encoder is synthetic; name another one")
        return changes

    @classmethod
    def most_coordinates(cls, values: Mapping[str, Any]) -> int | None:
        encoder = values.get("encoder", SYNTHETIC)
        if not isinstance(encoder, str) or encoder == SYNTHETIC:
            return None
        from wordsway.models.loading.load import width
        from wordsway.models.loading.locate import locate

        return width(locate(encoder))


class OfModel(Cell):
    """Cells with a field `model`, which follows the encoder that a command asks for."""

    model: str

    def models(self) -> tuple[str, ...]:
        return (self.model,)

    @classmethod
    def adapt(cls, values: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
        changes, encoder = super().adapt(values, asked), asked.get("encoder")
        if encoder == SYNTHETIC:
            return {**changes, "skip": "synthetic rows have no model behind them"}
        return changes if encoder is None else {**changes, "model": following(values.get("model"), encoder)}


def following(models: Any, encoder: str) -> Any:
    """Put another model in the place of a panel's own; where weights of one were drawn anew, so are those of the
    other."""
    listed = models if isinstance(models, list | tuple) else [models]
    trained = split_name(encoder)[1] is None
    redraws = [split_name(model)[1] if isinstance(model, str) else None for model in listed]
    new = dict.fromkeys(redraw.named(encoder) if redraw and trained else encoder for redraw in redraws)
    return list(new) if len(new) > 1 else next(iter(new))
