"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.commands import custom, networks

if TYPE_CHECKING:
    from collections.abc import Callable

    from ccplay.model.commands import Build
    from ccplay.scenario.values import Scenario
    from ccplay.stream.sources import Source

DEFAULT_SCENARIO = "playground"


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """Add the scenario and the options that modify it."""
    parser.add_argument(
        "scenario",
        nargs="?",
        metavar="SCENARIO",
        help="a file, or the name of one that comes with ccplay (default "
        f"{DEFAULT_SCENARIO}; with a network of your own, some flows over it)",
    )
    networks.add(parser)
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="NAME",
        help="run only the cases whose names contain this, such as '50 ms'; may be repeated",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="PATH=VALUE",
        help='override a value of the file, such as links.bottleneck.rate="5 Mbit/s"; '
        "may be repeated",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="record every event")
    parser.add_argument(
        "--capture",
        action="append",
        default=[],
        metavar="LINK",
        help="capture the packets of this link, such as bottleneck, from the start, as pcapng of "
        "up to 50 MB; may be repeated",
    )
    parser.add_argument(
        "--captures",
        type=Path,
        metavar="DIR",
        help="directory for captures, on the lab's machine (default: the current one there; with "
        "--out DIR, DIR/runs/)",
    )


def load_scenario(arguments: argparse.Namespace) -> Scenario:
    """Return the scenario of a command line with its options applied. Raises ``CcplayError``."""
    from ccplay.scenario.file.library import find
    from ccplay.scenario.file.reading import load
    from ccplay.scenario.rules.captures import captured
    from ccplay.scenario.rules.custom_algorithms import admit, driven

    own, disciplines = custom.algorithms(arguments), custom.disciplines(arguments)
    admit(own)
    own_network = networks.chosen(arguments)
    if own_network is not None:
        settings = [f"topology={own_network}", *arguments.settings]
    else:
        settings = arguments.settings
    if own_network is not None and arguments.scenario is None:
        from ccplay.scenario.trial import trial

        loaded = trial(own_network, arguments.settings)
    else:
        loaded = load(find(arguments.scenario or DEFAULT_SCENARIO), settings)
    loaded = driven(loaded, own, disciplines)
    return captured(loaded, arguments.capture) if arguments.capture else loaded


