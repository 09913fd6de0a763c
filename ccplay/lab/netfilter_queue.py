"""Netfilter queues, in which packets wait for verdicts: by number alone, or with their headers.

include/uapi/linux/netfilter/nfnetlink_queue.h and net/netfilter/nfnetlink_queue.c define the
messages.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from zlib import crc32

from ccplay.lab.disciplines.base import Packet
from ccplay.lab.netlink import ACK, REQUEST, attribute, failure, walk
from ccplay.lab.netns import Namespace

# --- packets by number: the delay line copies their content only on request -----------------------

_NETLINK_NETFILTER = 12
_SUBSYSTEM = 3 << 8
_VERDICT, _CONFIG, _VERDICT_BATCH = _SUBSYSTEM | 1, _SUBSYSTEM | 2, _SUBSYSTEM | 3

_CFG_COMMAND, _CFG_PARAMETERS, _CFG_MAX_LENGTH, _CFG_MASK, _CFG_FLAGS = 1, 2, 3, 4, 5
_BIND = struct.pack("!BxH", 1, 0)
_COPY_META = struct.pack("!IB", 0, 1)
_FAIL_OPEN, _GSO = 1, 4

_DROP, _ACCEPT = 0, 1
_VERDICT_HEADER, _MARK = 2, 3

_KIND_AT, _PACKET = 5, 3
"""Offset of the subsystem in a message, and its value for a packet."""

_TIMESTAMP = 4
_STAMP_HEADER = struct.pack("=HH", 20, _TIMESTAMP)

_PAYLOAD = 10
"""Attribute ``NFQA_PAYLOAD``."""
_LONGEST = 2048
"""Number of bytes copied of a packet: more than any packet has without GSO."""

_MAX_LENGTH = 1 << 17
"""Largest number of packets that wait: full frames at 1 Gbit/s for 1.5 s."""

_SO_RCVBUFFORCE = 33
_NETLINK_NO_ENOBUFS = 5
_SOL_NETLINK = 270

_HEADER = struct.Struct("=IHHIIBBH")
_VERDICT_MESSAGE = struct.Struct("=IHHIIBBHHHII")
_MARKED_VERDICT = struct.Struct("=IHHIIBBHHHIIHHI")


class PacketQueue:
    """Netfilter queue ``number`` of a namespace; rules with ``-j NFQUEUE`` feed it."""

    def __init__(self, namespace: Namespace, number: int, copied: int = 0) -> None:
        """Bind the queue; ``copied`` bytes of each packet are copied with its number."""
        self._socket = namespace.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_NETFILTER
        )
        # Only the host's root may exceed net.core.rmem_max.
        with contextlib.suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 << 20)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_NO_ENOBUFS, 1)
        self._socket.bind((0, 0))
        # The queue's number is in network order, everything else in host order.
        self._queue = socket.htons(number)
        self._buffer = bytearray(4096)
        self._length = 0
        self._whole = False
        self._packet = _packet_layout(28)
        self.stamp = 0.0
        flags = _FAIL_OPEN | _GSO
        self._configure(_CFG_COMMAND, _BIND)
        self._configure(_CFG_PARAMETERS, struct.pack("!IB", copied, 2) if copied else _COPY_META)
        self._configure(_CFG_MAX_LENGTH, struct.pack("!I", _MAX_LENGTH))
        self._configure(_CFG_FLAGS, struct.pack("!I", flags), _CFG_MASK)

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Unbind; the kernel drops waiting packets."""
        self._socket.close()

    def next_packet(self) -> int | None:
        """Return the number of the next packet; None if there is none yet.

        ``stamp`` is then its arrival in Unix time, or 0 if the kernel did not record it.
        """
        try:
            length = self._receive()
        except BlockingIOError:
            return None
        self._length = length
        packet, header, seconds, microseconds = self._packet.unpack_from(self._buffer)
        if header != _STAMP_HEADER:
            packet, seconds, microseconds = self._learn(length)
        self.stamp = seconds + microseconds * 1e-6
        return int(packet)

    def _receive(self) -> int:
        """Read the next packet's message into the buffer and return the message's length.

        Skips all other messages: errors of verdicts on packets that no longer exist, because the
        kernel drops those of an interface that goes down. Raises ``BlockingIOError`` without any.
        """
        length = self._socket.recv_into(self._buffer)
        while self._buffer[_KIND_AT] != _PACKET:
            length = self._socket.recv_into(self._buffer)
        return length

    def copy(self, *, whole: bool) -> None:
        """Copy later packets with their content and computed checksums, or without."""
        if whole == self._whole:
            return
        self._whole = whole
        copied = struct.pack("!IB", _LONGEST, 2) if whole else _COPY_META
        flags, mask = struct.pack("!I", 0 if whole else _GSO), struct.pack("!I", _GSO)
        # Without an acknowledgement: waiting for one would swallow packets that arrive meanwhile.
        self._ask(attribute(_CFG_PARAMETERS, copied), 0)
        self._ask(attribute(_CFG_FLAGS, flags) + attribute(_CFG_MASK, mask), 0)

    def content(self) -> bytes:
        """Return the content of ``next_packet``'s last packet, from its IP header on.

        It is empty if the packet was copied without its content.
        """
        begin, end = walk(self._buffer, _HEADER.size, self._length).get(_PAYLOAD, (0, 0))
        return bytes(self._buffer[begin:end])

    def accept(self, packet: int, content: bytes | None = None) -> None:
        """Release one packet; ``content``, if any, replaces its own."""
        header = struct.pack("!II", _ACCEPT, packet)
        body = attribute(_VERDICT_HEADER, header)
        if content is not None:
            body += attribute(_PAYLOAD, content)
        self._ask(body, 0, _VERDICT)

    def _learn(self, length: int) -> tuple[int, int, int]:
        """Find the offset of the timestamp in messages like this one.

        Returns the packet's number, and the seconds and microseconds of its timestamp, or 0, 0.
        """
        # NFQA_PACKET_HDR is the first attribute (nfqnl_build_packet_message); the number is at 24.
        (packet,) = struct.unpack_from("!I", self._buffer, 24)
        stamp, _ = walk(self._buffer, _HEADER.size, length).get(_TIMESTAMP, (0, 0))
        if not stamp:
            return packet, 0, 0
        self._packet = _packet_layout(stamp - 4)
        return (packet, *struct.unpack_from("!QQ", self._buffer, stamp))

    def release(self, last: int) -> None:
        """Release all packets up to number ``last``, in order."""
        self._decide(_VERDICT_BATCH, _ACCEPT, last)

    def drop(self, packet: int) -> None:
        """Drop one packet."""
        self._decide(_VERDICT, _DROP, packet)

    def _decide(self, kind: int, verdict: int, packet: int) -> None:
        self._socket.send(
            _VERDICT_MESSAGE.pack(
                *(32, kind, REQUEST, 0, 0, 0, 0, self._queue),
                *(12, _VERDICT_HEADER, socket.htonl(verdict), socket.htonl(packet)),
            )
        )

    def _configure(self, setting: int, value: bytes, mask: int | None = None) -> None:
        """Send one setting and wait for the kernel's answer. Raises ``OSError`` if it refuses."""
        body = attribute(setting, value)
        if mask is not None:
            body += attribute(mask, value)
        self._socket.setblocking(True)
        self._ask(body, ACK)
        while True:
            answer = self._socket.recv(1 << 16)
            # Packets may arrive before the answer, once the queue is bound.
            if struct.unpack_from("=H", answer, 4)[0] == 2:
                break
        self._socket.setblocking(False)
        if number := failure(answer):
            raise OSError(number, f"netfilter queue: {os.strerror(number)}")

    def _ask(self, body: bytes, flags: int, kind: int = _CONFIG) -> None:
        length = _HEADER.size + len(body)
        head = _HEADER.pack(length, kind, REQUEST | flags, 0, 0, 0, 0, self._queue)
        self._socket.send(head + body)


def _packet_layout(stamp_at: int) -> struct.Struct:
    """Return the format of a message: the packet's number, its timestamp's header, and the time."""
    return struct.Struct(f"!24xI{stamp_at - 28}x4sQQ")


# --- packets with the beginning of each, enough for a discipline ----------------------------------
# Flows are distinguished as in the kernel's flow dissector (net/core/flow_dissector.c): by
# addresses, protocol and ports; for a ping by its identifier instead of ports; for fragments and
# packets with IP options by addresses and protocol alone.

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
        if at + 4 > length or buffer[at + 2] != _PAYLOAD or buffer[at + 3]:
            # Later messages have the same attributes.
            payload, _ = walk(buffer, _HEADER.size, length).get(_PAYLOAD, (36, 0))
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
            *(40, _VERDICT, REQUEST, 0, 0, 0, 0, self._queue),
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
