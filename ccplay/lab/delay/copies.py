"""Packets as bytes: sends copies of duplicated packets, and flips bits."""

from __future__ import annotations

import contextlib
import socket

from ccplay.lab.network.netns import Namespace

_TTL = 8
_DESTINATION = slice(16, 20)


class Copies:
    """Sends copies of packets that have arrived in a namespace, onward on the same path.

    A raw socket (raw(7), IP_HDRINCL) delivers or forwards them. They do not arrive through an
    interface, so no rule in PREROUTING matches them again.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._socket = namespace.socket(
            socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_RAW
        )

    def send(self, packet: bytes) -> None:
        """Send an IPv4 packet; one that can't be sent is lost."""
        copy = bytearray(packet)
        # Routers decrement the TTL; the kernel recomputes the header's checksum.
        copy[_TTL] = max(1, copy[_TTL] - 1)
        with contextlib.suppress(OSError):
            self._socket.sendto(copy, (socket.inet_ntoa(bytes(copy[_DESTINATION])), 0))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def flipped(packet: bytes, place: float) -> bytes | None:
    """Return a packet with one bit flipped; ``place`` is its position as a share of all bits.

    Returns None if that bit is in the IP header: the header's checksum detects every single wrong
    bit, so the next node would drop the packet.
    """
    bit = int(place * len(packet) * 8)
    if bit // 8 < 4 * (packet[0] & 15):
        return None
    changed = bytearray(packet)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
