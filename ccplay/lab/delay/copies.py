"""Packets as bytes: copies that are sent once more, and bits that are flipped."""

from __future__ import annotations

import contextlib
import socket

from ccplay.lab.network.netns import Namespace

_TTL = 8
_DESTINATION = slice(16, 20)


class Copies:
    """Sends copies of packets that have arrived in a namespace, on the way that they take.

    A raw socket (raw(7), IP_HDRINCL) delivers them here or forwards them. They arrive through no
    interface, so no rule in front of one sees them twice.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._socket = namespace.socket(
            socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_RAW
        )

    def send(self, packet: bytes) -> None:
        """Send an IPv4 packet; one that can't be sent is lost."""
        copy = bytearray(packet)
        # Routers count a hop; the kernel computes the header's checksum anew.
        copy[_TTL] = max(1, copy[_TTL] - 1)
        with contextlib.suppress(OSError):
            self._socket.sendto(copy, (socket.inet_ntoa(bytes(copy[_DESTINATION])), 0))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def flipped(packet: bytes, place: float) -> bytes | None:
    """Return a packet with one bit flipped, at a share of its bits.

    None where that bit is in its IP header: its checksum betrays every single bit, so the next
    node would drop the packet.
    """
    bit = int(place * len(packet) * 8)
    if bit // 8 < 4 * (packet[0] & 15):
        return None
    changed = bytearray(packet)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
