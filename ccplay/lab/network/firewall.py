"""Firewall rules of a node, iptables(8), added and removed as whole lines of a table."""

from __future__ import annotations

import asyncio
import subprocess

from ccplay.assets import find_tool
from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace

PROGRAM = "iptables-legacy-restore"
"""Name of the program that restores rules; the version for nftables may lack the netfilter queues
that legacy tables have."""


async def restore(namespace: Namespace, lines: str) -> None:
    """Carry out lines in the format of iptables-save(8). Raises ``LabError``."""
    # A process started inside the namespace needs no nsenter(1).
    with namespace.entered():
        running = subprocess.Popen(  # noqa: ASYNC220 - starting it takes a millisecond
            argv(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    _, output = await asyncio.to_thread(running.communicate, lines)
    if running.returncode:
        text = output.strip().partition("\n")[0]
        raise LabError(f"node {namespace.name}: {PROGRAM}: {text}")


def argv() -> list[str]:
    """Return the command line that reads lines of iptables-save(8) and keeps all other rules."""
    return [find_tool(PROGRAM) or PROGRAM, "-w", "--noflush"]
