"""Commands about this machine and its files: what can run here, what there is."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.cli import options
from ccplay.errors import CcplayError, LabError, UsageError
from ccplay.visible import notify, printable

if TYPE_CHECKING:
    from ccplay.scenario.library import ScenarioEntry
    from ccplay.session.archive import Found


# --- ``ccplay doctor``: reports whether a lab can run here and what this kernel supports ----------


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--all", action="store_true", help="describe each feature, and why missing ones do not work"
    )
    form.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_place(parser)
    parser.set_defaults(run=run_doctor)


def run_doctor(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    import asyncio

    from rich.console import Console

    from ccplay import doctor

    capabilities = asyncio.run(doctor.examine(options.lab_opener(arguments)(doctor.SMALLEST)))
    if arguments.json:
        options.put_json(capabilities)
    else:
        show = doctor.show_all if arguments.all else doctor.show
        elsewhere = arguments.host is not None or arguments.guest
        show(capabilities, [] if elsewhere else doctor.ways(), Console())
    return LabError.exit_code if doctor.obstacles(capabilities) else 0


# --- ``ccplay guest``: installs a full kernel for labs in a virtual machine -----------------------


def add_guest(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "packages",
        nargs="*",
        metavar="PACKAGE",
        help="kernel to install instead of the newest one of the package sources: its .deb files, "
        "image and modules",
    )
    parser.set_defaults(run=run_guest)


def run_guest(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.guest.fetch import fetch

    fetch(notify, arguments.packages)
    return 0


# --- ``ccplay lab``: runs a lab, the privileged side of the pipe ----------------------------------


def add_lab(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--captures", type=Path, metavar="DIR", help="directory for packet captures"
    )
    parser.add_argument(
        "--machine", default="", metavar="NAME", help="prefix for the paths that it reports"
    )
    parser.add_argument(
        "--algorithm", action="append", default=[], type=Path, metavar="FILE", help="see play"
    )
    parser.add_argument(
        "--discipline", action="append", default=[], type=Path, metavar="FILE", help="see play"
    )
    parser.add_argument("--custom", type=Path, metavar="FILE", help="see play; needs --topo")
    parser.add_argument(
        "--topo",
        metavar="NAME[,ARGS]",
        help="print the network of a Mininet file as JSON, and build none",
    )
    parser.set_defaults(run=run_lab)


def run_lab(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.session import launch

    if (refusal := launch.refusal()) is not None:
        raise LabError(f"a lab can't start here, because it needs its own namespaces: {refusal}")
    if arguments.topo is None and arguments.custom is not None:
        raise UsageError("--custom needs --topo NAME[,ARGS], which names one of the file's topos")
    custom = [*arguments.algorithm, *arguments.discipline]
    argv = launch.inner_argv(arguments.captures, arguments.machine, custom)
    if arguments.topo is not None:
        argv = launch.inner_topology_argv(arguments.custom, arguments.topo)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point
    except OSError as error:
        raise CcplayError(f"{argv[0]}: {error.strerror} (apt install util-linux)") from None


# --- ``ccplay config``, ``ccplay schema`` ---------------------------------------------------------


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=("preferences", "schema"),
        default="preferences",
        help="preferences: those in force, and where their file is (default); schema: the JSON "
        "Schema of scenario files, with which editors complete and check them",
    )
    parser.set_defaults(run=run_config)


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run_config, what="schema")


def run_config(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code: 1 if the file of preferences has mistakes."""
    if arguments.what == "schema":
        from ccplay.scenario import schema

        sys.stdout.write(schema.text())
        return 0
    from ccplay.ui import preferences
    from ccplay.ui.themes import load_looks

    mine = preferences.load(load_looks())
    where = preferences.path()
    there = "" if where.exists() else " (no such file yet: these are the defaults)"
    print(f"# {printable(str(where))}{there}")
    print(preferences.written(mine), end="")
    notify(*(f"ccplay: {each}" for each in mine.mistakes))
    return 1 if mine.mistakes else 0


# --- ``ccplay list``, ``ccplay sessions`` ---------------------------------------------------------

_KINDS = ("scenarios", "lessons", "sessions", "algorithms", "disciplines")
_ABOUT = """\
The last 20 sessions are kept, 500 MB in all, up to 200 MB each. `ccplay --no-record` keeps none.
Wherever a command takes a recording, `last` or `@1` is the session that began last, even while it
runs on another screen, `@2` the one before:

  ccplay replay last          play it again
  ccplay --ghost last         draw it under a new session
  ccplay report last          write a page with figures and tables
  ccplay export @2 --to s.toml    turn it into a scenario
"""


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=_KINDS,
        default="scenarios",
        help="scenarios: those that come with ccplay and those in the current folder (default); "
        "sessions: the last sessions of the screen; algorithms, disciplines: also where their "
        "sources are and which run here",
    )
    _add_listing(parser)
    parser.set_defaults(run=run_list)


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    _add_listing(parser)
    parser.set_defaults(run=run_list, what="sessions")


