"""A transfer over Multipath TCP: one process receives, one sends for as long as it lives.

They run as separate processes in hosts' namespaces and import nothing from ccplay: ``python
transfer.py receive PORT``, or ``send ADDRESS PORT SPORT CC SCHEDULER MANAGER``; ``-`` selects the
host's default. The receiver writes ``listening`` once it listens. The path manager of a connection
is decided when its socket is created, so the sender first sets that of its host: ``userspace``, so
that the lab manages the paths, or ``kernel``. The receiver's host keeps the kernel's path manager,
which accepts subflows up to its limit.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

_MPTCP = 262
"""Protocol number ``IPPROTO_MPTCP``."""

_BLOCK = 1 << 17
_SYSCTLS = Path("/proc/sys/net/mptcp")
"""Folder of MPTCP's sysctls, which are those of the process's namespace."""


def _receive(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
        listener.listen()
        print("listening", flush=True)
        connection, _ = listener.accept()
        room = bytearray(_BLOCK)
        while connection.recv_into(room):
            pass


def _set(name: str, value: str) -> None:
    (_SYSCTLS / name).write_text(value, encoding="ascii")


def _send(address: str, ports: tuple[int, int], cc: str, scheduler: str, manager: str) -> None:
    port, sport = ports
    if scheduler != "-":
        _set("scheduler", scheduler)
    if (_SYSCTLS / "path_manager").exists():
        _set("path_manager", manager)
    else:
        _set("pm_type", "1" if manager == "userspace" else "0")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.bind(("", sport))
        connection.connect((address, port))
        if cc != "-":
            # After connecting, which replaces any other algorithm by the route's.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        block = bytes(_BLOCK)
        while True:
            connection.send(block)


def main() -> None:
    """Receive or send. Ends with a message on stderr if the kernel refuses."""
    role, *words = sys.argv[1:]
    # At once, even if the parent ignores the signal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        if role == "receive":
            _receive(int(words[0]))
        else:
            address, port, sport, cc, scheduler, manager = words
            _send(address, (int(port), int(sport)), cc, scheduler, manager)
    except OSError as error:
        sys.exit(error.strerror or os.strerror(error.errno or 0))


if __name__ == "__main__":
    main()
