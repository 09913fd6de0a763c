"""Commands about the user's own files: scenarios, lessons, congestion controls, disciplines."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.cli.options import put_json
from ccplay.errors import CcplayError, UnsupportedError, UsageError
from ccplay.visible import notify, printable, put

if TYPE_CHECKING:
    from ccplay.bpf.build import Diagnostic
    from ccplay.model.values import Feature


# --- ``ccplay new`` ------------------------------------------------------------------------------

_KINDS = ("scenario", "lesson", "algorithm", "discipline")
_NEW = """\
Writes NAME.toml (scenario, lesson), NAME.bpf.c (algorithm) or NAME.py (discipline) into the current
folder, and prints what to do next. The template works as it is; its comments say what to change.
An existing file is never overwritten.

  ccplay new scenario race
  ccplay new discipline mine --from codel
"""


def add_new(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _NEW
    parser.add_argument(
        "kind",
        choices=_KINDS,
        metavar="KIND",
        help="scenario, lesson, algorithm (a congestion control as a BPF program in C) or "
        "discipline (a queue discipline in Python)",
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="name of the file (default: my-KIND)"
    )
    _add_origin(parser)
    parser.set_defaults(run=run_new)


def _add_origin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="origin",
        metavar="KIND",
        help="discipline: begin with one of ccplay's own, such as codel, in place of the template",
    )


def run_new(arguments: argparse.Namespace) -> int:
    """Write a template, and return the exit code. Raises ``UsageError`` if it can't be written."""
    from ccplay.files import writing

    kind, origin = arguments.kind, None
    # The name of a discipline is that of a Python module.
    name = arguments.name or ("my_discipline" if kind == "discipline" else f"my-{kind}")
    if kind == "discipline":
        origin = arguments.origin
    elif getattr(arguments, "origin", None) is not None:
        raise UsageError("--from needs a discipline: ccplay new discipline NAME --from KIND")
    if kind == "algorithm":
        path, text = _algorithm(name)
    elif kind == "discipline":
        path, text = _discipline(name, origin)
    else:
        path, text = _scenario(name, kind)
    with writing.explained(path, UsageError):
        writing.write(path, text)
    put(path)
    file = shlex.quote(str(path))
    opens = {"scenario": "ccplay", "lesson": "ccplay lesson"}.get(kind, f"ccplay --{kind}")
    notify(f"next: ccplay check {file}; {opens} {file}")
    return 0


def _scenario(name: str, kind: str) -> tuple[Path, str]:
    from ccplay.assets import assets

    template = assets("scenarios") / "templates" / f"{kind}.toml"
    return Path(name.removesuffix(".toml") + ".toml"), template.read_text(encoding="utf-8")


def _algorithm(name: str) -> tuple[Path, str]:
    from ccplay.assets import ALGORITHMS, SUFFIX
    from ccplay.bpf.support import check_name, named

    name = named(name)
    check_name(name)
    template = (ALGORITHMS / f"template{SUFFIX}.c").read_text(encoding="utf-8")
    return Path(f"{name}{SUFFIX}.c"), template.replace("NAME_HERE", name)


def _discipline(name: str, origin: str | None) -> tuple[Path, str]:
    from ccplay.lab.custom.loading import check_name, copy_source, fill_template

    name = name.removesuffix(".py")
    check_name(name)
    return Path(f"{name}.py"), fill_template(name) if origin is None else copy_source(name, origin)


# --- ``ccplay check`` ----------------------------------------------------------------------------

_CHECK = """\
The name of a file tells what it is:

  NAME.toml    a scenario, or a lesson: every mistake, with its line
  NAME.bpf.c   a congestion control: compiled by clang and loaded into the kernel, as root
  NAME.py      a queue discipline: run on generated traffic
"""


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _CHECK
    parser.add_argument("file", type=Path, metavar="FILE", help="the file to check")
    parser.set_defaults(run=run_check)


def run_check(arguments: argparse.Namespace) -> int:
    """Check a file of the user's own, and return the exit code. Raises ``CcplayError``."""
    from ccplay.assets import SUFFIX

    name = arguments.file.name
    if name.endswith(".py"):
        return _check_discipline(arguments)
    if name.endswith((SUFFIX, f"{SUFFIX}.c", ".c")):
        return _check_algorithm(arguments)
    from ccplay.analysis.metrics import check_metrics
    from ccplay.scenario.library import find
    from ccplay.scenario.reading import load

    scenario = load(find(arguments.file))
    if scenario.lesson is not None:
        from ccplay.cli.classroom import summary
        from ccplay.lesson.library import open_lesson

        print(summary(open_lesson(str(arguments.file))))
        return 0
    check_metrics(scenario)
    cases = scenario.cases
    shown = f"{len(cases)} cases" if len(cases) > 1 else f"runs {cases[0].duration_s:g} s"
    print(printable(f"{scenario.title}: no mistake; {shown}"))
    return 0


