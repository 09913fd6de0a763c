"""Whether a lab can run here and what this kernel supports."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ccplay.errors import CcplayError
from ccplay.model.commands import Build
from ccplay.model.events import Hello
from ccplay.model.network import Topology
from ccplay.model.values import Capabilities, Feature
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
"""Fields of ``Capabilities`` and the headings over them."""

SMALLEST = Build(topology=Topology(kind="linear"))
"""The smallest network; a lab of it shows what a machine supports."""


async def examine(source: Source) -> Capabilities:
    """Start a lab and return the capabilities that it reports.

    Raises ``LabError`` if no lab can start.
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
    """Print every feature of this machine; for a missing one also the reason and the remedy."""
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


def _row(feature: Feature) -> tuple[str, str, str]:
    if feature.available:
        return "yes", f"[bold]{feature.name}[/]", feature.summary
    why = "; ".join(each for each in (feature.reason, feature.remedy) if each)
    return "no", f"[dim]{feature.name}[/]", f"[dim]{feature.summary}:[/] [italic]{why}[/]"
