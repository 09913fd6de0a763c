"""The network namespace of a node: sockets, sysctls, firewall rules."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ccplay.assets import find_tool
from ccplay.errors import LabError

# --- the network namespace of a node: enter it, open sockets in it, set its sysctls ---------------

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace(msgspec.Struct, frozen=True):
    """The network namespace of the node ``name``, held open by process ``pid``."""

    name: str
    pid: int

    @property
    def path(self) -> str:
        """Path of the file through which setns(2), nsenter(1) and mnexec(1) find the namespace."""
        return f"/proc/{self.pid}/ns/net"

    @property
    def number(self) -> int:
        """Inode number, by which the kernel identifies the namespace."""
        return Path(self.path).stat().st_ino

    @contextmanager
    def entered(self) -> Generator[None]:
        """Move the calling thread into the namespace and back; never await inside.

        Raises ``LabError`` if the namespace is gone or may not be entered.
        """
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._set(self.path)
            try:
                yield
            finally:
                _setns(home)
        finally:
            os.close(home)

    def socket(self, family: int, kind: int, proto: int = 0) -> socket.socket:
        """Open a socket that belongs to the namespace, whichever process uses it."""
        with self.entered():
            return socket.socket(family, kind | socket.SOCK_CLOEXEC, proto)

    def sysctl(self, settings: Mapping[str, object]) -> None:
        """Write kernel parameters below ``net.``, which belong to the namespace.

        Raises ``LabError`` for one that the kernel lacks or refuses.
        """
        with self.entered():
            write_sysctls(settings)

    def interface_index(self, interface: str) -> int:
        """Return the index of an interface. Raises ``OSError`` if there is none."""
        with self.entered():
            return socket.if_nametoindex(interface)

    def _set(self, path: str) -> None:
        try:
            there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LabError(f"node {self.name}: its namespace is gone ({error})") from error
        try:
            _setns(there)
        except OSError as error:
            raise LabError(f"node {self.name}: can't enter its namespace ({error})") from error
        finally:
            os.close(there)


class LinkEnd(msgspec.Struct, frozen=True):
    """The sending or the receiving end of a link."""

    number: int
    """Number of the link, from 1."""
    link: str
    """Name of the link."""
    namespace: Namespace
    interface: str


def write_sysctls(settings: Mapping[str, object]) -> None:
    """Write sysctls of the calling thread's namespace.

    Raises ``LabError`` for one that the kernel lacks or refuses.
    """
    for key, value in settings.items():
        if not key.startswith("net."):
            raise LabError(f"sysctl {key}: only net. belongs to a network namespace")
        try:
            Path("/proc/sys", *key.split(".")).write_text(f"{value}\n", encoding="ascii")
        except OSError as error:
            raise LabError(f"sysctl {key}={value}: {error.strerror}") from error


def _setns(descriptor: int) -> None:
    # os.setns exists only since Python 3.12.
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


# --- firewall rules of a node, iptables(8), added and removed as whole lines of a table -----------

PROGRAM = "iptables-legacy-restore"
"""Name of the program that restores rules; the version for nftables may lack the netfilter queues
that legacy tables have."""


async def change_iptables(namespace: Namespace, lines: str) -> None:
    """Carry out lines in the format of iptables-save(8). Raises ``LabError``."""
    # A process started inside the namespace needs no nsenter(1).
    with namespace.entered():
        running = subprocess.Popen(  # noqa: ASYNC220 - starting it takes a millisecond
            iptables_argv(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    _, output = await asyncio.to_thread(running.communicate, lines)
    if running.returncode:
        text = output.strip().partition("\n")[0]
        raise LabError(f"node {namespace.name}: {PROGRAM}: {text}")


def iptables_argv() -> list[str]:
    """Return the command line that reads lines of iptables-save(8) and keeps all other rules."""
    return [find_tool(PROGRAM) or PROGRAM, "-w", "--noflush"]
