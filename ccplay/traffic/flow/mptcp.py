"""A long-lived transfer over Multipath TCP (RFC 8684): its subflows, and the programs that send.

The programs are ``transfer``. The kernel's userspace path manager (``net.mptcp.path_manager``,
``pm_type`` before Linux 6.15) leaves it to a program which subflows a connection has; here that is
the lab. It requests them by generic netlink, from addresses and source ports that ``path_manager``
has chosen by route lookups, so ports and names are known beforehand. A subflow is opened as soon as
the kernel allows it, once the connection's first data has been acknowledged. The kernel keeps a
subflow whose path is down and tries it at every retransmission timeout; a subflow that it has given
up is opened again under the next number. With the path manager in the kernel, subflows are found as
they open, and none is opened again.

Subflows are tracked and traced like any connection, and ``lab.connection`` combines theirs into one
``tcp_info`` for the flow, with the bytes that inet_diag reports of the MPTCP connection. In the
state a subflow is a ``Flow`` of kind ``subflow``, in ``flows`` but not in ``streams``, so no sum
counts it twice.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ccplay.errors import CcplayError, CommandError, UnsupportedError
from ccplay.lab import rtnl
from ccplay.lab.connection import Connection, Joint
from ccplay.lab.inet_diag import ATTRIBUTES, INET_DIAG_INFO
from ccplay.lab.netlink import DUMP_REQUEST, attribute, split
from ccplay.lab.netns import Namespace
from ccplay.lab.probe import Probe
from ccplay.lab.traffic import congestion, path_manager
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.path_manager import CANDIDATES, IPPROTO_MPTCP, Ends, PathManager, choose
from ccplay.lab.traffic.program import Hold, script_argv
from ccplay.lab.traffic.site import Site
from ccplay.model.base import Event
from ccplay.model.events import Log
from ccplay.model.network import Network
from ccplay.traffic.flow import (
    KERNEL_PATH_MANAGERS,
    StartFlow,
    SubflowEnded,
    SubflowStarted,
    conflict,
)
from ccplay.traffic.flow.tcp import RunningFlow

# --- MPTCP connections and their subflows, as inet_diag reports them ------------------------------
# Protocol: sock_diag(7), include/uapi/linux/inet_diag.h; attributes of a subflow and ``struct
# mptcp_info``: include/uapi/linux/mptcp.h.

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_INET_DIAG_REQ_PROTOCOL, _INET_DIAG_ULP_INFO = 3, 19
_ULP_NAME, _ULP_MPTCP = 1, 3
_TOKEN_LOC, _ID_LOC = 2, 10

_ESTABLISHED, _SYN_SENT, _CLOSE = 1, 2, 7
_OPEN_STATES = 1 << _ESTABLISHED | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11
"""Bits of the states in which a connection is open, which are those that a sweep reads."""

_ATTRIBUTE = struct.Struct("=HH")
_MESSAGE = struct.Struct("=IH10xBB2x2s2s4s12x4s")
"""Length and type; then family, state, both ports and both IPv4 addresses of ``inet_diag_msg``."""

_FLAGS, _TOKEN, _ACKED = 8, 12, 72
"""Offsets in ``struct mptcp_info``, whose ``mptcpi_bytes_acked`` came with Linux 6.5."""
_FALLBACK = 1
"""Bit of ``mptcpi_flags``: the connection fell back to TCP (RFC 8684, section 3.7)."""


class SubflowEnd(NamedTuple):
    """One end of a subflow."""

    ends: Ends
    token: int
    """Token of the subflow's connection at this end."""
    local_id: int
    """Identifier of the subflow's address at this end."""
    established: bool
    """Whether the handshake is complete."""


