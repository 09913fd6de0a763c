"""The command line of ``ccplay``: this module parses it; a module each for a group of commands.

Only the chosen command imports its module, and heavy imports are inside functions, so that
``--help`` is instant.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ccplay import __version__
from ccplay.errors import CcplayError, UsageError
from ccplay.visible import notify

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP = """\
{commands}
  ccplay                  open the playground: two flows, a queue, and keys to change both
  ccplay FILE.toml        open a scenario on the screen
  ccplay COMMAND --help   explain a command and its options
  ccplay --help --all     also list evaluate, and what you set up once: completion, a guest

Results go to stdout, messages to stderr. Exit codes: 0 done; 1 error, and with `ccplay run` also a
failed check or traffic that died; 2 wrong command line; 3 scenario refused; 4 recording unreadable;
5 lab can't start, or died; 6 not possible on this kernel; 129 terminal closed; 130 interrupted;
143 ended by SIGTERM. A screen exits with the code of what ended its session.
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
        notify(f"ccplay: {first}", *more)
        return error.exit_code
    except KeyboardInterrupt:
        print("ccplay: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _give_up_stdout()
        return 1
    except OSError as error:
        if error.filename is not None:
            # An invalid name may fail anywhere: too long, or a file in place of a folder.
            notify(f"ccplay: {os.fsdecode(error.filename)}: {error.strerror}")
            return 1
        if error.errno not in _UNWRITABLE:
            raise
        _give_up_stdout()
        notify(f"ccplay: can't write the output: {error.strerror}")
        return 1
    return code


def _fill_closed_streams() -> None:
    """Open /dev/null for each of stdin, stdout and stderr that is closed.

    Otherwise the next opened file would get its number and receive the output.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _leave_the_current_directory_out() -> None:
    """Keep child processes from finding programs or modules in the current directory.

    Others may write to that directory, and this process may be root.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, places)) or os.defpath


def _give_up_stdout() -> None:
    """Redirect stdout to /dev/null, or Python would report the error again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_command(words: list[str]) -> list[str]:
    """Return the words, with ``play`` in front if they begin with no command.

    Raises ``UsageError`` for a misspelt command.
    """
    if words and (words[0] in COMMANDS or words[0] in ("-h", "--help", "--version")):
        return words
    if words and words[0].isalpha() and not Path(words[0]).exists():
        from ccplay.scenario.library import shipped

        near = get_close_matches(words[0], [*COMMANDS, *shipped()], n=1, cutoff=0.7)
        if near and near[0] in COMMANDS:
            raise UsageError(f"no command {words[0]!r}; did you mean {near[0]!r}?")
    return ["play", *words]


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line, with a suggestion."""

    def error(self, message: str) -> NoReturn:
        """Exit with the reason, without the usage, which would fill a page."""
        reason = message.removeprefix("argument ")
        reason = reason.replace("the following arguments are required:", "needs")
        notify(f"{self.prog}: {reason} (see {self.prog} --help)")
        self.exit(2)

    def refuse(self, rest: Sequence[str]) -> NoReturn:
        """Exit with a message about the first unknown word, and a suggestion."""
        word = next((each for each in rest if each.startswith("-")), rest[0])
        near = get_close_matches(word.partition("=")[0], self._option_string_actions, n=1)
        self.error(f"unknown {word!r}" + (f"; did you mean {near[0]}?" if near else ""))


def _parse(words: list[str]) -> argparse.Namespace:
    every = words[0] in ("-h", "--help") and "--all" in words
    arguments, rest = _parser(words[0], every=every).parse_known_args(words)
    if rest:
        arguments.parser.refuse(rest)
    return arguments


