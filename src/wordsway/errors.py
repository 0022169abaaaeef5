"""The errors that a user can cause. Each says which argument, what it was and what would be right."""


class InputError(ValueError):
    """An argument that cannot be worked with; the command line shows it as one line and exits with code 2."""


class TooLargeError(InputError):
    """A request that does not fit in this machine's memory, or in what a lazy map may keep."""
