"""The path manager of MPTCP: whether the kernel has it, and which subflows it opens.

Protocol: Documentation/netlink/specs/mptcp_pm.yaml, include/uapi/linux/mptcp_pm.h.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ccplay.bpf.support import feature
from ccplay.lab import rtnl
from ccplay.lab.netlink import ACK, HEADER, NESTED, REQUEST, attribute, split
from ccplay.lab.netns import Namespace
from ccplay.model.values import Feature

# --- requests to the path manager of MPTCP by generic netlink: open subflows, and accept them -----

_NETLINK_GENERIC = 16
_GENERIC = struct.Struct("=BBxx")

_CONTROLLER, _GET_FAMILY = 0x10, 3
_FAMILY_ID, _FAMILY_NAME, _GROUPS = 1, 2, 7
_GROUP_NAME, _GROUP_ID = 1, 2
_EVENTS = b"mptcp_pm_events\0"
_NAME, _VERSION = b"mptcp_pm\0", 1

_ADD_ADDR, _SET_LIMITS, _SUBFLOW_CREATE = 1, 5, 10
_ADDR, _RCV_ADD_ADDRS, _SUBFLOWS, _TOKEN, _ADDR_REMOTE = 1, 2, 3, 4, 6
_FAMILY, _ID, _ADDR4, _PORT, _FLAGS = 1, 2, 3, 5, 6

ENDPOINT_FLAGS = {"kernel-signal": 1, "kernel-subflow": 2}
"""Flags of endpoints, ``MPTCP_PM_ADDR_FLAG_SIGNAL`` and ``_SUBFLOW``, by the path manager that uses
them."""


class Ends(NamedTuple):
    """Addresses and ports of a subflow, from its sender's point of view."""

    src: str
    sport: int
    dst: str
    dport: int


class PathManager:
    """The path manager of one namespace. Every method raises ``OSError`` if the kernel refuses."""

    def __init__(self, namespace: Namespace) -> None:
        self._socket = rtnl.NetlinkSocket(namespace, _NETLINK_GENERIC)
        name = attribute(_FAMILY_NAME, _NAME)
        answer = self._transact(_CONTROLLER, REQUEST, _GET_FAMILY, 1, name)
        self._about = split(answer[HEADER.size + _GENERIC.size :])
        (self._family,) = struct.unpack_from("=H", self._about[_FAMILY_ID])

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def create(self, token: int, local_id: int, ends: Ends) -> None:
        """Ask the connection with ``token`` to open a subflow from the address ``local_id``.

        The connection must use the path manager in userspace, and be fully established.
        """
        self._ask(
            _SUBFLOW_CREATE,
            _address(_ADDR, ends.src, identifier=local_id, port=ends.sport),
            attribute(_TOKEN, struct.pack("=I", token)),
            _address(_ADDR_REMOTE, ends.dst, port=ends.dport),
        )

    def limit(self, subflows: int) -> None:
        """Let the kernel's path manager open and accept up to ``subflows`` besides the first."""
        number = struct.pack("=I", subflows)
        self._ask(_SET_LIMITS, attribute(_RCV_ADD_ADDRS, number), attribute(_SUBFLOWS, number))

    def add_endpoint(self, address: str, manager: str) -> None:
        """Make an address of this host an endpoint of the kernel's path manager, ip-mptcp(8).

        The endpoint applies to all connections, and stays. ``manager`` is ``kernel-signal``, which
        announces the address to the other end, or ``kernel-subflow``, which opens a subflow from
        it.
        """
        try:
            self._ask(_ADD_ADDR, _address(_ADDR, address, flags=ENDPOINT_FLAGS[manager]))
        except rtnl.NetlinkError as error:
            # An earlier connection may have added it.
            if error.errno != errno.EEXIST:
                raise

    def accept(self, subflows: int) -> None:
        """Accept up to ``subflows`` besides the first on connections to this host, until ``close``.

        The path manager in the kernel accepts them up to its limit, the one in userspace while some
        process receives its events; each connection uses the one that its host has when it opens.
        """
        self.limit(subflows)
        for group in split(self._about.get(_GROUPS, b"")).values():
            about = split(group)
            if about.get(_GROUP_NAME) == _EVENTS:
                (identifier,) = struct.unpack_from("=I", about[_GROUP_ID])
                self._socket.join(identifier)

    def _ask(self, command: int, *attributes: bytes) -> None:
        flags = REQUEST | ACK
        self._transact(self._family, flags, command, _VERSION, *attributes)

    def _transact(self, kind: int, flags: int, command: int, version: int, *parts: bytes) -> bytes:
        body = _GENERIC.pack(command, version) + b"".join(parts)
        # The socket fills in the sequence number.
        return self._socket.ask(HEADER.pack(HEADER.size + len(body), kind, flags, 0, 0) + body)