def _parser(chosen: str, *, every: bool) -> argparse.ArgumentParser:
    """Return the parser with the chosen command alone, or with all if ``chosen`` is no command.

    ``every`` lists also the commands of ``MORE`` in the help.
    """
    parser = _Parser(
        prog="ccplay",
        usage="ccplay [COMMAND] [ARGUMENTS]",
        description="See TCP congestion control work: a live playground on real Linux stacks.",
        epilog=_HELP.format(commands="\n".join(_listing(every=every))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ccplay {__version__}")
    commands = parser.add_subparsers(
        prog="ccplay", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name in [chosen] if chosen in COMMANDS else COMMANDS:
        text = COMMANDS[name]
        description = text[0].upper() + text[1:] + "."
        subparser = commands.add_parser(name, description=description)
        subparser.set_defaults(parser=subparser)
        if name == chosen:
            add_arguments(name, subparser)
    return parser


def _listing(*, every: bool) -> list[str]:
    """Return the lines of ``--help`` about the commands, by what they are for."""
    lines = []
    for group, names in {**GROUPS, **({"Set up": MORE} if every else {})}.items():
        lines += [f"{group}:", *(f"  {name:<11} {text}" for name, text in names.items()), ""]
    return lines


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command to its parser."""
    module = next(each for each, names in _MODULES.items() if name in names)
    getattr(importlib.import_module(f"ccplay.cli.{module}"), f"add_{name}")(parser)


GROUPS = {
    "Look": {
        "play": "open a scenario live (the default)",
        "replay": "show a recording on the screen, at any speed",
        "watch": "watch a session that someone shares, or serve it to browsers",
    },
    "Repeat": {
        "run": "run a scenario without a screen and print its result",
        "compare": "compare two recordings or two experiments",
        "report": "write a page with figures and tables about finished runs",
        "export": "write samples as CSV or Parquet, or a recorded session as a scenario",
    },
    "Teach": {"lesson": "take a lesson, or list those that come with ccplay"},
    "Make your own": {
        "new": "write a commented template: scenario, lesson, algorithm or discipline",
        "check": "check a file of your own, and report each mistake with its line",
    },
    "Look after": {
        "list": "list scenarios, lessons, recorded sessions, algorithms or disciplines",
        "doctor": "report what works on this machine, and how to fix the rest",
    },
}
"""Commands that ``--help`` lists, with their summaries, by what they are for."""

MORE = {
    "evaluate": "judge a congestion control or a queue discipline by the criteria of RFCs",
    "trace": "draw, make and import traces, which move links: cellular, satellite, Wi-Fi",
    "config": "print your preferences, or the JSON Schema of scenario files",
    "completion": "print the completion of commands and options for your shell",
    "guest": "install a full kernel for --guest: needs QEMU, fetches some 100 MB",
    "cluster": "make the certificate of a cluster, or run its worker on this machine",
}
"""Commands that are needed once, or by few."""

_OLDER = {
    "sessions": "list the last sessions of the screen, which are recorded automatically",
    "share": "serve a shared session to browsers",
    "script": "turn a recorded session into a scenario",
    "schema": "print the JSON Schema of scenario files, for editors",
    "algorithm": "write, check and list congestion controls as BPF programs",
    "discipline": "write, check and list queue disciplines in Python",
}
"""Commands of 0.1 that are now part of others, and still work."""

COMMANDS = {
    **{name: text for names in GROUPS.values() for name, text in names.items()},
    **MORE,
    **_OLDER,
    "lab": "run a bare lab: commands on stdin, events on stdout, one JSON object a line",
}
"""Summary of each command, by its name."""

_MODULES = {
    "run": ("play", "run"),
    "screen": ("replay",),
    "classroom": ("lesson", "watch", "share"),
    "evaluate": ("evaluate",),
    "results": ("report", "export", "compare", "script"),
    "own": ("new", "check", "algorithm", "discipline"),
    "trace": ("trace",),
    "machine": ("list", "sessions", "schema", "config", "doctor", "guest", "lab"),
    "manual": ("completion",),
    "cluster": ("cluster",),
}
"""Commands of each module of this room; its function ``add_NAME`` adds the arguments of one."""
