"""Pings at a fixed interval: over UDP, or a limited number of ICMP echo requests.

Runs as a separate process in a host's namespace and imports nothing from ccplay: ``python echo.py
receive PORT TOS`` returns datagrams; ``send ADDRESS PORT SPORT INTERVAL COUNT TOS`` sends them, and
``icmp ADDRESS IDENTIFIER INTERVAL COUNT TOS`` sends echo requests, with the interval in seconds and
0 for no limit. A sender writes lines as ping(8) with ``-O`` does: one for each reply, one for each
ping without a reply when the next one is sent, and a summary.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time

_HEADER = struct.Struct("!QQ")
"""Header of a ping's data: its number, and nanoseconds of the sender's monotonic clock."""

_ECHO = struct.Struct("!BBHHH")
"""Header of ICMP's echo messages: type, code, checksum, identifier, sequence number; RFC 792."""
_REQUEST, _REPLY = 8, 0

_SIZE = 64
"""Bytes in a UDP datagram or of an ICMP message, so few that they hardly load the path."""

_LAST_ANSWER_S = 5.0
"""Seconds to wait for replies after the last ping."""


def _receive(port: int, tos: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        listening.bind(("", port))
        print("ready", flush=True)
        while True:
            listening.sendto(*listening.recvfrom(2048))


class _Sender:
    """The pings on one socket; ``identifier`` is that of ICMP messages, None over UDP."""

    def __init__(self, connection: socket.socket, identifier: int | None) -> None:
        self._connection, self._identifier = connection, identifier
        self.unanswered: set[int] = set()
        self.sent = self.received = 0

    def send(self) -> None:
        if self.sent in self.unanswered:
            print(f"no answer yet for seq={self.sent}", flush=True)
        self.sent += 1
        self.unanswered.add(self.sent)
        header = _HEADER.pack(self.sent, time.monotonic_ns())
        try:
            self._connection.send(self._packet(header))
        except OSError as error:
            print(f"can't send: {error.strerror}", file=sys.stderr, flush=True)

    def listen(self, until: float) -> bool:
        """Print the reply that arrives next; return whether anything arrived before ``until``."""
        left = max(until - time.monotonic(), 0)
        if not select.select([self._connection], [], [], left)[0]:
            return False
        try:
            number, began = self._header(self._connection.recv(2048))
        except OSError:
            # No process listens there, or there is no route at present.
            return True
        now = time.monotonic_ns()
        if number in self.unanswered:
            self.unanswered.remove(number)
            self.received += 1
            print(f"seq={number} time={(now - began) / 1e6:.3f} ms", flush=True)
        return True

    def _packet(self, header: bytes) -> bytes:
        """Return a ping with this header."""
        if self._identifier is None:
            return header.ljust(_SIZE, b"\0")
        data = header.ljust(_SIZE - _ECHO.size, b"\0")
        fields = self._identifier, self.sent & 0xFFFF
        words = struct.iter_unpack("!H", _ECHO.pack(_REQUEST, 0, 0, *fields) + data)
        # RFC 1071: the complement of the sum in ones' complement, that is, modulo 0xFFFF.
        checksum = 0xFFFF - sum(word for (word,) in words) % 0xFFFF
        return _ECHO.pack(_REQUEST, 0, checksum, *fields) + data

    def _header(self, packet: bytes) -> tuple[int, int]:
        """Return a ping's number and the time at which it was sent; zeros if it is of another."""
        if self._identifier is None:
            return _HEADER.unpack_from(packet)
        # A raw socket receives the IP header, too, and the messages of all pings.
        kind, _, _, identifier, _ = _ECHO.unpack_from(packet, 20)
        own = kind == _REPLY and identifier == self._identifier
        return _HEADER.unpack_from(packet, 20 + _ECHO.size) if own else (0, 0)


def _send(sender: _Sender, interval_s: float, count: int) -> None:
    due = time.monotonic()
    try:
        while not count or sender.sent < count:
            sender.send()
            # After a pause of this process, only one ping makes up for it.
            due = max(due + interval_s, time.monotonic())
            while sender.listen(due):
                pass
        last = time.monotonic() + _LAST_ANSWER_S
        while sender.unanswered and sender.listen(last):
            pass
    except KeyboardInterrupt:
        pass
    print(f"{sender.sent} packets transmitted, {sender.received} received", flush=True)


def main() -> None:
    """Receive, or send."""
    role, *words = sys.argv[1:]
    if role == "receive":
        try:
            _receive(int(words[0]), int(words[1]))
        except KeyboardInterrupt:
            return
    address, number, *sport, interval_s, count, tos = words
    icmp = role == "icmp"
    kind = (socket.SOCK_RAW, socket.IPPROTO_ICMP) if icmp else (socket.SOCK_DGRAM,)
    try:
        with socket.socket(socket.AF_INET, *kind) as connection:
            connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(tos))
            if not icmp:
                connection.bind(("", int(sport[0])))
            # The lab holds the program at this call until the ping's moment.
            connection.connect((address, 0 if icmp else int(number)))
            sender = _Sender(connection, int(number) if icmp else None)
            _send(sender, float(interval_s), int(count))
    except OSError as error:
        sys.exit(f"can't ping {address}: {error.strerror}")


if __name__ == "__main__":
    main()