class MptcpSockets:
    """An open inet_diag socket of one namespace, for MPTCP."""

    def __init__(self, namespace: Namespace) -> None:
        self._socket = rtnl.NetlinkSocket(namespace, _NETLINK_SOCK_DIAG)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def subflows(self) -> list[SubflowEnd]:
        """Return all subflows in the namespace, even those that are opening. Raises ``OSError``."""
        found, ntoa = [], socket.inet_ntoa
        for head, attributes in self._dump(socket.IPPROTO_TCP, _OPEN_STATES | 1 << _SYN_SENT):
            values = split(attributes)
            if (ulp := values.get(_INET_DIAG_ULP_INFO)) is None:
                continue
            about = split(split(ulp).get(_ULP_MPTCP, b""))
            _, _, _, state, sport, dport, src, dst = head
            found.append(
                SubflowEnd(
                    Ends(ntoa(src), _port(sport), ntoa(dst), _port(dport)),
                    int.from_bytes(about.get(_TOKEN_LOC, b"")[:4], "little"),
                    about.get(_ID_LOC, b"\0")[0],
                    state != _SYN_SENT,
                )
            )
        return found

    def info(self, token: int) -> bytes:
        """Return ``struct mptcp_info`` of a connection, empty without one. Raises ``OSError``."""
        for _, attributes in self._dump(IPPROTO_MPTCP, _OPEN_STATES):
            info = split(attributes).get(INET_DIAG_INFO, b"")
            if info[_TOKEN : _TOKEN + 4] == struct.pack("=I", token):
                return info
        return b""

    def _dump(self, protocol: int, states: int) -> list[tuple[tuple[Any, ...], bytes]]:
        """Return the head of each message, unpacked, and its attributes."""
        # A number above 255 does not fit into the protocol's field.
        more = attribute(_INET_DIAG_REQ_PROTOCOL, struct.pack("=I", protocol))
        found = self._socket.dumped(
            struct.pack(
                "=IHHIIBBBxI48x",
                72 + len(more),
                _SOCK_DIAG_BY_FAMILY,
                DUMP_REQUEST,
                1,
                0,
                socket.AF_INET,
                min(protocol, socket.IPPROTO_RAW),
                1 << (INET_DIAG_INFO - 1),
                states,
            )
            + more
        )
        return [(_MESSAGE.unpack_from(each), each[ATTRIBUTES:]) for each in found]


def _port(packed: bytes) -> int:
    return int.from_bytes(packed, "big")


# --- the subflows of one MPTCP connection: chosen, opened, found, opened again when they are lost -

_LOOK_S = 0.1
"""Interval in seconds between checks of subflows that are all open."""
_TRY_S, _LONGEST_TRY_S = 0.5, 16.0
"""Seconds between attempts to open a subflow, at first and at most: they double each time one is
lost."""
_PATIENCE_S = 3.0
"""Seconds after which a connection without MPTCP is reported: its SYN may have been lost once."""


class _Wanted(msgspec.Struct):
    """A subflow that the connection should have."""

    ends: Ends
    name: str
    connection: Connection
    open: bool = False
    tried_at: float = float("-inf")
    again_s: float = _TRY_S
    """Seconds until the next attempt."""


