"""The MTU of an interface: the largest IP packet that it sends or accepts; netdevice(7)."""

from __future__ import annotations

import fcntl
import socket
import struct

from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace

_SIOCGIFMTU, _SIOCSIFMTU = 0x8921, 0x8922
_REQUEST = struct.Struct("=16si20x")
"""``struct ifreq`` with ``ifr_mtu``."""


def set_mtu(namespace: Namespace, interface: str, mtu: int) -> None:
    """Set the MTU of an interface. Raises ``LabError`` if the kernel keeps another."""
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SIOCSIFMTU, _REQUEST.pack(interface.encode(), mtu))
            answer = fcntl.ioctl(sock, _SIOCGIFMTU, _REQUEST.pack(interface.encode(), 0))
        except OSError as error:
            raise LabError(f"{interface}: MTU {mtu}: {error.strerror}") from error
    _, held = _REQUEST.unpack(answer)
    if held != mtu:
        raise LabError(f"{interface}: requested MTU {mtu}, but the kernel keeps {held}")
