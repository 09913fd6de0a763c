"""Options that several commands have, and what they name: scenarios, networks, own files."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.errors import CcplayError, CommandError, LabError, ScenarioError, UsageError
from ccplay.visible import notify, printable, printable_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ccplay.model.commands import Build
    from ccplay.scenario.values import Scenario
    from ccplay.stream.sources import Source


# --- the user's own algorithms and disciplines: files named on the command line only --------------


def own_files(arguments: argparse.Namespace) -> list[Path]:
    """Return the files of ``--algorithm`` and ``--discipline``."""
    return [*getattr(arguments, "algorithm", []), *getattr(arguments, "discipline", [])]


def own_algorithms(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the user's algorithms by name, with the SHA-256 of their sources.

    The digest of a file on another machine is empty. Raises ``UsageError`` for an unreadable file.
    """
    files: list[Path] = getattr(arguments, "algorithm", [])
    if not files:
        return {}
    import hashlib

    from ccplay.bpf.support import custom_algorithms, no_file

    found = custom_algorithms(files)
    if arguments.host is not None:
        return dict.fromkeys(found, "")
    try:
        return {n: hashlib.sha256(_content(path)).hexdigest() for n, path in found.items()}
    except FileNotFoundError as error:
        raise UsageError(f"--algorithm {no_file(Path(error.filename))}") from None
    except OSError as error:
        raise UsageError(f"--algorithm {error.filename}: {error.strerror}") from None


def own_disciplines(arguments: argparse.Namespace) -> dict[str, str]:
    """Add the user's disciplines to the model; return them by name, with their SHA-256.

    For a file on another machine the digest is empty and the parameters are unknown. Raises
    ``CcplayError`` with the line of a mistake.
    """
    files: list[Path] = getattr(arguments, "discipline", [])
    if not files:
        return {}
    import hashlib

    from ccplay.lab.custom.loading import custom_disciplines, library, read_bytes
    from ccplay.scenario.rules import admit

    found = custom_disciplines(files)
    if arguments.host is not None:
        admit(queues=found)
        return dict.fromkeys(found, "")
    library.add(files)
    return {name: hashlib.sha256(read_bytes(path)).hexdigest() for name, path in found.items()}


def _content(path: Path) -> bytes:
    from ccplay.files.reading import open_regular

    with open_regular(path) as file:
        return file.read()


# --- networks named on the command line: a topology with its parameters, or one of a Mininet file -

_PATIENCE_S = 30.0
"""Seconds that running a Mininet file may take."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a network."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--topology",
        type=_topology,
        metavar="KIND[,NAME=N]",
        help="use this network instead of the scenario's, such as fat-tree or leaf-spine,spines=4",
    )
    chosen.add_argument(
        "--topo",
        metavar="NAME[,ARGS]",
        help="use this network instead of the scenario's: of topos of --custom, or Mininet's own "
        "minimal, single, linear, tree, torus",
    )
    parser.add_argument(
        "--custom",
        type=Path,
        metavar="FILE",
        help="a Mininet file with topos = {...}, on the lab's machine; it is code, and runs with "
        "the lab's rights",
    )


def chosen(arguments: argparse.Namespace) -> str | None:
    """Return the network that the command line names as TOML, the value of ``topology``.

    Returns None if it names none. Raises ``CcplayError``.
    """
    if arguments.custom is not None and arguments.topo is None:
        raise UsageError("--custom needs --topo NAME[,ARGS], which names one of the file's topos")
    if arguments.topo is None:
        topology: str | None = arguments.topology
        return topology
    from ccplay.scenario.writing import toml

    return toml(_mininet(arguments.host, arguments.custom, arguments.topo))


def _topology(text: str) -> str:
    """Return a topology such as ``leaf-spine,spines=4`` or ``leaf-spine,4,4`` as inline TOML.

    Raises ``ArgumentTypeError``.
    """
    from ccplay.model.quantities import did_you_mean, quote
    from ccplay.model.topologies import generated, plan, topology_of
    from ccplay.scenario.writing import toml

    name, *words = text.split(",")
    kinds = {kind.name: kind for kind in generated()}
    if name not in kinds:
        raise argparse.ArgumentTypeError(f"no topology {quote(name)}{did_you_mean(name, kinds)}")
    known = {each.name: each for each in kinds[name].parameters}
    unnamed = iter(known)
    parameters: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.rpartition("=")
        key = key if equals else next(unnamed, "")
        if key not in known:
            what = f"takes no {quote(key)}" if equals else f"takes no more than {len(known)}"
            names = did_you_mean(key, known)
            raise argparse.ArgumentTypeError(f"{name} {what}{names}")
        try:
            parameters[key] = known[key].parse(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{name}: {key}: {error}") from None
    try:
        plan(topology_of(name, parameters))
    except CommandError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return toml({"kind": name, **parameters})


def _mininet(host: str | None, file: Path | None, topo: str) -> dict[str, Any]:
    """Run a Mininet file in its own namespaces and return its network. Raises ``CcplayError``."""
    from ccplay.scenario.document import LARGEST_FILE
    from ccplay.session import launch

    argv = launch.topology_argv(host, file, topo)
    launch.ask_for_privilege(argv)
    what = str(file) if file else f"topo {topo}"
    try:
        done = subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=_PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{what} did not end within {_PATIENCE_S:g} s") from None
    except OSError as error:
        raise LabError(f"{argv[0]}: {error.strerror}") from None
    try:
        answer = json.loads(printable_json(done.stdout[: LARGEST_FILE + 1]))
    except ValueError:
        raise CcplayError(f"{what} wrote no network (exit code {done.returncode})") from None
    if not isinstance(answer, dict):
        raise CcplayError(f"{what}: what it wrote is not a network")
    if "error" in answer:
        raise ScenarioError(str(answer["error"]))
    return answer


# --- options that several commands share ----------------------------------------------------------

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
    add(parser)
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
    from ccplay.scenario.library import find
    from ccplay.scenario.reading import load
    from ccplay.scenario.rules import admit, driven
    from ccplay.scenario.timeline import captured

    own, disciplines = own_algorithms(arguments), own_disciplines(arguments)
    admit(own)
    own_network = chosen(arguments)
    if own_network is not None and arguments.scenario is None:
        from ccplay.scenario.writing import trial

        loaded = trial(own_network, arguments.settings)
    else:
        network = [] if own_network is None else [f"topology={own_network}"]
        path = find(arguments.scenario or DEFAULT_SCENARIO)
        loaded = load(path, [*network, *arguments.settings])
    loaded = driven(loaded, own, disciplines)
    return captured(loaded, arguments.capture) if arguments.capture else loaded


def add_lab(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide how a lab is started."""
    add_place(parser).add_argument(
        "--kernel",
        choices=("host", "guest", "auto"),
        default="host",
        help="host: this machine's kernel (default); guest: a full kernel in a virtual machine; "
        "auto: the guest if the scenario needs it",
    )
    for name, what in (
        ("algorithm", "congestion control NAME.bpf.c"),
        ("discipline", "queue discipline NAME.py"),
    ):
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            type=Path,
            metavar="FILE",
            help=f"offer your own {what} as NAME; a file on the lab's machine; may be repeated",
        )
    parser.add_argument(
        "--hz", type=hertz, help="samples per second, 10 to 200 (default: the scenario's, or 50)"
    )


