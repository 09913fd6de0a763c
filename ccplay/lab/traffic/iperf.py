"""What is known of iperf3: where it can be held, and where its versions differ.

From 3.16 on each connection has a thread of its own.
"""

from __future__ import annotations

import asyncio
import re

from ccplay.lab.traffic.holding import Hold

BEFORE_DATA = Hold("connect", passed=1)
"""Its first connection is that by which both ends agree on everything; the next ones carry data."""

_THREADED = (3, 16)
_VERSION = re.compile(r"iperf (\d+)\.(\d+)")

_looks: bool | None = None


def looks_after_each_packet(said: str) -> bool:
    """Say whether an iperf3 whose ``--version`` says this counts each packet against its limit.

    One with threads does so only when it reports, every 0.1 s at the most often.
    """
    match = _VERSION.search(said)
    return match is not None and (int(match[1]), int(match[2])) < _THREADED


async def stops_in_time() -> bool:
    """Say whether the iperf3 that is installed ends after as many packets as it is asked for."""
    global _looks  # noqa: PLW0603 - asked once
    if _looks is None:
        try:
            process = await asyncio.create_subprocess_exec(
                "iperf3", "--version", stdout=asyncio.subprocess.PIPE
            )
        except FileNotFoundError:
            # Who starts it will say so.
            return False
        said, _ = await process.communicate()
        _looks = looks_after_each_packet(said.decode(errors="replace"))
    return _looks