def _add_listing(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON array")
    form.add_argument(
        "--delete", nargs="+", type=_number, metavar="N", help="delete the sessions @N"
    )
    form.add_argument("--clear", action="store_true", help="delete all sessions")


def run_list(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.cli import own

    what: str = arguments.what
    if arguments.delete or arguments.clear or what == "sessions":
        return _list_sessions(arguments)
    if what == "algorithms":
        return own.list_algorithms(arguments)
    if what == "disciplines":
        return own.list_disciplines(arguments)
    if what == "lessons":
        from ccplay.cli.classroom import list_lessons

        return list_lessons(arguments)
    return _list_scenarios(as_json=arguments.json)


def _list_scenarios(*, as_json: bool) -> int:
    from ccplay.scenario.library import in_folder, shipped_entries

    ours, here = shipped_entries(), in_folder(Path())
    if as_json:
        options.put_json([*ours, *here])
        return 0
    width = max(len(printable(each.name)) for each in (*ours, *here))
    for each in ours:
        print(_line(each, width))
    if here:
        print("\nin this folder:")
    for each in here:
        print(_line(each, width))
    return 0


def _line(entry: ScenarioEntry, width: int) -> str:
    cases = f"  ({entry.cases} cases)" if entry.cases > 1 else ""
    text = f"{entry.title}{cases}" if entry.cases else f"refused: ccplay run {entry.name} shows why"
    return printable(f"{printable(entry.name):{width}}  {text}")


def _list_sessions(arguments: argparse.Namespace) -> int:
    """List or delete the last sessions, and return the exit code."""
    from ccplay.session import archive

    if arguments.delete:
        return _delete([archive.named(f"@{number}") for number in arguments.delete])
    there = archive.sessions()
    if arguments.clear:
        return _delete(there)
    found = [archive.scan(path, archive.folder()) for path in there]
    if arguments.json:
        options.put_json([_member(number, each) for number, each in enumerate(found, 1)])
        return 0
    if not found:
        notify(f"no session is recorded in {archive.folder()}")
        return 0
    rows = [_HEADS, *(_row(number, each) for number, each in enumerate(found, 1))]
    print("\n".join(options.aligned(rows, "><<>>><")))
    return 0


def _number(text: str) -> int:
    if not (text.removeprefix("@").isdecimal() and 1 <= int(text.removeprefix("@")) <= 9999):
        raise argparse.ArgumentTypeError(f"{text} is not the number of a session")
    return int(text.removeprefix("@"))


def _delete(paths: list[Path]) -> int:
    from ccplay.errors import RecordingError
    from ccplay.session import archive

    if not paths:
        return 0
    try:
        left = archive.delete(paths)
    except OSError as error:
        raise RecordingError(f"can't delete in {archive.folder()}: {error.strerror}") from None
    for path in paths:
        if path in left:
            notify(f"{path.name} is still being recorded, or belongs to another user: it stays")
        else:
            notify(f"deleted {path.name}")
    return 1 if left else 0


_HEADS = ("", "started", "scenario", "length", "size", "flows", "congestion control")


def _row(number: int, found: Found) -> tuple[str, ...]:
    from ccplay.session.archive import is_running, label_of
    from ccplay.units import format_clock, format_size

    length = "" if found.seconds is None else format_clock(found.seconds)
    about = found.problem or ", ".join(found.algorithms)
    if is_running(found.path):
        about = ", ".join(filter(None, (about, "still running")))
    return (
        f"@{number}",
        f"{found.began:%Y-%m-%d %H:%M}",
        label_of(found.path),
        length,
        format_size(found.size),
        str(found.flows),
        about,
    )


def _member(number: int, found: Found) -> dict[str, object]:
    from ccplay.session.archive import is_running, label_of

    return {
        "number": number,
        "path": str(found.path),
        "started": found.began.isoformat(timespec="seconds"),
        "scenario": label_of(found.path),
        "seconds": found.seconds,
        "bytes": found.size,
        "flows": found.flows,
        "congestion_controls": list(found.algorithms),
        "running": is_running(found.path),
        "problem": found.problem,
    }
