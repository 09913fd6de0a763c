"""Finds out whether a lab can run here and what this kernel supports."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from ccplay.assets import SUFFIX
from ccplay.errors import CcplayError
from ccplay.guest import boot
from ccplay.model.commands import Build
from ccplay.model.disciplines import SUFFIX as PY
from ccplay.model.events import Hello
from ccplay.model.network import Topology
from ccplay.model.values import Capabilities, Feature, install_line
from ccplay.session import launch
from ccplay.stream.sources import Source

SECTIONS = (
    ("congestion_controls", "Congestion control"),
    ("qdiscs", "Queue disciplines"),
    ("classifiers", "Classes of a link"),
    ("markers", "ECN marks in front of any queue"),
    ("monitors", "One-way delay and loss of single flows"),
    ("delay_engines", "Delay, jitter and loss"),
    ("tracepoints", "Traces of every ACK"),
    ("mptcp", "Flows over several paths"),
    ("schedulers", "Schedulers of MPTCP"),
    ("tools", "Programs"),
)
"""Fields of ``Capabilities``, each with its heading, in the order of the output."""

_NAMED = ("congestion_controls", "qdiscs", "tools")
"""Fields whose features are known by their names; those of others by their heading."""

_LISTS = {
    "algorithms": _NAMED[:1],
    "disciplines": _NAMED[1:2],
    "features": [name for name, _ in SECTIONS if name not in (*_NAMED, "schedulers")],
    "programs": _NAMED[2:],
}
"""Lists of what works, and the fields that each holds."""

_CAPTURING = ("tcpdump", "dumpcap")
"""Programs of which one is enough."""

_COMMANDS = (
    (re.compile(r"apt install ([^;,()]+)"), "apt install"),
    (re.compile(r"modprobe (?:-a )?([^;,()]+)"), "as root: modprobe -a"),
    (re.compile(r"sysctl ([^;,()]+)"), "as root: sysctl"),
    (re.compile(r"\bas root\b|not root"), "sudo ccplay"),
)
"""Patterns of remedies, the easiest first, and the command of each before the pattern's group."""

SMALLEST = Build(topology=Topology(kind="linear"))
"""Smallest network, for a lab that only reports what a machine supports."""


async def examine(source: Source) -> Capabilities:
    """Start a lab and return the capabilities that it reports.

    Raises ``LabError`` if no lab can start, ``CcplayError`` if the lab reports none.
    """
    events = source.events()
    try:
        async for event in events:
            if isinstance(event, Hello):
                return event.capabilities
    finally:
        await events.aclose()  # type: ignore[attr-defined]
        await source.close()
    raise CcplayError("the lab ended without reporting anything")


def obstacles(capabilities: Capabilities) -> list[Feature]:
    """Return the required features that this machine lacks."""
    every = [feature for name, _ in SECTIONS for feature in getattr(capabilities, name)]
    missing = [each for each in every if each.required and not each.available]
    if not any(each.available for each in capabilities.delay_engines):
        missing += capabilities.delay_engines
    return missing


class Way(NamedTuple):
    """A way to run a lab on this machine, or to do without one."""

    name: str
    lack: str
    """Reason why this way is impossible here; empty if it is possible."""
    gives: str


def ways() -> list[Way]:
    """Try and return every way on this machine, in order of what it needs, most first."""
    root = "" if os.geteuid() == 0 else "you are not root"
    cost = f", which {boot.cost()}" if boot.lack() is None else ""
    return [
        Way(
            "root",
            root or launch.root_refusal() or "",
            "this kernel, with BPF programs and modules",
        ),
        Way("rootless", launch.rootless_refusal() or "", "this kernel, without BPF programs"),
        Way("guest", boot.lack() or "", f"a full kernel in a virtual machine{cost}"),
        Way("replay", "", "recordings, without a lab: ccplay replay FILE"),
    ]


