"""Firewall rules of a node, iptables(8), added and removed as whole lines of a table."""

from __future__ import annotations

import asyncio
import subprocess

from ccplay.assets import find_tool
from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace

PROGRAM = "iptables-legacy-restore"
"""Program that restores rules: nftables' version may lack the netfilter queues that legacy tables
have."""


async def restore(namespace: Namespace, lines: str) -> None:
    """Carry out lines in the format of iptables-save(8). Raises ``LabError``."""
    # Started in the namespace, it need not be entered by a program first.
    with namespace.entered():
        running = subprocess.Popen(  # noqa: ASYNC220 - to start it takes a millisecond
            argv(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    _, said = await asyncio.to_thread(running.communicate, lines)
    if running.returncode:
        text = said.strip().partition("\n")[0]
        raise LabError(f"node {namespace.name}: {PROGRAM}: {text}")


def argv() -> list[str]:
    """Return the command that reads such lines and keeps all other rules."""
    return [find_tool(PROGRAM) or PROGRAM, "-w", "--noflush"]
