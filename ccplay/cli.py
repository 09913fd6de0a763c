"""The command ``ccplay``: what its words mean, and nothing heavier until one is said."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay import __version__
from ccplay.errors import CcplayError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ccplay.model import Build
    from ccplay.session import Session
    from ccplay.source import Source

DEFAULT_SCENARIO = "playground"

_EPILOG = """\
without a command, ccplay opens the playground; `ccplay FILE.toml` opens a scenario live.

stdout is data, stderr is talk. Exit codes: 0 done, 1 error, 2 usage, 3 scenario refused,
4 recording unreadable, 5 lab can't start or died, 6 not possible on this kernel,
130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors become one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = _parser().parse_args(_with_command(words))
        code: int = arguments.run(arguments)
    except CcplayError as error:
        print(f"ccplay: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of stdout has gone; Python would complain again while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _with_command(words: list[str]) -> list[str]:
    """Put ``play`` in front where a command line names no command."""
    if words and (words[0] in _COMMANDS or words[0] in ("-h", "--help", "--version")):
        return words
    return ["play", *words]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ccplay",
        description="See TCP congestion control work: a live playground on real Linux stacks.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ccplay {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (add, text) in _COMMANDS.items():
        add(commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + "."))
    return parser


# --- play -----------------------------------------------------------------------------------


def _add_play(parser: argparse.ArgumentParser) -> None:
    _add_scenario(parser)
    _add_lab(parser)
    _add_screen(parser)
    parser.set_defaults(run=_play)


def _play(arguments: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        arguments.json = False
        return _run(arguments)
    import msgspec

    from ccplay import scenario
    from ccplay.script import Script
    from ccplay.session import Session
    from ccplay.sinks import Recorder

    case = scenario.load(scenario.find(arguments.scenario)).case(*arguments.case)
    script = Script(case.timeline)
    # What a person starts by hand must not take a name that the scenario will use.
    build = msgspec.structs.replace(case.build, reserved=script.names)
    session = Session(
        _open(arguments)(build),
        title=case.title,
        sinks=[Recorder(arguments.record)] if arguments.record else [],
        script=script,
    )
    return _show(session, arguments)


def _show(session: Session, arguments: argparse.Namespace) -> int:
    from ccplay.ui.app import CcplayApp

    app = CcplayApp(
        session,
        look=arguments.theme,
        ascii=arguments.ascii,
        start_at=getattr(arguments, "at", 0.0),
        speed=getattr(arguments, "speed", 1.0),
    )
    return app.run() or 0


# --- run ------------------------------------------------------------------------------------


def _add_run(parser: argparse.ArgumentParser) -> None:
    _add_scenario(parser)
    _add_lab(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    import asyncio

    from ccplay import headless, scenario

    loaded = scenario.load(scenario.find(arguments.scenario))
    return asyncio.run(
        headless.run(
            loaded.only(arguments.case),
            _open(arguments),
            record=arguments.record,
            as_json=arguments.json,
        )
    )


# --- replay ---------------------------------------------------------------------------------


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", type=Path, metavar="FILE", help="made with --record")
    parser.add_argument("--speed", type=_positive, default=1.0, help="times as fast (default 1)")
    parser.add_argument("--at", type=_seconds, default=0.0, help="start at this second")
    _add_screen(parser)
    parser.set_defaults(run=_replay)


def _replay(arguments: argparse.Namespace) -> int:
    from ccplay import wire
    from ccplay.session import Session
    from ccplay.source import ReplaySource, check_recording

    check_recording(arguments.recording)
    if not sys.stdout.isatty():
        raise UsageError("replay needs a terminal to show the recording on")
    title = wire.printable(arguments.recording.name)
    session = Session(ReplaySource(arguments.recording), title=title)
    return _show(session, arguments)


# --- doctor ---------------------------------------------------------------------------------


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--host", help="look at another machine, over ssh")
    parser.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    import asyncio

    from rich.console import Console

    from ccplay import doctor, wire
    from ccplay.errors import LabError

    capabilities = asyncio.run(doctor.examine(_open(arguments)(doctor.SMALLEST)))
    if arguments.json:
        sys.stdout.write(wire.encode_value(capabilities).decode() + "\n")
    else:
        doctor.show(capabilities, Console())
    return LabError.exit_code if doctor.obstacles(capabilities) else 0


# --- lab ------------------------------------------------------------------------------------


def _add_lab_command(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_lab)


def _lab(_: argparse.Namespace) -> int:
    from ccplay import launch

    argv = launch.inner_argv()
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point
    except OSError as error:
        raise CcplayError(f"{argv[0]}: {error.strerror} (apt install util-linux)") from None


# --- pieces ---------------------------------------------------------------------------------


def _add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario",
        nargs="?",
        default=DEFAULT_SCENARIO,
        metavar="SCENARIO",
        help=f"a file, or the name of one that comes with ccplay (default {DEFAULT_SCENARIO})",
    )
    parser.add_argument(
        "--case", action="append", default=[], metavar="NAME", help="only this case of it"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the whole stream")


def _add_lab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="run the lab on another machine, over ssh")
    parser.add_argument(
        "--hz", type=_hertz, help="sweeps a second, 10 to 200 (default 50, or the scenario's)"
    )


def _add_screen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", help="dark, light, … (t changes it while it runs)")
    parser.add_argument("--ascii", action="store_true", help="draw with plain ASCII only")


def _open(arguments: argparse.Namespace) -> Callable[[Build], Source]:
    """Return how this command line wants labs to be started."""
    import msgspec

    from ccplay import launch
    from ccplay.source import LabSource

    argv = launch.lab_argv(arguments.host)
    launch.ask_for_privilege(argv)
    hz = getattr(arguments, "hz", None)

    def start(build: Build) -> Source:
        return LabSource(argv, msgspec.structs.replace(build, sample_hz=hz) if hz else build)

    return start


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _hertz(text: str) -> float:
    from ccplay.model import SAMPLE_HZ

    low, high = SAMPLE_HZ
    value = _number(text)
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text} is not {low:.0f} to {high:.0f}")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a moment of the recording")
    return value


_COMMANDS = {
    "play": (_add_play, "open a scenario live (the default)"),
    "run": (_add_run, "run a scenario without a screen and print its result"),
    "replay": (_add_replay, "show a recording on the screen, at any speed"),
    "doctor": (_add_doctor, "say whether a lab can run here, and what it can do"),
    "lab": (_add_lab_command, "be a lab: commands on stdin, events on stdout, one JSON a line"),
}
