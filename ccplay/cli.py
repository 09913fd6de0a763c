"""The command ``ccplay``: what its words mean, and nothing heavier until one is said."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ccplay import __version__
from ccplay.commands import (
    algorithm,
    compare,
    doctor,
    export,
    guest,
    lab,
    listing,
    play,
    replay,
    report,
    run,
    schema,
    script,
)
from ccplay.errors import CcplayError, UsageError
from ccplay.visible import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

_EPILOG = """\
without a command, ccplay opens the playground; `ccplay FILE.toml` opens a scenario live.

stdout is data, stderr is talk. Exit codes: 0 done; 1 error, of `ccplay run` also a check that
failed or traffic that died; 2 wrong command line; 3 scenario refused; 4 recording unreadable;
5 lab can't start or died; 6 not possible on this kernel; 129 the terminal is gone;
130 interrupted; 143 ended by SIGTERM. A screen ends with the code of what ended its session.
"""
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors become one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    _fill_closed_streams()
    _leave_the_current_directory_out()
    try:
        arguments = _parse(_with_command(words))
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except CcplayError as error:
        first, *more = error.lines or ("",)
        tell(f"ccplay: {first}", *more)
        return error.exit_code
    except KeyboardInterrupt:
        print("ccplay: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _give_up_stdout()
        return 1
    except OSError as error:
        if error.filename is not None:
            # Bad names are found in many places: too long, a file where a folder should be.
            tell(f"ccplay: {os.fsdecode(error.filename)}: {error.strerror}")
            return 1
        if error.errno not in _UNWRITABLE:
            raise
        _give_up_stdout()
        tell(f"ccplay: can't write the output: {error.strerror}")
        return 1
    return code


def _fill_closed_streams() -> None:
    """Have /dev/null for each of stdin, stdout and stderr that is closed.

    Else the next file that is opened would get its number, and what is printed.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _leave_the_current_directory_out() -> None:
    """Have what we start find no program and no module in the current directory.

    It may be a stranger's, and we may be root.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, places)) or os.defpath


def _give_up_stdout() -> None:
    """Lead stdout nowhere: Python would complain once more while it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_command(words: list[str]) -> list[str]:
    """Put ``play`` in front where a command line names no command.

    Raises ``UsageError`` for what was meant as one.
    """
    if words and (words[0] in _COMMANDS or words[0] in ("-h", "--help", "--version")):
        return words
    if words and words[0].isalpha() and not Path(words[0]).exists():
        from ccplay.scenario.file.library import shipped

        near = get_close_matches(words[0], [*_COMMANDS, *shipped()], n=1, cutoff=0.7)
        if near and near[0] in _COMMANDS:
            raise UsageError(f"no command {words[0]!r}; did you mean {near[0]!r}?")
    return ["play", *words]


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line, and what was meant."""

    def error(self, message: str) -> NoReturn:
        """End with the reason. What there is, is a page."""
        said = message.removeprefix("argument ")
        said = said.replace("the following arguments are required:", "needs")
        tell(f"{self.prog}: {said} ({self.prog} --help says what there is)")
        self.exit(2)

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        """End because of words that are not known."""
        word = next((each for each in rest if each.startswith("-")), rest[0])
        near = get_close_matches(word.partition("=")[0], self._option_string_actions, n=1)
        self.error(f"unknown {word!r}" + (f"; did you mean {near[0]}?" if near else ""))


def _parse(words: list[str]) -> argparse.Namespace:
    arguments, rest = _parser().parse_known_args(words)
    if rest:
        arguments.parser.refuse(rest)
    return arguments


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ccplay",
        description="See TCP congestion control work: a live playground on real Linux stacks.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ccplay {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (command, text) in _COMMANDS.items():
        own = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        own.set_defaults(parser=own)
        command.add(own)
    return parser


_COMMANDS = {
    "play": (play, "open a scenario live (the default)"),
    "run": (run, "run a scenario without a screen and print its result"),
    "list": (listing, "list the scenarios that come with ccplay, and those of this folder"),
    "replay": (replay, "show a recording on the screen, at any speed"),
    "report": (report, "make figures, tables and a page of what was run"),
    "export": (export, "write the samples of what was run as tidy CSV or Parquet"),
    "compare": (compare, "lay two recordings over each other, or compare two experiments"),
    "script": (script, "write what was done in a recorded session as a scenario"),
    "algorithm": (algorithm, "begin, check and list congestion controls of one's own"),
    "schema": (schema, "print the JSON Schema of scenario files, for editors"),
    "doctor": (doctor, "say whether a lab can run here, and what it can do"),
    "guest": (guest, "bring a full kernel, for --guest: QEMU, and some 100 MB to download"),
    "lab": (lab, "be a lab: commands on stdin, events on stdout, one JSON a line"),
}