class Subflows:
    """The subflows of a connection on which one host sends; ``close`` closes its sockets."""

    def __init__(
        self,
        flow: str,
        namespace: Namespace,
        probe: Probe,
        *,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        on_open: Callable[[], None],
        by_kernel: bool = False,
    ) -> None:
        """Prepare in the sender's ``namespace``. Raises ``OSError`` without MPTCP.

        ``on_open`` is called when a subflow has opened, before that is reported. ``by_kernel``: the
        kernel opens all but the first.
        """
        self._on_open, self._by_kernel = on_open, by_kernel
        self._flow, self._src = flow, namespace.name
        self._sockets, self._manager = MptcpSockets(namespace), PathManager(namespace)
        self._probe, self._emit, self._clock = probe, emit, clock
        self.joint = Joint(flow, self._acknowledged)
        self._token: int | None = None
        self._began, self._looked = clock(), float("-inf")
        self._numbers, self._fell_back = 0, False
        self._wanted: list[_Wanted] = []

    def track(self, ends: Sequence[Ends]) -> None:
        """Sample the connection and its subflows; the sender connects the first one."""
        self._probe.join(self.joint, self._src)
        self._wanted = [self._want(each) for each in ends]

    def untrack(self) -> None:
        """Stop sampling the connection and its subflows."""
        self._probe.untrack(self._flow)
        for each in self._wanted:
            self._probe.untrack(each.name)
        self._wanted.clear()

    def close(self) -> None:
        """Close the sockets."""
        self._sockets.close()
        self._manager.close()

    @property
    def open(self) -> list[tuple[str, Ends]]:
        """Names, addresses and ports of the open subflows."""
        return [(each.name, each.ends) for each in self._wanted if each.open]

    def look(self) -> None:
        """Record which subflows have opened or ended, and open missing ones."""
        now = self._clock()
        all_open = all(each.open for each in self._wanted)
        if self._fell_back or (all_open and now < self._looked + _LOOK_S):
            return
        self._looked = now
        try:
            found = {each.ends: each for each in self._sockets.subflows()}
        except OSError as error:
            self._log(f"flow {self._flow}: its subflows can't be read: {error.strerror}")
            return
        if self._token is None:
            self._find_token(found, now)
            return
        found = {ends: each for ends, each in found.items() if each.token == self._token}
        if self._by_kernel:
            self._take_in(found)
        for place, each in enumerate([*self._wanted]):
            there = found.get(each.ends)
            if there is not None and there.established and not each.open:
                self._opened(each, there)
            elif there is None and each.open:
                self._lost(each)
                if self._by_kernel:
                    self._wanted.remove(each)
                else:
                    self._wanted[place] = self._replacement(each)
            elif there is None and not self._by_kernel and now >= each.tried_at + each.again_s:
                each.tried_at = now
                # The kernel refuses until the connection is fully established.
                with suppress(OSError):
                    self._manager.create(self._token, place, each.ends)

    def _take_in(self, found: dict[Ends, SubflowEnd]) -> None:
        """Sample subflows that the kernel has opened."""
        known = {each.ends for each in self._wanted}
        for ends, there in found.items():
            if there.established and ends not in known:
                self._wanted.append(self._want(ends))

    def _find_token(self, found: dict[Ends, SubflowEnd], now: float) -> None:
        first = found.get(self._wanted[0].ends)
        if first is not None and first.established and first.token:
            self._token = first.token
            self._opened(self._wanted[0], first)
        elif now > self._began + _PATIENCE_S and self._wanted[0].connection.info:
            self._fall_back()

    def _want(self, ends: Ends) -> _Wanted:
        self._numbers += 1
        name = f"{self._flow}/{self._numbers}"
        connection = self._probe.track(name, self._src, sport=ends.sport, dport=ends.dport)
        self.joint.add(connection)
        return _Wanted(ends, name, connection)

    def _opened(self, each: _Wanted, there: SubflowEnd) -> None:
        each.open = True
        self._on_open()
        self._emit(
            SubflowStarted(
                t=self._clock(),
                flow=self._flow,
                subflow=each.name,
                src=there.ends.src,
                dst=there.ends.dst,
                sport=there.ends.sport,
            )
        )

    def _lost(self, each: _Wanted) -> None:
        """Report the end of a subflow."""
        self.joint.remove(each.connection)
        self._probe.untrack(each.name)
        self._emit(SubflowEnded(t=self._clock(), flow=self._flow, subflow=each.name))

    def _replacement(self, each: _Wanted) -> _Wanted:
        """Return the subflow that will replace a lost one."""
        next_one = self._want(each.ends)
        next_one.tried_at, next_one.again_s = self._clock(), min(2 * each.again_s, _LONGEST_TRY_S)
        return next_one

    def _acknowledged(self) -> int | None:
        info = b"" if self._token is None else self._sockets.info(self._token)
        if info and info[_FLAGS] & _FALLBACK:
            # Of such a connection the kernel counts the bytes sent.
            self._fall_back()
            return None
        return struct.unpack_from("=Q", info, _ACKED)[0] if len(info) >= _ACKED + 8 else None

    def _fall_back(self) -> None:
        if not self._fell_back:
            self._fell_back = True
            self._log(f"flow {self._flow} fell back to TCP after a lossy handshake; start it again")

    def _log(self, text: str) -> None:
        self._emit(Log(t=self._clock(), level="warning", text=text))


# --- the programs of one MPTCP connection ---------------------------------------------------------

_SCRIPT = Path(__file__).with_name("transfer.py")

_MOST = 8
"""Largest number of subflows of a connection besides the first (``MPTCP_PM_ADDR_MAX``)."""


