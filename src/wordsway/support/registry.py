"""Things by name, each imported when it is first used."""

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from wordsway.support import own_code
from wordsway.support.errors import InputError


class Registry:
    """Names of one `kind` of thing, such as scores, with the home of each, "module:object".

    The names can be read without importing any home, so that help and completion need no torch. "layer:K" stands for
    "layer:0", "layer:1", ... A name that is not listed may be code of a user's own, MODULE:NAME, where that is allowed.
    """

    def __init__(self, kind: str, homes: Mapping[str, str]) -> None:
        self.kind, self.homes = kind, homes

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __contains__(self, name: str) -> bool:
        return name in self.homes

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order in which users see them."""
        return tuple(self.homes)

    def key(self, name: str, written: str | None = None) -> str:
        """Find the listed name that a user's one stands for, or raise an InputError that lists them all; `written` is
        how the user gave it, such as an option of a command."""
        key = re.sub(r":\d+$", ":K", name)
        if key in self.homes and not name.endswith(":K"):
            return key
        if self.is_own(name):
            own_code.check_allowed(name, self.kind, self.names)
            return name
        written = written or f"{self.kind}={name!r}"
        listed = f"{', '.join(self)}, or MODULE:NAME of your own"
        raise InputError(f"{written} is not known; use one of: {listed}", argument=self.kind)

    def check(self, name: str) -> None:
        """Raise an InputError unless the name may be used. To look at one of a user's own takes no leave; to load it
        does."""
        if not self.is_own(name):
            self.key(name)

    def is_own(self, name: str) -> bool:
        """Whether a name asks for code of a user's own; "layer:x" does not, since "layer" is ours. Nothing is
        imported."""
        ours = {key.partition(":")[0] for key in self.homes}
        return own_code.is_spec(name) and name.partition(":")[0] not in ours

    def load(self, name: str) -> Any:
        """Import the thing with this name, a user's or a listed one."""
        key = name if name in self.homes else self.key(name)
        return load_home(self.homes[key]) if key in self.homes else own_code.load_own(key, self.kind)


def load_home(home: str) -> Any:
    """Import an object of the package by its home, "module:object"."""
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(module), name)
