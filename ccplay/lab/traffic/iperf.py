"""The calls at which iperf3 can be held, and differences between its versions.

From 3.16 on, each connection has its own thread.
"""

from __future__ import annotations

import asyncio
import re

from ccplay.lab.traffic.holding import Hold
from ccplay.model.dscp import DEFAULT, type_of_service

BEFORE_DATA = Hold("read", passed=3, octets=1)
"""Hold of a client before it sends data. The server leads the client from state to state by single
bytes: exchange parameters, open the data connections, prepare, send. When the client reads the
fourth byte, all connections are open."""

BEFORE_DATAGRAMS = Hold("read", passed=2, octets=1)
"""Hold of a client over UDP at the third single byte from its server: it paces datagrams by the
time since it read that byte."""

COOKIE_OCTETS = 37
"""Number of bytes of the cookie that each data connection carries before its data."""


def server_argv(port: int, interval_s: float = 0.0) -> list[str]:
    """Return the command line of a server for one test; with 0 s it reports only at the end."""
    return ["iperf3", "-s", "-1", "-p", str(port), "-i", f"{interval_s:g}", "--forceflush"]


_THREADED = (3, 16)
_VERSION = re.compile(r"iperf (\d+)\.(\d+)")

_looks: bool | None = None


def looks_after_each_packet(output: str) -> bool:
    """Return whether an iperf3 with this ``--version`` checks its limit after each packet.

    With threads it checks the limit only when it reports, at most every 0.1 s.
    """
    match = _VERSION.search(output)
    return match is not None and (int(match[1]), int(match[2])) < _THREADED


async def stops_in_time() -> bool:
    """Return whether the installed iperf3 ends after exactly the requested number of packets."""
    global _looks  # noqa: PLW0603 - asked once
    if _looks is None:
        try:
            process = await asyncio.create_subprocess_exec(
                "iperf3", "--version", stdout=asyncio.subprocess.PIPE
            )
        except FileNotFoundError:
            # Starting it reports the error.
            return False
        output, _ = await process.communicate()
        _looks = looks_after_each_packet(output.decode(errors="replace"))
    return _looks


def client_argv(
    address: str, ports: tuple[int, int], streams: int, cc: str, dscp: str = DEFAULT
) -> list[str]:
    """Return the command line of a TCP sender without a limit.

    ``ports`` are the receiver's port and the first source port; an empty ``cc`` selects the host's
    default. ``dscp`` is the code point of both ends' packets.
    """
    # No -n: iperf3 ends once it has written that many bytes, and drops those not yet sent.
    port, sport = map(str, ports)
    return [
        *("iperf3", "-c", address, "-p", port, "-t", "0", "-i", "0"),
        *("--cport", sport, "-P", str(streams)),
        *(("-C", cc) if cc else ()),
        *(("-S", str(type_of_service(dscp))) if dscp != DEFAULT else ()),
    ]