def add_lab(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide how a lab is started."""
    add_place(parser).add_argument(
        "--kernel",
        choices=("host", "guest", "auto"),
        default="host",
        help="this machine's kernel, a full one in a virtual machine, or the latter only if the "
        "scenario needs it (default host)",
    )
    parser.add_argument(
        "--algorithm",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="offer your own congestion control NAME.bpf.c as NAME; a file on the lab's machine; "
        "may be repeated",
    )
    parser.add_argument(
        "--discipline",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="offer your own queue discipline NAME.py as NAME; a file on the lab's machine; "
        "may be repeated",
    )
    parser.add_argument(
        "--hz", type=hertz, help="samples per second, 10 to 200 (default: the scenario's, or 50)"
    )


def add_place(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the options for a lab that does not run on this machine's kernel."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--host", help="run the lab on another machine, over ssh")
    place.add_argument(
        "--guest",
        action="store_true",
        help="run the lab under a full kernel in a virtual machine (see ccplay guest)",
    )
    return place


def choose_kernel(arguments: argparse.Namespace, scenario: Scenario) -> None:
    """Set ``--guest`` according to ``--kernel``; print the reason if the scenario needs it.

    Raises ``LabError`` if no lab can start here, ``UsageError`` for ``--kernel`` with ``--host``.
    """
    wanted: str = getattr(arguments, "kernel", "host")
    if wanted != "host" and arguments.host is not None:
        from ccplay.errors import UsageError

        raise UsageError(f"--kernel {wanted} is for this machine, not for --host")
    if wanted == "guest":
        arguments.guest = True
    if wanted != "auto":
        return
    import asyncio

    from ccplay import doctor
    from ccplay.guest import boot
    from ccplay.scenario.rules.support import only_in_guest
    from ccplay.visible import notify

    capabilities = asyncio.run(doctor.examine(lab_opener(arguments)(doctor.SMALLEST)))
    if (lack := only_in_guest(scenario, capabilities)) is not None:
        notify(f"{lack}: the lab runs in a guest, which {boot.cost()}")
        arguments.guest = True


def add_screen(parser: argparse.ArgumentParser) -> None:
    """Add the options for the look of the screen."""
    parser.add_argument("--theme", help="dark, light, … (the key t changes it)")
    parser.add_argument("--ascii", action="store_true", help="draw with plain ASCII only")


def add_share(parser: argparse.ArgumentParser) -> None:
    """Add the options for those who may watch the session."""
    parser.add_argument(
        "--share",
        action="store_true",
        help="let others on this machine watch, as the same user (see ccplay watch)",
    )
    parser.add_argument(
        "--share-group",
        metavar="NAME",
        help="share, and let the members of this group watch",
    )
    add_web(parser)


def add_web(parser: argparse.ArgumentParser) -> None:
    """Add the option for browsers that may watch."""
    parser.add_argument(
        "--web",
        nargs="?",
        const="",
        metavar="ADDRESS:PORT",
        help="let browsers watch too, by a link with a secret in it: on this machine alone, or "
        "wherever this address can be reached, such as 0.0.0.0:8000",
    )


def wants_share(arguments: argparse.Namespace) -> bool:
    """Whether others may watch. Raises ``UsageError`` for an invalid address."""
    from ccplay.share.browsers import read_place

    if arguments.web:
        read_place(arguments.web)
    return bool(arguments.share or arguments.share_group or arguments.web is not None)


def add_ghost(parser: argparse.ArgumentParser) -> None:
    """Add the option for a recording that is drawn under the plots."""
    parser.add_argument(
        "--ghost",
        type=recording,
        metavar="FILE",
        help="draw this recording under the plots; last: the last session",
    )


def recording(text: str) -> Path:
    """Return the path of a recording: a path, or ``last``, ``@1``, ``@2`` for a session.

    Raises ``UsageError`` if there is no such session.
    """
    from ccplay.session.archive import named

    return named(text)


def lab_opener(
    arguments: argparse.Namespace, *, grace_s: float = 10.0
) -> Callable[[Build], Source]:
    """Return a function that starts the requested lab; ``grace_s``, see ``LabSource``."""
    import msgspec

    from ccplay.session import launch
    from ccplay.session.warm import WarmLabs
    from ccplay.stream.sources import LabSource

    captures, files = _captures(arguments), custom.files(arguments)
    if arguments.guest:
        argv = launch.guest_argv(captures, files)
    else:
        argv = launch.lab_argv(arguments.host, captures, files)
    launch.ask_for_privilege(argv)
    hz = getattr(arguments, "hz", None)
    labs = WarmLabs()

    def start(build: Build) -> Source:
        build = msgspec.structs.replace(build, sample_hz=hz) if hz else build
        return LabSource(argv, build, boots=arguments.guest, grace_s=grace_s, start=labs.start)

    return start


def lab_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options of this command line that select the lab, to repeat them elsewhere."""
    from ccplay.session.launch import options_of

    host = getattr(arguments, "host", None)
    words = ["--host", host] if host else []
    words += ["--guest"] if getattr(arguments, "guest", False) else []
    return [*words, *options_of(custom.files(arguments))]


def _captures(arguments: argparse.Namespace) -> Path | None:
    """Return the directory for captures, None for the default. Raises ``UsageError``."""
    from ccplay.errors import UsageError

    folder: Path | None = getattr(arguments, "captures", None)
    out: Path | None = getattr(arguments, "out", None)
    if folder is None and out is not None and arguments.host is None:
        return out / "runs"
    if folder is not None and arguments.host is None and not folder.is_dir():
        raise UsageError(f"--captures {folder}: no such directory")
    return folder


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def hertz(text: str) -> float:
    """Return a number of sweeps per second. Raises ``ArgumentTypeError``."""
    from ccplay.model.commands import Build
    from ccplay.model.fields import fields_of

    value = _number(text)
    try:
        fields_of(Build)["sample_hz"].check(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


def count(text: str) -> int:
    """Return a whole number from 1 to 1000. Raises ``ArgumentTypeError``."""
    if not (text.isdecimal() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to 1000")
    return int(text)


def share(text: str) -> float:
    """Return a share such as ``5%`` as a fraction of 1. Raises ``ArgumentTypeError``."""
    from ccplay.units import parse_ratio

    try:
        value = parse_ratio(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 % and below 100 %")
    return value


def positive(text: str) -> float:
    """Return a number above 0. Raises ``ArgumentTypeError``."""
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def seconds(text: str) -> float:
    """Return the seconds of a moment such as ``90`` or ``1:30``. Raises ``ArgumentTypeError``."""
    minutes, _, rest = text.rpartition(":")
    value = (60 * _number(minutes) if minutes else 0.0) + _number(rest)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a moment of the recording")
    return value
