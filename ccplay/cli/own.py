"""Commands about the user's own congestion controls and disciplines."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.visible import notify, printable, put

if TYPE_CHECKING:
    from ccplay.bpf.build import Diagnostic
    from ccplay.lab.custom.declaring import SourceError
    from ccplay.model.values import Feature


# --- ``ccplay algorithm``: writes, checks and lists congestion controls as BPF programs -----------


def add_algorithm(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    actions = parser.add_subparsers(required=True)
    new = actions.add_parser(
        "new", help="write a commented template, NAME.bpf.c, into the current folder"
    )
    new.add_argument("name", metavar="NAME", help="up to 15 characters of a-z, 0-9, '_' and '-'")
    new.set_defaults(run=_new_algorithm)
    check = actions.add_parser(
        "check", help="compile FILE, load it into the kernel, and report errors by line"
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=_check_algorithm)
    listing = actions.add_parser(
        "list", help="list those that come with ccplay, and where their sources are"
    )
    listing.set_defaults(run=_list_algorithms)


def _new_algorithm(arguments: argparse.Namespace) -> int:
    from ccplay.assets import ALGORITHMS, SUFFIX
    from ccplay.bpf.support import check_name, named
    from ccplay.errors import UsageError
    from ccplay.files import writing

    name = named(arguments.name)
    check_name(name)
    path = Path(f"{name}{SUFFIX}.c")
    template = (ALGORITHMS / f"template{SUFFIX}.c").read_text(encoding="utf-8")
    with writing.explained(path, UsageError):
        writing.write(path, template.replace("NAME_HERE", name))
    put(path)
    file = shlex.quote(str(path))
    notify(f"next: ccplay algorithm check {file}; ccplay --algorithm {file}")
    return 0


def _check_algorithm(arguments: argparse.Namespace) -> int:
    from ccplay.bpf.build import BuildError, build, diagnostics
    from ccplay.bpf.libbpf import LoadError, try_out
    from ccplay.bpf.support import custom_algorithms, lack, no_file
    from ccplay.errors import CcplayError, UnsupportedError

    path: Path = arguments.file
    if not os.path.lexists(path):
        raise CcplayError(no_file(path))
    (name,) = custom_algorithms([path])
    try:
        image, warnings = build(path)
        for warning in dict.fromkeys(each for each in warnings if each.startswith(path.name)):
            if "warning:" in warning:
                print(printable(warning))
        print(f"{printable(path.name)}: compiled by clang")
        if (missing := lack()) is not None:
            raise UnsupportedError(f"not checked by the kernel: {missing.reason}; {missing.remedy}")
        try_out(image, name)
    except (BuildError, LoadError) as error:
        for diagnostic in diagnostics(path, error):
            print("\n".join(map(printable, _lines(path, diagnostic))))
        return 1
    print(f"{path.name}: accepted by the kernel; choose it as {name!r}")
    return 0


def _lines(path: Path, diagnostic: Diagnostic) -> list[str]:
    """Return the lines of a diagnostic: the message, the source line, and the hint if any."""
    place = path.name if diagnostic.line is None else f"{path.name}:{diagnostic.line}"
    printed = [f"{place}: {diagnostic.words}"]
    # clang counts lines like this: a form feed does not end one.
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if diagnostic.line is not None and diagnostic.line <= len(lines):
        printed.append(f"    {lines[diagnostic.line - 1].strip()}")
    if diagnostic.hint:
        printed.append(f"  {diagnostic.hint}")
    return printed


def _list_algorithms(_: argparse.Namespace) -> int:
    from ccplay.assets import ALGORITHMS, algorithms
    from ccplay.bpf.loaded import summary
    from ccplay.bpf.support import lack

    for name, path in algorithms().items():
        print(f"{name:18} {summary(path)}")
    notify(f"sources: {ALGORITHMS}")
    if (missing := lack()) is not None:
        notify(f"not available here: {missing.reason} ({missing.remedy})")
    return 0


# --- ``ccplay discipline``: writes, checks and lists queue disciplines in Python ------------------


def add_discipline(parser: argparse.ArgumentParser) -> None:
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
    new.set_defaults(run=_new_discipline)
    check = actions.add_parser(
        "check", help="run FILE on generated traffic, and report mistakes by line"
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=_check_discipline)
    listing = actions.add_parser(
        "list", help="list the kernel's and ccplay's, and which of them run here"
    )
    listing.set_defaults(run=_list_disciplines)


def _new_discipline(arguments: argparse.Namespace) -> int:
    from ccplay.errors import UsageError
    from ccplay.files import writing
    from ccplay.lab.custom.declaring import check_name
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


def _check_discipline(arguments: argparse.Namespace) -> int:
    from ccplay.errors import CcplayError
    from ccplay.lab.custom import trial
    from ccplay.lab.custom.declaring import custom_disciplines, no_file, text
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
        print("\n".join(map(printable, _discipline_lines(mistake, source))))
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


def _discipline_lines(mistake: SourceError, source: str) -> list[str]:
    """Return the lines of a mistake: the message, and the source line if known."""
    lines = source.split("\n")
    if mistake.line is None or not 0 < mistake.line <= len(lines):
        return [str(mistake)]
    return [str(mistake), f"    {lines[mistake.line - 1].strip()}"]


def _list_disciplines(_: argparse.Namespace) -> int:
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
