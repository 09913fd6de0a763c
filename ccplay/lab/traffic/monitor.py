"""The flow monitor: BPF programs at the netfilter hooks of hosts, and their counters of each flow.

The programs are attached by BPF links (Linux 6.4, net/netfilter/nf_bpf_link.c), which end with the
process that holds them.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from pathlib import Path
from typing import NamedTuple

from ccplay.bpf.objects import Programs
from ccplay.errors import UnsupportedError
from ccplay.lab.network.netns import Namespace

SOURCE = Path(__file__).parent / "monitor.bpf.c"

_PROGRAM_NETFILTER, _ATTACH_NETFILTER = 32, 45
"""Values of ``enum bpf_prog_type`` and ``enum bpf_attach_type`` for netfilter."""

_LINK_CREATE = 28
"""Command of ``enum bpf_cmd``; libbpf supports it for netfilter only since 1.3."""

_SYSCALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
"""Number of bpf(2) by machine; libc has no function for it."""

_NFPROTO_IPV4, _LOCAL_IN, _LOCAL_OUT = 2, 1, 3
_libc = ctypes.CDLL(None, use_errno=True)


class Stream(NamedTuple):
    """One direction of a connection, identified by ports that nothing else uses."""

    protocol: int
    """Transport protocol: ``socket.IPPROTO_TCP`` or ``IPPROTO_UDP``."""
    sport: int
    dport: int


class Account(ctypes.Structure):
    """Counters of a flow: ``struct account`` of the program, which documents them."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            *("sent", "reached", "received", "bytes"),
            *("timed", "delays", "least", "greatest"),
        )
    )
    sent: int
    reached: int
    received: int
    bytes: int
    timed: int
    delays: int
    least: int
    greatest: int


class _LinkCreate(ctypes.Structure):
    """``link_create`` of ``union bpf_attr``."""

    _fields_ = tuple(
        (name, ctypes.c_uint32)
        for name in (
            *("program", "target", "attach_type", "flags"),
            *("family", "hook", "priority", "hook_flags"),
        )
    )


class Monitor:
    """BPF programs, loaded once for all flows, which count nothing until a flow is added."""

    def __init__(self, image: bytes) -> None:
        """Load the result of ``build(SOURCE)``. Raises ``LoadError`` if the kernel refuses it."""
        kind = (_PROGRAM_NETFILTER, _ATTACH_NETFILTER)
        self._programs = Programs(image, "the flow monitor", kind)
        self._accounts = self._programs.map("accounts")
        self._links: dict[tuple[int, int], int] = {}

    def watch(self, sender: Namespace, receiver: Namespace, stream: Stream) -> None:
        """Count the packets of a connection from now on.

        Raises ``UnsupportedError`` if programs can't be attached to netfilter's hooks here.
        """
        out, come = self._programs.descriptors
        self._attach(sender, _LOCAL_OUT, out)
        self._attach(receiver, _LOCAL_IN, come)
        self._programs.put(self._accounts, _key(stream), bytes(Account()))

    def read(self, stream: Stream) -> Account:
        """Return the counters of a connection since it was added."""
        account = Account()
        self._programs.look_up(self._accounts, _key(stream), ctypes.byref(account))
        return account

    def forget(self, stream: Stream) -> None:
        """Stop counting a connection."""
        self._programs.remove(self._accounts, _key(stream))

    def close(self) -> None:
        """Remove the programs from all hosts."""
        for link in self._links.values():
            os.close(link)
        self._programs.close()

    def _attach(self, namespace: Namespace, hook: int, program: int) -> None:
        """Attach a program to a hook of a host, unless it is attached already."""
        if (namespace.pid, hook) in self._links:
            return
        wanted = _LinkCreate(
            program=program, attach_type=_ATTACH_NETFILTER, family=_NFPROTO_IPV4, hook=hook
        )
        number = _SYSCALLS.get(platform.machine())
        if number is None:
            raise UnsupportedError(f"not supported on {platform.machine()}")
        with namespace.entered():
            size = ctypes.sizeof(wanted)
            link: int = _libc.syscall(number, _LINK_CREATE, ctypes.byref(wanted), size)
        if link < 0:
            reason = os.strerror(ctypes.get_errno())
            raise UnsupportedError(
                f"this kernel can't attach BPF programs to netfilter ({reason}); "
                "one with CONFIG_NETFILTER_BPF_LINK has it"
            )
        self._links[namespace.pid, hook] = link


def _key(stream: Stream) -> bytes:
    """Return ``struct flow`` for a connection."""
    ports = struct.pack("!HH", stream.sport, stream.dport)
    return ports + struct.pack("=I", stream.protocol)
