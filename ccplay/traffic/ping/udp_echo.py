"""Pings over UDP: datagrams at a fixed interval, each returned by the receiver.

Runs as a separate process in a host's namespace and imports nothing from ccplay: ``python
udp_echo.py receive PORT TOS``, or ``send ADDRESS PORT SPORT INTERVAL COUNT TOS``, with the interval
in seconds and 0 for no limit. The sender writes lines as ping(8) with ``-O`` does: one for each
reply, one for each datagram without a reply when the next one is sent, and a summary.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time

_HEADER = struct.Struct("!QQ")
"""Header of a datagram: its number, and nanoseconds of the sender's monotonic clock."""

_PAYLOAD = 64
"""Bytes of payload, so few that they hardly load the path."""

_LAST_ANSWER_S = 5.0
"""Seconds to wait for replies after the last datagram."""


def _receive(port: int, tos: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        listening.bind(("", port))
        print("ready", flush=True)
        while True:
            listening.sendto(*listening.recvfrom(2048))


class _Sender:
    """The datagrams of one ping."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unanswered: set[int] = set()
        self.sent = self.received = 0

    def send(self) -> None:
        if self.sent in self._unanswered:
            print(f"no answer yet for seq={self.sent}", flush=True)
        self.sent += 1
        self._unanswered.add(self.sent)
        header = _HEADER.pack(self.sent, time.monotonic_ns())
        try:
            self._connection.send(header.ljust(_PAYLOAD, b"\0"))
        except OSError as error:
            print(f"can't send: {error.strerror}", file=sys.stderr, flush=True)

    def listen(self, until: float) -> None:
        """Print each reply that arrives before ``until``."""
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._connection], [], [], left)[0]:
                return
            try:
                answer = self._connection.recv(2048)
            except OSError:
                # No process listens there, or there is no route at present.
                continue
            now = time.monotonic_ns()
            number, began = _HEADER.unpack_from(answer)
            if number in self._unanswered:
                self._unanswered.remove(number)
                self.received += 1
                print(f"seq={number} time={(now - began) / 1e6:.3f} ms", flush=True)

    @property
    def waits(self) -> bool:
        """Whether replies are outstanding."""
        return bool(self._unanswered)


def _send(address: tuple[str, int], sport: int, interval_s: float, count: int, tos: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        connection.bind(("", sport))
        # The lab holds the program at this call until the ping's moment.
        connection.connect(address)
        sender = _Sender(connection)
        due = time.monotonic()
        try:
            while not count or sender.sent < count:
                sender.send()
                due += interval_s
                sender.listen(due)
            last = time.monotonic() + _LAST_ANSWER_S
            while sender.waits and (left := last - time.monotonic()) > 0:
                sender.listen(time.monotonic() + min(left, interval_s))
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
    else:
        address, port, sport, interval_s, count, tos = words
        _send((address, int(port)), int(sport), float(interval_s), int(count), int(tos))


if __name__ == "__main__":
    main()
