"""The errors that a user can cause. Each says which argument, what it was and what would be right."""

import re

_LONGEST = 2000  # characters of a message; what is right stands at its end
_RUN = re.compile(r"(\S{60})\S{320,}(\S{20})")  # longer than paths are: thousands of digits, or a file's content


class InputError(ValueError):
    """An argument that cannot be worked with; the command line shows it as one line and exits with code 2.

    `argument` is its name, where there is one: "n", "map". Who reads a file or a command can then say where it stands.
    What was given may be a name of 200,000 characters: of a long message the middle is left out.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(shortened(message) if isinstance(message, str) else message)
        self.argument = argument


def shortened(text: str) -> str:
    """Leave out the middle of a long text, and of each run of characters without a space that no path is as long as."""
    if len(text) > 400:
        text = _RUN.sub(r"\1...\2", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


class StudyError(InputError):
    """Something in a study that cannot be: `key` names it, where that can be told, so that its line can be found."""

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message, key)
        self.key = key


class TextWarning(UserWarning):
    """Something about a text that a reader of the numbers should know: it was cropped, or has unknown words."""


class DamageWarning(UserWarning):
    """A run whose file was damaged, and what became of it."""


class SpanError(InputError):
    """A text whose features lie in the span of the training features, so that re-training on it changes nothing."""


class RankWarning(UserWarning):
    """Training features that depend on each other, so that the labels may not be interpolated exactly."""


class PlaceError(InputError, OSError):
    """An error of the operating system about a path that was given: it is both, and keeps number, text and path."""

    def __init__(self, error: OSError) -> None:
        super().__init__(one_line(error))
        self.errno, self.strerror, self.filename = error.errno, error.strerror, error.filename

    def __str__(self) -> str:
        return str(self.args[0])  # an OSError would show the whole path, which may be what is too long


def one_line(error: BaseException, most: int = 300) -> str:
    """Another library's error as part of a message: on one line, and not too long."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= most else text[: most - 3] + "..."


class ZeroError(InputError):
    """phi(X) is zero, so a change relative to it is not defined."""


class TooLargeError(InputError):
    """A request that does not fit in this machine's memory, or in what a lazy map may keep."""
