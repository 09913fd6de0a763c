"""Finds out whether a lab can run here and what this kernel supports."""

from __future__ import annotations

import os
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from ccplay.errors import CcplayError
from ccplay.guest import boot
from ccplay.model.commands import Build
from ccplay.model.events import Hello
from ccplay.model.network import Topology
from ccplay.model.values import Capabilities, Feature
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


def show(capabilities: Capabilities, console: Console) -> None:
    """Print every feature of this machine, and the reason and the remedy for each missing one."""
    console.print(f"kernel {capabilities.kernel}, {capabilities.privilege}\n")
    for name, heading in SECTIONS:
        table = Table(title=heading, title_justify="left", box=None, pad_edge=False)
        table.add_column("", width=3)
        table.add_column("", no_wrap=True)
        table.add_column("", overflow="fold")
        for feature in getattr(capabilities, name):
            table.add_row(*_row(feature))
        table.show_header = False
        console.print(table)
        console.print()
    missing = obstacles(capabilities)
    if missing:
        names = ", ".join(each.name for each in missing)
        console.print(f"[bold]A lab can't run here:[/] {names} missing.")
    else:
        console.print("[bold]A lab can run here.[/]")


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


def further(chain: list[Way]) -> str:
    """Return the command that makes a better way possible; empty if there is none."""
    lacks = {each.name: each.lack for each in chain}
    if lacks["root"] and lacks["rootless"]:
        return "sudo ccplay doctor" if os.geteuid() != 0 else ""
    if lacks["guest"] and boot.is_possible():
        return "ccplay guest"
    return "sudo ccplay" if lacks["root"] and os.geteuid() != 0 else ""


def show_ways(chain: list[Way], console: Console) -> None:
    """Print the ways to run a lab, and the command that makes a better one possible."""
    table = Table(title="Ways to run a lab here", title_justify="left", box=None, pad_edge=False)
    for options in ({"width": 3}, {"no_wrap": True}, {"overflow": "fold"}):
        table.add_column("", **options)
    table.show_header = False
    for each in chain:
        feature = Feature(
            name=each.name, available=not each.lack, summary=each.gives, reason=each.lack
        )
        table.add_row(*_row(feature))
    console.print()
    console.print(table)
    if command := further(chain):
        console.print(f"\nNext step: [bold]{command}[/]")


def _row(feature: Feature) -> tuple[str, str, str]:
    if feature.available:
        return "yes", f"[bold]{feature.name}[/]", feature.summary
    why = "; ".join(each for each in (feature.reason, feature.remedy) if each)
    return "no", f"[dim]{feature.name}[/]", f"[dim]{feature.summary}:[/] [italic]{why}[/]"
