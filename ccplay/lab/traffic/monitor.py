"""The flow monitor: BPF programs at the netfilter hooks of hosts that count packets of flows.

The programs are attached by BPF links (Linux 6.4, net/netfilter/nf_bpf_link.c), which end with the
process that holds them.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ccplay.bpf.libbpf import Programs
from ccplay.bpf.support import lack
from ccplay.errors import CcplayError, UnsupportedError
from ccplay.lab.netns import Namespace
from ccplay.model.values import Monitored

# --- the flow monitor: BPF programs at netfilter hooks of hosts count each flow -------------------

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


# --- flows whose packets are followed from host to host on request --------------------------------


class MonitoredStreams:
    """The connections of one flow while they are monitored."""

    def __init__(self, monitor: Monitor, streams: Sequence[Stream]) -> None:
        self._monitor, self._streams = monitor, streams
        self._before = dict.fromkeys(streams, (0, 0))

    def so_far(self, *, drained: bool = False) -> Monitored:
        """Return the measurements of all connections together.

        Once the network is ``drained``, packets that have not arrived are lost, not in flight.
        """
        found = [self._monitor.read(each) for each in self._streams]
        timed = [each for each in found if each.timed]
        packets = sum(each.timed for each in timed)
        return Monitored(
            sent=sum(each.sent if drained else each.reached for each in found),
            received=sum(each.received for each in found),
            received_bytes=sum(each.bytes for each in found),
            delay_mean_us=sum(each.delays for each in timed) / packets if packets else None,
            delay_min_us=min((each.least for each in timed), default=None),
            delay_max_us=max((each.greatest for each in timed), default=None),
        )

    def delay_us(self, stream: int) -> int | None:
        """Return a connection's mean delay in µs since the last call; None without packets."""
        one = self._streams[stream]
        account = self._monitor.read(one)
        timed, delays = self._before[one]
        self._before[one] = (account.timed, account.delays)
        new = account.timed - timed
        return round((account.delays - delays) / new) if new else None

    def end(self) -> None:
        """Stop monitoring the connections."""
        for each in self._streams:
            self._monitor.forget(each)


class Monitoring:
    """The monitor of all flows, created when the first flow needs it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """Prepare; ``warn`` receives, once, the reason why monitoring is impossible here."""
        self._warn = warn
        self._monitor: Monitor | None = None
        self._refusal = ""
        self._loading = asyncio.Lock()

    async def watch(
        self, sender: Namespace, receiver: Namespace, streams: Sequence[Stream]
    ) -> MonitoredStreams | None:
        """Monitor connections that are about to open.

        Returns None if that is impossible; the flow then runs without a monitor.
        """
        if self._refusal:
            return None
        try:
            async with self._loading:
                if self._monitor is None:
                    self._monitor = await asyncio.to_thread(_load)
            for each in streams:
                self._monitor.watch(sender, receiver, each)
        except CcplayError as error:
            self._refusal = str(error)
            self._warn(f"one-way delays are not measured: {error}")
            return None
        return MonitoredStreams(self._monitor, streams)

    def close(self) -> None:
        """Remove the monitor."""
        if self._monitor is not None:
            self._monitor.close()


def _load() -> Monitor:
    """Build the monitor's programs unless they are built, and load them."""
    if (missing := lack()) is not None:
        raise UnsupportedError(f"{missing.reason}; {missing.remedy}")
    # Imported late: labs without monitors do not need it.
    from ccplay.bpf.build import build  # noqa: PLC0415

    image, _ = build(SOURCE)
    return Monitor(image)