def _address(
    kind: int, address: str, *, identifier: int | None = None, port: int = 0, flags: int = 0
) -> bytes:
    parts = [
        attribute(_FAMILY, struct.pack("=H", socket.AF_INET)),
        attribute(_ADDR4, socket.inet_aton(address)),
    ]
    if identifier is not None:
        parts.append(attribute(_ID, bytes([identifier])))
    if port:
        # In the byte order of the host, unlike everywhere else.
        parts.append(attribute(_PORT, struct.pack("=H", port)))
    if flags:
        parts.append(attribute(_FLAGS, struct.pack("=I", flags)))
    return attribute(kind | NESTED, b"".join(parts))


# --- the choice of subflows: pairs of addresses and ports whose paths share least -----------------

CANDIDATES = 32
"""Number of source ports from which those of a connection's subflows are chosen."""


def choose(
    manager: str,
    addresses: tuple[Sequence[str], Sequence[str]],
    ports: tuple[Sequence[int], int],
    count: int,
    path: Callable[[Ends], Sequence[str]],
) -> list[Ends]:
    """Return up to ``count`` subflows, the first of them between the first addresses.

    ``manager`` is ``ndiffports``, which varies the source port between the same two addresses, or
    ``fullmesh``, which has one subflow for each pair of addresses. ``addresses`` are those of
    sender and receiver, ``ports`` the source ports to choose from and the receiver's port. Each
    further subflow shares the fewest links with those before it; ``path`` returns the links of a
    subflow.
    """
    sports, dport = ports
    src, dst = addresses
    if manager == "fullmesh":
        pairs = ((one, other) for one in src for other in dst)
        every = [
            Ends(one, sport, other, dport)
            for sport, (one, other) in zip(sports, pairs, strict=False)
        ]
    else:
        every = [Ends(src[0], sport, dst[0], dport) for sport in sports]
    chosen = [every.pop(0)]
    taken = {each: frozenset(path(each)) for each in (*chosen, *every)}
    while every and len(chosen) < count:
        best = min(every, key=lambda each: sum(len(taken[each] & taken[one]) for one in chosen))
        every.remove(best)
        chosen.append(best)
    return chosen


# --- multipath TCP in this kernel, found by trying, and its schedulers ----------------------------

IPPROTO_MPTCP = 262
"""Protocol number of MPTCP, which Python's ``socket`` does not define on every system."""

_SYSCTLS = Path("/proc/sys/net/mptcp")
_SUMMARY = "flows over several paths: one connection of several subflows (RFC 8684)"
_SCHEDULERS = {"default": "the subflow that is expected to deliver first"}
"""Effect of each of Linux's own schedulers in one line."""


def connections() -> Feature:
    """Return whether flows can use MPTCP, by a trial in the namespace of the caller."""
    return feature("mptcp", _SUMMARY, _lack())


def _lack() -> tuple[str, str]:
    """Return why there is no MPTCP, and the remedy; both empty if there is."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as error:
        if error.errno in (errno.EPROTONOSUPPORT, errno.EINVAL):
            return "this kernel has no MPTCP", "a kernel with CONFIG_MPTCP has it (Linux 5.19)"
        if error.errno == errno.ENOPROTOOPT:
            return "MPTCP is disabled", "sysctl net.mptcp.enabled=1"
        return error.strerror or str(error), "allow MPTCP sockets"
    if not any((_SYSCTLS / name).exists() for name in ("path_manager", "pm_type")):
        reason = "this kernel does not let programs manage the paths of MPTCP"
        return reason, "Linux 5.19 or newer does"
    return "", ""


def schedulers() -> Iterator[Feature]:
    """Yield the schedulers of this kernel; none without MPTCP."""
    if not connections().available:
        return
    try:
        found = (_SYSCTLS / "available_schedulers").read_text(encoding="ascii").split()
    except OSError:
        # The list came with Linux 6.10; before, only the one in use could be read.
        found = ["default"]
    for name in found:
        yield feature(name, _SCHEDULERS.get(name, "not part of Linux"), None)