# --- ``ccplay algorithm``, ``ccplay discipline``: the same for one kind ---------------------------


def add_algorithm(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    _add_actions(parser, "algorithm")


def add_discipline(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    _add_origin(_add_actions(parser, "discipline"))


def _add_actions(parser: argparse.ArgumentParser, kind: str) -> argparse.ArgumentParser:
    """Add the actions for one kind of file; return the parser of ``new``."""
    actions = parser.add_subparsers(required=True)
    new = actions.add_parser("new", help="write a commented template into the current folder")
    new.add_argument("name", metavar="NAME", help="up to 15 characters of a-z, 0-9 and '_'")
    new.set_defaults(run=run_new, kind=kind)
    check = actions.add_parser("check", help="check FILE, and report mistakes by line")
    check.add_argument("file", type=Path, metavar="FILE", help="the file to check")
    check.set_defaults(run=_check_algorithm if kind == "algorithm" else _check_discipline)
    listing = actions.add_parser("list", help="list those that ccplay knows, and their sources")
    run = list_algorithms if kind == "algorithm" else list_disciplines
    listing.set_defaults(run=run, json=False)
    return new


# --- what an algorithm is checked for, and which there are ---------------------------------------


def _check_algorithm(arguments: argparse.Namespace) -> int:
    from ccplay.bpf.build import BuildError, build, diagnostics
    from ccplay.bpf.libbpf import LoadError, try_out
    from ccplay.bpf.support import custom_algorithms, lack, no_file

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
    source = path.read_text(encoding="utf-8", errors="replace")
    printed = _with_source(f"{place}: {diagnostic.words}", diagnostic.line, source)
    return [*printed, f"  {diagnostic.hint}"] if diagnostic.hint else printed


def _with_source(message: str, line: int | None, source: str) -> list[str]:
    """Return a message, and the line of the source that it is about, if known."""
    # clang counts lines like this: a form feed does not end one.
    lines = source.split("\n")
    if line is None or not 0 < line <= len(lines):
        return [message]
    return [message, f"    {lines[line - 1].strip()}"]


def list_algorithms(arguments: argparse.Namespace) -> int:
    """List the congestion controls that come with ccplay, and return the exit code."""
    from ccplay.assets import ALGORITHMS, algorithms
    from ccplay.bpf.loaded import summary
    from ccplay.bpf.support import lack

    found = {name: summary(path) for name, path in algorithms().items()}
    if arguments.json:
        put_json([{"name": name, "summary": text} for name, text in found.items()])
        return 0
    for name, text in found.items():
        print(f"{name:18} {text}")
    notify(f"sources: {ALGORITHMS}")
    if (missing := lack()) is not None:
        notify(f"not available here: {missing.reason} ({missing.remedy})")
    return 0


# --- what a discipline is checked for, and which there are ---------------------------------------


def _check_discipline(arguments: argparse.Namespace) -> int:
    from ccplay.lab.custom import trial
    from ccplay.lab.custom.loading import custom_disciplines, no_file, read_source
    from ccplay.units import format_rate

    path: Path = arguments.file
    if not os.path.lexists(path):
        raise CcplayError(no_file(path))
    (name,) = custom_disciplines([path])
    source = read_source(path)
    found = trial.try_in_process(name, source)
    for line in found.printed:
        notify(f"{path.name} printed: {printable(line)}")
    for mistake in found.mistakes:
        print("\n".join(map(printable, _with_source(str(mistake), mistake.line, source))))
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


def list_disciplines(arguments: argparse.Namespace) -> int:
    """List the kernel's and ccplay's disciplines, and return the exit code."""
    from ccplay.lab import disciplines
    from ccplay.model.disciplines import DISCIPLINES, SUFFIX

    found, reason = _found()
    rows = []
    for name, known in DISCIPLINES.items():
        own = found.get(name + SUFFIX)
        in_software = own is not None and own.available
        plain = found.get(name)
        # A lab without the kernel's offers ccplay's own under the plain name.
        stands_in = plain is not None and own is not None and plain.summary == own.summary
        in_kernel = plain is not None and plain.available and not stands_in
        places = [
            place for place, has in (("kernel", in_kernel), (f"{name}{SUFFIX}", in_software)) if has
        ]
        rows.append({"name": name, "runs": places, "summary": known.summary})
    if arguments.json:
        put_json(rows)
        return 0
    for row in rows:
        print(f"{row['name']:10} {' '.join(row['runs']) or '-':18} {row['summary']}")
    notify("second column: where it runs here", f"sources: {next(iter(disciplines.__path__))}")
    if reason:
        notify(f"not available here: {reason}")
    return 0


def _found() -> tuple[dict[str, Feature], str]:
    """Return the disciplines that a lab finds on this machine, and why some can't run here."""
    import asyncio

    from ccplay import doctor
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