def add_repeats(parser: argparse.ArgumentParser, until_ci: str) -> None:
    """Add ``--repeats`` and ``--until-ci``, of which ``until_ci`` is the help."""
    often = parser.add_mutually_exclusive_group()
    often.add_argument("--repeats", type=count, metavar="N", help="run every case N times")
    often.add_argument("--until-ci", type=share, metavar="SHARE", help=until_ci)


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
        raise UsageError(f"--kernel {wanted} can't be combined with --host")
    if wanted == "guest":
        arguments.guest = True
    if wanted != "auto":
        return
    import asyncio

    from ccplay import doctor
    from ccplay.guest import boot
    from ccplay.scenario.rules import only_in_guest

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
        "--share-group", metavar="NAME", help="share, and let the members of this group watch"
    )
    add_web(parser)


def add_web(parser: argparse.ArgumentParser) -> None:
    """Add the option for browsers that may watch."""
    parser.add_argument(
        "--web",
        nargs="?",
        const="",
        metavar="ADDRESS:PORT",
        help="let browsers watch too, by a secret link: only on this machine, or from wherever "
        "ADDRESS can be reached, such as 0.0.0.0:8000",
    )


def wants_share(arguments: argparse.Namespace) -> bool:
    """Whether others may watch. Raises ``UsageError`` for an invalid address."""
    from ccplay.share.presenter import read_place

    if arguments.web:
        read_place(arguments.web)
    return bool(arguments.share or arguments.share_group or arguments.web is not None)


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a recording."""
    parser.add_argument(
        "recording",
        type=recording,
        metavar="FILE",
        help="a recording, made with --record; last: the last session (see ccplay list sessions)",
    )


def add_speed(parser: argparse.ArgumentParser) -> None:
    """Add the option for the speed of a replay."""
    parser.add_argument(
        "--speed", type=positive, default=1.0, metavar="N", help="play N times as fast (default 1)"
    )


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
    from msgspec.structs import replace

    from ccplay.session import launch
    from ccplay.session.launch import WarmLabs
    from ccplay.stream.sources import LabSource

    captures, files = _captures(arguments), own_files(arguments)
    if arguments.guest:
        argv = launch.guest_argv(captures, files)
    else:
        argv = launch.lab_argv(arguments.host, captures, files)
    launch.ask_for_privilege(argv)
    hz = getattr(arguments, "hz", None)
    labs = WarmLabs()

    def start(build: Build) -> Source:
        build = replace(build, sample_hz=hz) if hz else build
        return LabSource(argv, build, boots=arguments.guest, grace_s=grace_s, start=labs.start)

    return start


def lab_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options of this command line that select the lab, to repeat them elsewhere."""
    from ccplay.session.launch import options_of

    host = getattr(arguments, "host", None)
    words = ["--host", host] if host else []
    words += ["--guest"] if getattr(arguments, "guest", False) else []
    return [*words, *options_of(own_files(arguments))]


def _captures(arguments: argparse.Namespace) -> Path | None:
    """Return the directory for captures, None for the default. Raises ``UsageError``."""
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
    from ccplay.model.quantities import fields_of

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


def put_json(value: object) -> None:
    """Print a value as JSON on one line."""
    import msgspec

    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Return rows as lines; ``sides`` has ``<`` or ``>`` for each column: left or right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        line = "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells)
        lines.append(printable(line.rstrip()))
    return lines
