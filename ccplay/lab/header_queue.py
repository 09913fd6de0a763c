"""A netfilter queue that copies the beginning of each packet, enough for a discipline.

Flows are distinguished as in the kernel's flow dissector (net/core/flow_dissector.c): by addresses,
protocol and ports; for a ping by its identifier instead of ports; for fragments and packets with IP
options by addresses and protocol alone.
"""

from __future__ import annotations

import socket
import struct
from zlib import crc32

from ccplay.lab.disciplines.base import Packet
from ccplay.lab.netlink import walk
from ccplay.lab.netns import Namespace
from ccplay.lab.packet_loop import PAYLOAD, PacketQueue

_COPIED = 40
"""Number of bytes copied of a packet: its IP header without options, the ports, and some more."""

_ETHERNET_HEADER = 14
"""Length of a frame's header in bytes; an skb does not contain the frame's checksum."""

_IPV4 = struct.Struct("!BBHxxHxBxxII")
"""Format of an IPv4 header: version and header length, type of service, total length, fragment,
protocol, addresses; RFC 791."""

_NO_OPTIONS, _FRAGMENT, _ICMP = 0x45, 0x3FFF, 1

_MOST_VERDICTS = 1000
"""Largest number of verdicts in one datagram, which a socket's buffer limits."""

_MARKED_VERDICT = struct.Struct("=IHHIIBBHHHIIHHI")
_VERDICT, _VERDICT_HEADER, _MARK = 3 << 8 | 1, 2, 3
_DROP, _ACCEPT = 0, 1


class HeaderQueue(PacketQueue):
    """Netfilter queue ``number`` of a namespace, with headers; packets leave by verdicts only."""

    def __init__(self, namespace: Namespace, number: int) -> None:
        super().__init__(namespace, number, _COPIED)
        self._payload_at = 32
        self._verdicts: list[bytes] = []

    def receive(self) -> Packet | None:
        """Return the next packet; None if there is none yet."""
        buffer = self._buffer
        try:
            length = self._receive()
        except BlockingIOError:
            return None
        at = self._payload_at
        if at + 4 > length or buffer[at + 2] != PAYLOAD or buffer[at + 3]:
            # Later messages have the same attributes.
            payload, _ = walk(buffer, 20, length).get(PAYLOAD, (36, 0))
            at = self._payload_at = payload - 4
        number = int.from_bytes(buffer[24:28], "big")
        return parse_header(buffer, at + 4, number)

    def send_on(self, packet: int, mark: int) -> None:
        """Release a packet at the next ``flush``, with a firewall mark."""
        self._verdicts.append(self._verdict(_ACCEPT, packet, mark))

    def discard(self, packet: int) -> None:
        """Drop a packet at the next ``flush``."""
        self._verdicts.append(self._verdict(_DROP, packet, 0))

    def flush(self) -> None:
        """Carry out all decisions in order."""
        verdicts, self._verdicts = self._verdicts, []
        for begin in range(0, len(verdicts), _MOST_VERDICTS):
            self._socket.send(b"".join(verdicts[begin : begin + _MOST_VERDICTS]))

    def _verdict(self, verdict: int, packet: int, mark: int) -> bytes:
        return _MARKED_VERDICT.pack(
            *(40, _VERDICT, 1, 0, 0, 0, 0, self._queue),
            *(12, _VERDICT_HEADER, socket.htonl(verdict), socket.htonl(packet)),
            *(8, _MARK, socket.htonl(mark)),
        )


def parse_header(data: bytes | bytearray, at: int, number: int) -> Packet:
    """Return the packet whose IP header begins at ``at``; flow 0 if it is short or not IPv4."""
    if len(data) < at + 28 or data[at] >> 4 != 4:
        return Packet(_ETHERNET_HEADER, number=number)
    version, tos, length, fragment, protocol, source, destination = _IPV4.unpack_from(data, at)
    if version != _NO_OPTIONS or fragment & _FRAGMENT:
        flow = crc32(data[at + 12 : at + 20], protocol)
    elif protocol == _ICMP:
        flow = crc32(data[at + 24 : at + 26], crc32(data[at + 12 : at + 20], protocol))
    else:
        flow = crc32(data[at + 12 : at + 24], protocol)
    return Packet(
        length + _ETHERNET_HEADER,
        flow,
        tos & 3,
        number=number,
        source=source,
        destination=destination,
        dscp=tos >> 2,
    )
