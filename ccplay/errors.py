"""One tree of exceptions, each class with the exit code of a command that it ends."""

ROOT_REMEDY = "remedy: as root, with CAP_SYS_ADMIN; in a container: start it with --privileged"
"""Remedy to suggest if unshare(1) refuses namespaces to root."""


class CcplayError(Exception):
    """An error reported to the user: what failed, on what, and what to do about it.

    ``exit_code`` is the exit code of the process if ``cli.main`` catches the error.
    """

    exit_code = 1

    def __init__(self, *lines: str) -> None:
        """Store the message; each argument is one line, even with a line break in a file's name."""
        super().__init__(*lines)
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)


class UsageError(CcplayError):
    """The command line asks for something that does not exist or is not allowed."""

    exit_code = 2


class ScenarioError(CcplayError):
    """A scenario file is refused; the message has the file, the place and a suggestion."""

    exit_code = 3


class RecordingError(CcplayError):
    """A recording can't be read or written."""

    exit_code = 4


class LabError(CcplayError):
    """The lab can't start or has died."""

    exit_code = 5


class UnsupportedError(LabError):
    """Kernel or machine can't do what was asked; the message has the reason and the remedy."""

    exit_code = 6


class WireError(CcplayError):
    """A line of the stream is not a record that this version understands."""

    exit_code = 7


class CommandError(CcplayError):
    """The lab refuses a command, which names something that does not exist or is impossible."""

    exit_code = 8
