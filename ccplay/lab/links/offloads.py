"""Segmentation and receive offloads of an interface (ethtool(8), include/uapi/linux/ethtool.h).

With offloads on, a queue holds segments of up to 64 KB; with them off, frames.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace

_SIOCETHTOOL = 0x8946

_SET_COMMANDS = {"TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
_GET_COMMANDS = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}


def switch(namespace: Namespace, interface: str, *, on: bool) -> None:
    """Turn TSO, GSO and GRO of an interface on or off.

    Raises ``LabError`` if the kernel does not change one of them.
    """
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name, command in _SET_COMMANDS.items():
            _ioctl(sock, interface, command, int(on))
            if bool(_ioctl(sock, interface, _GET_COMMANDS[name], 0)) != on:
                raise LabError(f"{interface}: {name} stays {'off' if on else 'on'}")


def _ioctl(sock: socket.socket, interface: str, command: int, value: int) -> int:
    """Send one ``struct ethtool_value`` and return the value that the kernel leaves in it."""
    request = ctypes.create_string_buffer(struct.pack("=II", command, value))
    # struct ifreq: a name of 16 bytes, then a union that begins with the pointer.
    frame = struct.pack("=16sQ16x", interface.encode(), ctypes.addressof(request))
    try:
        fcntl.ioctl(sock, _SIOCETHTOOL, frame)
    except OSError as error:
        raise LabError(f"{interface}: offloads can't be set: {error.strerror}") from error
    return int(struct.unpack_from("=I", request, 4)[0])