class RunningMptcpFlow(RunningFlow):
    """A running flow over several paths: one connection with several subflows."""

    hold = Hold("connect")
    program = _SCRIPT.stem

    def __init__(self, command: StartFlow, site: Site, emit: Callable[[Event], None]) -> None:
        """Prepare a flow; ``emit`` receives its events."""
        super().__init__(command, site, emit)
        # None of them belongs to other traffic; the subflows send from some of them.
        self.sports = site.ports.senders(CANDIDATES)
        self._by_kernel = command.path_manager in KERNEL_PATH_MANAGERS
        self._ends = self._choose()
        self._cc = command.cc
        self._undo = ExitStack()

    async def start(self, entry: GateEntry) -> None:
        """Start both programs; ``FlowStarted`` follows when the first subflow is open.

        Raises ``LabError`` if a program does not start, ``UnsupportedError`` if the kernel has no
        MPTCP.
        """
        try:
            accepting = PathManager(self.receiver)
            self._undo.callback(accepting.close)
            accepting.accept(_MOST)
            if self._by_kernel:
                self._leave_to_kernel(accepting)
            self._subflows = Subflows(
                self.name,
                self.sender,
                self._probe,
                emit=self._emit,
                clock=self._clock,
                on_open=self._align,
                by_kernel=self._by_kernel,
            )
            self._undo.callback(self._subflows.close)
            self._undo.callback(self._subflows.untrack)
        except OSError as error:
            raise UnsupportedError(f"flow {self.name}: no MPTCP: {error.strerror}") from error
        await super().start(entry)

    def _leave_to_kernel(self, accepting: PathManager) -> None:
        """Set the limits of the kernel's path manager; make all but the first address endpoints."""
        opening = PathManager(self.sender)
        self._undo.callback(opening.close)
        opening.limit(self._command.subflows - 1)
        at_receiver = self._command.path_manager == "kernel-signal"
        manager, host = (accepting, self.dst) if at_receiver else (opening, self.src)
        others = _addresses(self._site.network, host)[1:]
        for address in others:
            manager.add_endpoint(address, self._command.path_manager)
        if not others and self._command.subflows > 1:
            text = (
                f"flow {self.name} gets no further subflow: {host} has one address, and the "
                "kernel's path manager opens one subflow per address; ndiffports needs only ports"
            )
            self._log("warning", text)

    def watch(self) -> None:
        """Process a sweep: subflows may have opened or ended."""
        super().watch()
        if self._reported and not self._over:
            self._subflows.look()

    def connections(self) -> Iterable[tuple[str, int, tuple[str, str] | None]]:
        """Return name, source port and addresses of each open subflow."""
        return [(name, ends.sport, (ends.src, ends.dst)) for name, ends in self._subflows.open]

    def switch(self, cc: str) -> None:
        """Change the congestion control of all subflows, including later ones."""
        super().switch(cc)
        self._cc = cc

    def _align(self) -> None:
        """Set the connection's algorithm on a new subflow, which begins with that of its route."""
        if self._cc is not None:
            with suppress(CcplayError):
                ports = [(self.sports[0], self.port)]
                congestion.switch(self._programs[-1].pid, ports, self._cc)

    def _track(self) -> None:
        self._subflows.track(self._ends)

    def _untrack(self) -> None:
        self._undo.close()

    def _choose(self) -> list[Ends]:
        command, network = self._command, self._site.network
        addresses = _addresses(network, self.src), _addresses(network, self.dst)
        return choose(
            command.path_manager,
            addresses,
            (self.sports, self.port),
            1 if self._by_kernel else command.subflows,
            lambda ends: self._site.path(self.src, self.dst, ends),
        )

    def _commands(self, address: str) -> tuple[list[str], list[str]]:
        command = self._command
        cc = congestion.require(command.cc) if command.cc else "-"
        ports = str(self.port), str(self.sports[0])
        manager = "kernel" if self._by_kernel else "userspace"
        sending = ["send", address, *ports, cc, command.scheduler or "-", manager]
        return script_argv(_SCRIPT, "receive", ports[0]), script_argv(_SCRIPT, *sending)


def _addresses(network: Network, host: str) -> list[str]:
    """Return the addresses of a host's links, beginning with the host's own address."""
    every = (link.address for link in network.links if link.src == host)
    return list(dict.fromkeys([network.address(host), *every]))


def require(command: StartFlow) -> None:
    """Raise ``UnsupportedError`` or ``CommandError`` if a flow can't use MPTCP as requested."""
    what = f"flow {command.flow}"
    if any(problem := conflict(command)):
        raise CommandError(f"{what}: {': '.join(problem)}")
    if not command.mptcp:
        return
    feature = path_manager.connections()
    if not feature.available:
        raise UnsupportedError(f"{what}: no mptcp: {feature.reason}; {feature.remedy}")
    names = [each.name for each in path_manager.schedulers()]
    if command.scheduler is not None and command.scheduler not in names:
        there = ", ".join(names)
        raise UnsupportedError(
            f"{what}: scheduler {command.scheduler!r} is not in this kernel (has: {there})"
        )
