"""``ccplay algorithm``: writes, checks and lists congestion controls as BPF programs."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.visible import notify, printable, put

if TYPE_CHECKING:
    from ccplay.bpf.diagnostics import Diagnostic


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    actions = parser.add_subparsers(required=True)
    new = actions.add_parser(
        "new", help="write a commented template, NAME.bpf.c, into the current folder"
    )
    new.add_argument("name", metavar="NAME", help="up to 15 characters of a-z, 0-9, '_' and '-'")
    new.set_defaults(run=_new)
    check = actions.add_parser(
        "check", help="compile FILE, load it into the kernel, and report errors by line"
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.set_defaults(run=_check)
    listing = actions.add_parser(
        "list", help="list those that come with ccplay, and where their sources are"
    )
    listing.set_defaults(run=_list)


def _new(arguments: argparse.Namespace) -> int:
    from ccplay.assets import ALGORITHMS, SUFFIX
    from ccplay.bpf.custom_files import check_name, named
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


def _check(arguments: argparse.Namespace) -> int:
    from ccplay.bpf.build import BuildError, build
    from ccplay.bpf.custom_files import custom_algorithms, no_file
    from ccplay.bpf.diagnostics import diagnostics
    from ccplay.bpf.libbpf import LoadError
    from ccplay.bpf.registry import try_out
    from ccplay.bpf.support import lack
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


def _list(_: argparse.Namespace) -> int:
    from ccplay.assets import ALGORITHMS, algorithms
    from ccplay.bpf.catalogue import summary
    from ccplay.bpf.support import lack

    for name, path in algorithms().items():
        print(f"{name:18} {summary(path)}")
    notify(f"sources: {ALGORITHMS}")
    if (missing := lack()) is not None:
        notify(f"not available here: {missing.reason} ({missing.remedy})")
    return 0
