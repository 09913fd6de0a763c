"""iperf3: the calls at which it can be held, its versions, and its control connection.

From 3.16 on, each connection has its own thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import msgspec

from ccplay.errors import UnsupportedError
from ccplay.lab import delay, rtnl
from ccplay.lab.htb import Keys, port_keys
from ccplay.lab.netns import Namespace
from ccplay.lab.network import mac
from ccplay.lab.paths import DATAGRAMS, STREAMS
from ccplay.lab.rtnl import NetlinkError, NetlinkSocket
from ccplay.lab.traffic.program import Hold
from ccplay.model.algorithms import DEFAULT, type_of_service
from ccplay.model.network import Network

# --- the calls at which iperf3 can be held, and differences between its versions ------------------

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


# --- A cable past the network for iperf3's control connection -------------------------------------
# Before its first packet iperf3 negotiates with its server over a TCP connection of its own, and
# for UDP sends a first datagram. This takes five round trips, and more if a queue is full or loses
# packets, so the start of traffic would depend on the queue. Until traffic starts, these packets
# are therefore redirected as they leave the hosts' interfaces, to a veth pair between them: they
# meet no queue, no delay and no loss, and neither captures nor counters see them. All packets to be
# measured take the network, and so do the handshakes of the connections that carry them.
#
# A host accepts only frames to its own address. Redirected frames have the router's address, so the
# ends of the cable have that address too.

_HELLO = "0x20/0xffff+2"
"""Match on an IP packet of 32 bytes, 4 of them payload: iperf3's first datagram, and the reply to
it. Data packets have a payload of 16 bytes or more."""

_CHOSEN_FROM, _CHOSEN_TO = "0x8000/0x8000+20", "0x8000/0x8000+22"
"""Match on a TCP source or destination port chosen by the kernel: all of these are above 32,767,
and none of ours, from which data is sent."""


class _End(msgspec.Struct, frozen=True):
    """One end of a cable: its host, and the indexes of the host's interface and of the end."""

    namespace: Namespace
    interface: int
    cable: int


class Bypass:
    """The cables made so far; they end with the hosts."""

    def __init__(self, network: Network, namespace: Callable[[str], Namespace]) -> None:
        self._network, self._namespace = network, namespace
        # The first link of a host, which has the host's own address.
        self._links = {link.src: link for link in reversed(network.links)}
        self._ends: dict[tuple[str, str], _End] = {}
        self._open: set[int] = set()

    def open(self, src: str, dst: str, port: int) -> None:
        """Redirect the control connection between ``src`` and a server of ``dst`` past the network.

        Raises ``UnsupportedError`` if the kernel can't.
        """
        if port in self._open:
            return
        try:
            if (src, dst) not in self._ends:
                self._make_cable(src, dst)
            for end, keys in self._talk(src, dst, port):
                with NetlinkSocket(end.namespace) as routes:
                    places = (end.interface, delay.LEAVING, end.cable)
                    wanted = [delay.redirection_request(*places, each, port) for each in keys]
                    routes.request(wanted, "redirection")
        except NetlinkError as error:
            raise UnsupportedError(str(error)) from error
        self._open.add(port)

    def close(self, src: str, dst: str, port: int) -> None:
        """Send the rest of the control connection through the network, behind the data."""
        if port not in self._open:
            return
        self._open.remove(port)
        for end, _ in self._talk(src, dst, port):
            with NetlinkSocket(end.namespace) as routes:
                request = delay.redirection_removal(end.interface, delay.LEAVING, port)
                routes.request([request], "end of a redirection")

    def _talk(self, src: str, dst: str, port: int) -> list[tuple[_End, list[Keys]]]:
        """Return both ends, each with the keys of the packets that it sends."""
        address = self._network.address(dst)
        hello, answer = port_keys(DATAGRAMS, address, port)
        there, back = port_keys(STREAMS, address, port)
        return [
            (self._ends[src, dst], [(*hello, _HELLO), (*there, _CHOSEN_FROM)]),
            (self._ends[dst, src], [(*answer, _HELLO), (*back, _CHOSEN_TO)]),
        ]

    def _make_cable(self, src: str, dst: str) -> None:
        """Make the cable between two hosts."""
        here, there = self._end(src, dst), self._end(dst, src)
        with NetlinkSocket() as routes:
            ends = ((name, address, where.pid) for name, address, where in (here, there))
            routes.request([rtnl.cable(*ends)], f"cable from {src} to {dst}")
        for host, other, (name, _, namespace) in ((src, dst, here), (dst, src, there)):
            index = namespace.interface_index(name)
            with NetlinkSocket(namespace) as routes:
                routes.request([rtnl.up(index)], name)
            own = namespace.interface_index(self._links[host].interface)
            self._ends[host, other] = _End(namespace, own, index)

    def _end(self, host: str, other: str) -> tuple[str, str, Namespace]:
        """Return name and address of the cable's end at a host, and its namespace."""
        address = mac(self._network.opposite(self._links[other]))
        return f"to-{other}", address, self._namespace(host)