def cures(capabilities: Capabilities, chain: list[Way]) -> dict[str, list[str]]:
    """Return what is missing by what cures it, the easiest cure first: a command, where one does.

    First comes the one command that installs all programs without which no lab runs. ``chain``
    holds the ways to run a lab; it is empty if only the features count.
    """
    kernel = "another kernel"
    missing = [
        (
            each.lack,
            {"root": "labs as root", "rootless": "labs without root"}.get(each.name, "a guest"),
        )
        for each in chain
        if each.lack and (each.name != "guest" or boot.is_possible())
    ]
    for way in chain:
        if way.name == "guest" and (not way.lack or boot.is_possible()):
            kernel = f"{'ccplay guest, then ' if way.lack else ''}ccplay --guest"
    for section, heading in SECTIONS:
        features: list[Feature] = getattr(capabilities, section)
        names = {each.name for each in features if not each.available}
        if section == "tools" and not names.issuperset(_CAPTURING):
            names -= set(_CAPTURING)
        if section == "delay_engines" and len(names) < len(features):
            names = set()
        missing += [
            (each.remedy, _words(each, section, heading))
            for each in features
            # With an algorithm its program is missing, too, or takes its place.
            if each.name in names and _plain(each.name) not in names - {each.name}
        ]
    needed = [each for each in obstacles(capabilities) if each.packages]
    modules: list[str] = []
    groups: dict[tuple[int, str], list[str]] = {}
    if needed:
        groups[-1, install_line(needed)] = [each.name for each in needed]
    for remedy, words in missing:
        if any(words == each.name for each in needed):
            continue
        cure = (len(_COMMANDS), kernel)
        for rank, (pattern, command) in enumerate(_COMMANDS):
            if (match := pattern.search(remedy)) is not None:
                arguments = match[1].split() if pattern.groups else []
                if "modprobe" in command:
                    modules += arguments
                    arguments = []
                cure = rank, " ".join([command, *arguments])
                break
        found = groups.setdefault(cure, [])
        if words not in found:
            found.append(words)
    return {
        " ".join([cure, *dict.fromkeys(modules)] if "modprobe" in cure else [cure]): groups[
            rank, cure
        ]
        for rank, cure in sorted(groups)
    }


def _words(feature: Feature, section: str, heading: str) -> str:
    """Return how a feature is called in a list."""
    if section in _NAMED:
        return feature.name
    # ECN stays as it is.
    return heading[0].lower() + heading[1:] if heading[1].islower() else heading


def _plain(name: str) -> str:
    """Return the kernel's name of what ccplay's own ``name`` does as well."""
    return name.removesuffix(SUFFIX).removesuffix(PY)


def show(capabilities: Capabilities, chain: list[Way], console: Console) -> None:
    """Print on one screen what works, and what is missing, by what cures it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("", no_wrap=True)
    table.add_column("", overflow="fold")
    for title, sections in _LISTS.items():
        works: list[str] = []
        for section, heading in SECTIONS:
            features = getattr(capabilities, section) if section in sections else ()
            names = {each.name for each in features if each.available}
            works += [
                _words(each, section, heading)
                for each in features
                if each.name in names and _plain(each.name) not in names - {each.name}
            ]
        if works:
            between = "; " if title == "features" else ", "
            table.add_row(f"[bold]{title}[/]", escape(between.join(dict.fromkeys(works))))
    if here := [each.name for each in chain if not each.lack]:
        table.add_row("[bold]ways to run[/]", ", ".join(here))
    _show_verdict(capabilities, console)
    console.print()
    console.print(table)
    _show_cures(capabilities, chain, console)
    console.print("\nEach feature, and why a missing one does not work: ccplay doctor --all")


def show_all(capabilities: Capabilities, chain: list[Way], console: Console) -> None:
    """Print every feature of this machine, and the reason and the remedy for each missing one."""
    here = [Feature(each.name, not each.lack, each.gives, each.lack) for each in chain]
    sections = [(heading, getattr(capabilities, section)) for section, heading in SECTIONS]
    for heading, features in (*sections, ("Ways to run a lab here", here)):
        if not features:
            continue
        table = Table(title=heading, title_justify="left", box=None, pad_edge=False)
        for options in ({"width": 3}, {"no_wrap": True}, {"overflow": "fold"}):
            table.add_column("", **options)
        for feature in features:
            table.add_row(*_row(feature))
        table.show_header = False
        console.print(table)
        console.print()
    _show_verdict(capabilities, console)
    _show_cures(capabilities, chain, console)


def _show_verdict(capabilities: Capabilities, console: Console) -> None:
    verdict = "A lab can run here"
    if missing := obstacles(capabilities):
        verdict = f"A lab can't run here without {', '.join(each.name for each in missing)}"
    place = f"Linux {capabilities.kernel}, {capabilities.privilege}"
    console.print(f"[bold]{escape(verdict)}[/] ({escape(place)}).", highlight=False)


def _show_cures(capabilities: Capabilities, chain: list[Way], console: Console) -> None:
    if found := cures(capabilities, chain):
        console.print("\nMissing, and how to fix it:")
    for cure, names in found.items():
        line = f"[bold]{escape(cure)}[/]: {escape(', '.join(names))}"
        console.print(Padding(line, (0, 0, 0, 2)), highlight=False)


def _row(feature: Feature) -> tuple[str, str, str]:
    if feature.available:
        return "yes", f"[bold]{feature.name}[/]", feature.summary
    why = "; ".join(each for each in (feature.reason, feature.remedy) if each)
    return "no", f"[dim]{feature.name}[/]", f"[dim]{feature.summary}:[/] [italic]{why}[/]"
