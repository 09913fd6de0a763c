"""``ccplay discipline``: writes, checks and lists queue disciplines in Python."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.visible import notify, printable, put

if TYPE_CHECKING:
    from ccplay.lab.custom.faults import SourceError
    from ccplay.model.values import Feature


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    actions = parser.add_subparsers(required=True)
    new = actions.add_parser(
        "new", help="write a commented template, NAME.py, into the current folder"
    )
    new.add_argument("name", metavar="NAME", help="up to 15 characters of a-z, 0-9 and '_'")
    new.add_argument(
        "--from",
        dest="kind",
        metavar="KIND",
        help="begin with one of ccplay's own, such as codel, in place of the template",
    )
    new.set_defaults(run=_new)
    check = actions.add_parser(
        "check", help="run FILE on generated traffic, and report mistakes by line"
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=_check)
    listing = actions.add_parser(
        "list", help="list the kernel's and ccplay's, and which of them run here"
    )
    listing.set_defaults(run=_list)


def _new(arguments: argparse.Namespace) -> int:
    from ccplay.errors import UsageError
    from ccplay.files import writing
    from ccplay.lab.custom.files import check_name
    from ccplay.lab.custom.writing import begun_from, fresh

    name = arguments.name.removesuffix(".py")
    check_name(name)
    text = fresh(name) if arguments.kind is None else begun_from(name, arguments.kind)
    path = Path(f"{name}.py")
    with writing.explained(path, UsageError):
        writing.write(path, text)
    put(path)
    file = shlex.quote(str(path))
    notify(f"next: ccplay discipline check {file}; ccplay --discipline {file}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from ccplay.errors import CcplayError
    from ccplay.lab.custom import trial
    from ccplay.lab.custom.files import custom_disciplines, no_file, text
    from ccplay.units import format_rate

    path: Path = arguments.file
    if not os.path.lexists(path):
        raise CcplayError(no_file(path))
    (name,) = custom_disciplines([path])
    source = text(path)
    found = trial.tried_alone(name, source)
    for line in found.printed:
        notify(f"{path.name} printed: {printable(line)}")
    for mistake in found.mistakes:
        print("\n".join(map(printable, _lines(mistake, source))))
    if found.mistakes:
        return 1
    print(
        f"{path.name}: {found.packets:,} packets at {format_rate(trial.RATE)}: "
        f"{found.sent:,} sent, {found.dropped:,} dropped, {found.marked:,} marked"
    )
    if found.slow:
        print(
            f"{path.name}: {found.cost_us:.0f} us of computing for a packet is too much for "
            "100 Mbit/s"
        )
    print(f"{path.name}: works; choose it as {name!r}")
    return 0


def _lines(mistake: SourceError, source: str) -> list[str]:
    """Return the lines of a mistake: the message, and the source line if known."""
    lines = source.split("\n")
    if mistake.line is None or not 0 < mistake.line <= len(lines):
        return [str(mistake)]
    return [str(mistake), f"    {lines[mistake.line - 1].strip()}"]


def _list(_: argparse.Namespace) -> int:
    from ccplay.lab import disciplines
    from ccplay.model.disciplines import DISCIPLINES, SUFFIX

    found, reason = _found()
    for name, known in DISCIPLINES.items():
        own = found.get(name + SUFFIX)
        in_software = own is not None and own.available
        plain = found.get(name)
        in_kernel = plain is not None and plain.available and plain.summary != _summary(own)
        places = [
            place for place, has in (("kernel", in_kernel), (f"{name}{SUFFIX}", in_software)) if has
        ]
        print(f"{name:10} {' '.join(places) or '-':18} {known.summary}")
    notify("second column: where it runs here", f"sources: {next(iter(disciplines.__path__))}")
    if reason:
        notify(f"not available here: {reason}")
    return 0


def _summary(feature: Feature | None) -> str:
    return "" if feature is None else feature.summary


def _found() -> tuple[dict[str, Feature], str]:
    """Return the disciplines that a lab finds on this machine, and why some can't run here."""
    import asyncio

    from ccplay import doctor
    from ccplay.errors import CcplayError
    from ccplay.model.disciplines import is_software
    from ccplay.session import launch
    from ccplay.stream.sources import LabSource

    try:
        source = LabSource(launch.lab_argv(), doctor.SMALLEST)
        found = asyncio.run(doctor.examine(source)).qdiscs
    except CcplayError as error:
        return {}, str(error)
    missing = next((each for each in found if is_software(each.name) and not each.available), None)
    reason = "" if missing is None else f"those in software: {missing.reason} ({missing.remedy})"
    return {each.name: each for each in found}, reason
