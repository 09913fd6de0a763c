"""``struct tcp_info`` of every wanted TCP socket of one namespace, by one dump of the kernel.

Protocol: sock_diag(7), include/uapi/linux/inet_diag.h; ``tcp_info``: include/uapi/linux/tcp.h.
For speed, no ``tcp_info`` is unpacked alone: it is sliced at offsets learned from the first message
and checked in each later one, and ``columns`` reads each field of all sockets at once. With many
sockets, a ``Plan`` avoids the slices, too.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ccplay.lab import netlink
from ccplay.lab.connection import FIELDS, INFO_SIZE, Connection, in_units
from ccplay.lab.netlink import ATTRIBUTE, attribute, ends, walk
from ccplay.lab.netns import Namespace
from ccplay.lab.rtnl import NetlinkSocket

# --- variables of a kernel congestion control, reported besides ``tcp_info`` ----------------------
# They are in one of three attributes, include/uapi/linux/inet_diag.h, which the algorithm chooses
# (``get_info`` in net/ipv4/tcp_*.c); a request for the attribute of Vegas returns any of them.

ASKED = 1 << (3 - 1)
"""Bit of ``INET_DIAG_VEGASINFO`` in ``idiag_ext``, which requests these attributes."""

REPORTING = frozenset(
    (b"bbr", b"bbr2", b"bbr3", b"dctcp", b"vegas", b"nv", b"yeah", b"illinois", b"westwood")
)
"""Algorithms of Linux with a ``get_info``; BPF programs can't have one."""

_UNKNOWN_RTT = 0x7FFFFFFF
"""RTT that Vegas reports before it has measured one."""
_UNBEGUN = 0
"""Value that BBR itself never has: the socket was read before the algorithm had started."""


class _Field(NamedTuple):
    name: str
    factor: int = 1
    unknown: tuple[int, ...] = ()


_FIELDS: dict[tuple[int, str], tuple[_Field, ...]] = {
    (3, "IIII"): (
        _Field("vegas_enabled"),
        _Field("vegas_rttcnt"),
        _Field("vegas_rtt_us", unknown=(_UNKNOWN_RTT,)),
        _Field("vegas_minrtt_us", unknown=(_UNKNOWN_RTT,)),
    ),
    (9, "HHIII"): (
        _Field("dctcp_enabled"),
        _Field("dctcp_ce_state"),
        _Field("dctcp_alpha"),
        _Field("dctcp_ab_ecn"),
        _Field("dctcp_ab_tot"),
    ),
    (16, "QIII"): (
        # The kernel reports bytes per second.
        _Field("bbr_bw_bps", factor=8),
        _Field("bbr_min_rtt_us", unknown=(_UNBEGUN, (1 << 32) - 1)),
        _Field("bbr_pacing_gain", unknown=(_UNBEGUN,)),
        _Field("bbr_cwnd_gain", unknown=(_UNBEGUN,)),
    ),
}
"""Fields of INET_DIAG_VEGASINFO, DCTCPINFO and BBRINFO, by attribute and ``struct`` code."""

_LAYOUTS = {kind: (struct.Struct(f"=4x{code}"), fields) for (kind, code), fields in _FIELDS.items()}
_BY_NAME = {field.name: field for fields in _FIELDS.values() for field in fields}
_HEADS = {ATTRIBUTE.pack(layout.size, kind): kind for kind, (layout, _) in _LAYOUTS.items()}


def places(head: bytes) -> list[tuple[str, str, int]]:
    """Return the variables of an attribute by its first four bytes: name, ``struct`` code, offset.

    The list is empty for an unknown attribute.
    """
    if head not in _HEADS:
        return []
    kind = _HEADS[head]
    code = next(code for known, code in _FIELDS if known == kind)
    offsets = [struct.calcsize(f"=4x{code[:at]}") for at in range(len(code))]
    names = [field.name for field in _LAYOUTS[kind][1]]
    return list(zip(names, code, offsets, strict=True))


def variables_in_units(name: str, counts: Sequence[int]) -> list[int | None]:
    """Convert a variable of several sockets from the kernel's unit to that of ``Sweep.own``."""
    return _values(_BY_NAME[name], counts)


def variable_columns(attributes: Sequence[bytes]) -> dict[str, list[int | None]]:
    """Return the variables of several sockets by name, each as a list with one value per socket.

    ``attributes`` are those after ``INET_DIAG_CONG``, by socket. A value is None if the socket has
    no such variable.
    """
    members: dict[bytes, list[int]] = {}
    known = [each if not each or each[:4] in _HEADS else _plain(each) for each in attributes]
    for at, each in enumerate(known):
        if each:
            members.setdefault(each[:4], []).append(at)
    found: dict[str, list[int | None]] = {}
    for head, those in members.items():
        layout, fields = _LAYOUTS[_HEADS[head]]
        rows = layout.iter_unpack(b"".join([known[at][: layout.size] for at in those]))
        for field, counts in zip(fields, zip(*rows, strict=True), strict=True):
            found[field.name] = _spread(_values(field, counts), those, len(known))
    return found


def _values(field: _Field, counts: Sequence[int]) -> list[int | None]:
    if any(each in counts for each in field.unknown):
        return [None if each in field.unknown else each * field.factor for each in counts]
    return [*counts] if field.factor == 1 else [each * field.factor for each in counts]


def _spread(values: list[int | None], places: Sequence[int], size: int) -> list[int | None]:
    if len(places) == size:
        return values
    found: list[int | None] = [None] * size
    for at, value in zip(places, values, strict=True):
        found[at] = value
    return found


def _plain(attributes: bytes) -> bytes:
    """Return the first known attribute, cut to its known length; empty if there is none."""
    for kind, (begin, end) in walk(attributes, 0, len(attributes)).items():
        if kind in _LAYOUTS:
            known = _LAYOUTS[kind][0].size - ATTRIBUTE.size
            if end - begin < known:
                break
            return attribute(kind, attributes[begin : begin + known])
    return b""


# --- offsets in the messages of inet_diag, learned from one message and checked in the others -----
# Protocol: sock_diag(7), include/uapi/linux/inet_diag.h.

INET_DIAG_INFO, INET_DIAG_CONG = 2, 4

ATTRIBUTES = 16 + 72
"""Offset of the attributes: after ``nlmsghdr`` and ``inet_diag_msg``."""

PORTS, COOKIE = 16 + 4, 16 + 44
"""Offsets of the ports and the cookie of ``inet_diag_sockid`` in a message."""

HEADER = struct.Struct("=IH")


class MessageLayout:
    """Offsets of ``INET_DIAG_INFO`` and, after it, ``INET_DIAG_CONG`` in a message."""

    __slots__ = ("header", "info", "size", "unpack")

    def __init__(self, info: int, info_size: int, name: int) -> None:
        """``info`` and ``name`` are the offsets of the two payloads in the message."""
        self.info = info
        self.header = INET_DIAG_INFO << 16 | (info_size + 4)
        """Length and type before ``info``, read as one number."""
        self.size = name
        """Number of bytes that ``unpack`` reads; the name of the congestion control follows."""
        self.unpack = struct.Struct(
            f"=IH{PORTS - 6}x4s{COOKIE - PORTS - 4}xQ{info - 4 - COOKIE - 8}xI"
            f"{INFO_SIZE}s{name - 4 - info - INFO_SIZE}xHH"
        ).unpack_from
        """Function that returns length and type of the message, ports, cookie, ``header``,
        ``tcp_info``, and length and type of ``INET_DIAG_CONG``."""


FIRST = MessageLayout(ATTRIBUTES + 4, INFO_SIZE, ATTRIBUTES + 4 + INFO_SIZE + 4)
"""MessageLayout assumed before the first message."""


def learn(data: bytes, position: int, length: int) -> MessageLayout:
    """Return the layout of one message, found by walking its attributes.

    Raises ``OSError`` if the kernel's ``tcp_info`` is too short (before Linux 4.19).
    """
    payloads = walk(data, position + ATTRIBUTES, position + length)
    info, info_end = payloads.get(INET_DIAG_INFO, (0, 0))
    name, _ = payloads.get(INET_DIAG_CONG, (0, 0))
    if info_end - info < INFO_SIZE or name < info:
        raise OSError(errno.EPROTO, "inet_diag: tcp_info is too short; Linux 4.19 is needed")
    return MessageLayout(info - position, info_end - info, name - position)


# --- reads a field of many consecutive messages of equal length at once ---------------------------

Code: TypeAlias = Literal["B", "H", "I", "Q"]
_SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8}


class Matrix:
    """Rows of ``length`` bytes in ``data``; ``length`` is a multiple of four, as in netlink."""

    __slots__ = ("data", "length")

    def __init__(self, data: memoryview, length: int) -> None:
        self.data = data
        self.length = length

    def column(self, code: str, at: int) -> tuple[memoryview, ...]:
        """Return the numbers at byte ``at`` of each row.

        They are one view of all rows, or two, of the even and of the odd rows, if a row's length is
        not a multiple of the number's size: a view can only step by whole elements.
        """
        size = _SIZES[code]
        if self.length % size == 0:
            return (_every(self.data, code, size, at, self.length),)
        step = 2 * self.length
        odd = _every(self.data[self.length :], code, size, at, step)
        return (_every(self.data, code, size, at, step), odd)

    def row(self, number: int, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end`` of a row."""
        begin = number * self.length
        return bytes(self.data[begin + start : begin + end])


def _every(data: memoryview, code: str, size: int, at: int, step: int) -> memoryview:
    """Return the numbers at byte ``at`` and at every ``step`` bytes after it."""
    skew = at % size
    whole = data[skew : skew + (len(data) - skew) // size * size]
    return whole.cast(code)[at // size :: step // size]  # type: ignore[call-overload,no-any-return]


def numbers(column: tuple[memoryview, ...]) -> list[int]:
    """Return the numbers of a column, row by row."""
    if len(column) == 1:
        return column[0].tolist()
    even, odd = column
    found = [0] * (len(even) + len(odd))
    found[::2] = even.tolist()
    found[1::2] = odd.tolist()
    return found


# --- reads many sockets at once from a dump that has the same form as the one before --------------
# The kernel lists the sockets of a namespace in the order of its hash table, so the next dump has
# the same messages at the same places unless a socket opened, closed or changed its algorithm. A
# ``Plan`` stores these places. ``follow`` compares the cookies there, which identify a socket until
# the machine reboots, and the headers of the attributes, for all sockets at once. A field is
# unpacked only if it differs from that of the last sweep.

LEAST = 64
"""Smallest number of wanted sockets for a plan; fewer are read faster one by one."""

Column: TypeAlias = list[int | None]
"""Values of a field, one per socket; None if unknown."""

Units: TypeAlias = Callable[[str, list[int]], Column]


class SocketGroup:
    """Wanted sockets whose messages have one length and the same attributes at the same places."""

    def __init__(self, layout: MessageLayout, length: int, rest: int, *, own: bool) -> None:
        """``rest`` is the offset after the algorithm's name.

        ``own`` is whether the algorithm's variables, which follow it, were requested.
        """
        self.connections: list[Connection] = []
        self.spans: list[slice] = []
        """Places of the sockets' messages in the dump."""
        self.length = length
        self._info = layout.info
        self._own = rest if own else length
        # The cookie, the headers of both attributes, and the whole name of the algorithm.
        self._fixed = [COOKIE, COOKIE + 4, layout.info - 4, *range(layout.size - 4, rest, 4)]
        self._fields = [(name, code, layout.info + at) for name, code, at in FIELDS]
        self._variables: list[tuple[str, str, int]] = []
        self._matrix = self._swept = Matrix(memoryview(b""), length)
        self._columns: dict[str, Column] = {}

    def begin(self, data: memoryview) -> None:
        """Start with the messages from which the plan was made."""
        self._matrix = Matrix(data, self.length)
        if self._own < self.length:
            found = places(self._matrix.row(0, self._own, self._own + 4))
            self._variables = [(name, code, self._own + at) for name, code, at in found]
            if found:
                self._fixed.append(self._own)
        for row, connection in enumerate(self.connections):
            connection.move(self.info, self.own, row)

    def meets(self, matrix: Matrix) -> bool:
        """Return whether another dump has the same sockets."""
        return all(matrix.column("I", at) == self._matrix.column("I", at) for at in self._fixed)

    def set_reading(self, matrix: Matrix) -> None:
        """Make ``matrix`` the last reading."""
        self._matrix = matrix

    def info(self, row: int) -> bytes:
        """Return the ``tcp_info`` of a connection."""
        return self._matrix.row(row, self._info, self._info + INFO_SIZE)

    def own(self, row: int) -> bytes:
        """Return the attributes with the variables of a connection's algorithm."""
        return self._matrix.row(row, self._own, self.length)

    def sweep(self) -> tuple[dict[str, Column], dict[str, Column]]:
        """Return ``FIELDS`` and the algorithms' variables by name, in the units of a ``Sweep``."""
        fields = {name: self._column(name, code, at, in_units) for name, code, at in self._fields}
        change = variables_in_units
        own = {name: self._column(name, code, at, change) for name, code, at in self._variables}
        self._swept = self._matrix
        if self._own < self.length and not self._variables:
            own = variable_columns([self.own(row) for row in range(len(self.connections))])
        return fields, own

    def _column(self, name: str, code: str, at: int, change: Units) -> Column:
        """Return a column, unpacked again only if it differs from that of the last sweep."""
        column = self._matrix.column(code, at)
        if name not in self._columns or column != self._swept.column(code, at):
            self._columns[name] = change(name, numbers(column))
        return self._columns[name]


class Plan:
    """Places of the messages in a dump, and their connections."""

    def __init__(
        self, datagrams: Sequence[bytes], wanted: Mapping[bytes, Connection], *, own: bool
    ) -> None:
        """Make a plan from ``datagrams``, a whole dump read just now; the last datagram ends it.

        ``own`` is whether the algorithms' variables were requested.
        """
        self.sizes = [len(each) for each in datagrams]
        self.groups: list[SocketGroup] = []
        self._others: list[slice] = []
        """Places of the cookies of sockets that are not wanted."""
        data = b"".join(datagrams[:-1])
        self._sort(data, wanted, own=own)
        self._cookies = [data[each] for each in self._others]
        self.found = [each for group in self.groups for each in group.connections]
        self.names = [each.name for each in self.found]
        self.algorithms = [each.algorithm for each in self.found]
        for group in self.groups:
            group.begin(self._messages(data, group))

    def follow(self, datagrams: Sequence[bytes]) -> bool:
        """Read another dump; return False if its sockets or places differ."""
        if [len(each) for each in datagrams] != self.sizes or not ends(datagrams[-1]):
            return False
        data = b"".join(datagrams[:-1])
        if self._others and [data[each] for each in self._others] != self._cookies:
            return False
        messages = [Matrix(self._messages(data, each), each.length) for each in self.groups]
        pairs = list(zip(self.groups, messages, strict=True))
        if not all(group.meets(matrix) for group, matrix in pairs):
            return False
        for group, matrix in pairs:
            group.set_reading(matrix)
        return True

    def end(self) -> None:
        """Store the last reading in each connection."""
        for each in self.found:
            each.settle()

    def sweep(self) -> tuple[dict[str, Column], dict[str, Column]]:
        """Return ``FIELDS`` and the algorithms' variables of ``found`` in the units of a ``Sweep``.

        The caller must not modify the columns: unchanged ones are returned again.
        """
        return joined([(len(each.connections), *each.sweep()) for each in self.groups])

    def _messages(self, data: bytes, group: SocketGroup) -> memoryview:
        """Return the messages of a group, one after another."""
        if len(group.spans) * group.length == len(data):
            return memoryview(data)
        return memoryview(b"".join([data[each] for each in group.spans]))

    def _sort(self, data: bytes, wanted: Mapping[bytes, Connection], *, own: bool) -> None:
        """Sort the messages into groups, and find the places of the others' cookies."""
        groups: dict[tuple[int, ...], SocketGroup] = {}
        position = 0
        while position < len(data):
            length, _ = HEADER.unpack_from(data, position)
            key = data[position + PORTS : position + PORTS + 4]
            cookie = slice(position + COOKIE, position + COOKIE + 8)
            connection = wanted.get(key)
            if connection is None or connection.cookie != _number(data[cookie]):
                self._others.append(cookie)
            else:
                layout = learn(data, position, length)
                rest = layout.size + (len(connection.cc) + 4 & ~3)
                begin = position + rest
                head = _number(data[begin : begin + 4]) if own and rest < length else 0
                shape = (length, layout.info, layout.size, rest, head)
                if shape not in groups:
                    groups[shape] = SocketGroup(layout, length, rest, own=own)
                groups[shape].connections.append(connection)
                groups[shape].spans.append(slice(position, position + length))
            position += length
        self.groups = [*groups.values()]


def _number(data: bytes) -> int:
    return int.from_bytes(data, sys.byteorder)


def joined(
    parts: Sequence[tuple[int, Mapping[str, Column], Mapping[str, Column]]],
) -> tuple[dict[str, Column], dict[str, Column]]:
    """Join the columns of several groups, each given as its size, fields and variables.

    A variable is None in the groups that do not have it.
    """
    if len(parts) == 1:
        return {**parts[0][1]}, {**parts[0][2]}
    fields = {
        name: [value for _, found, _ in parts for value in found[name]] for name, _, _ in FIELDS
    }
    names = dict.fromkeys(name for _, _, own in parts for name in own)
    return fields, {
        name: [value for size, _, own in parts for value in own.get(name) or [None] * size]
        for name in names
    }


# --- ``struct tcp_info`` of every wanted TCP socket of one namespace, by one dump of the kernel ---

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_SOCK_DESTROY = 21

_STATES = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11
"""States that may have unacknowledged data: ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK,
CLOSING."""


def _request(extensions: int, family: int = socket.AF_INET) -> bytes:
    return struct.pack(
        "=IHHIIBBBxI48x",
        72,
        _SOCK_DIAG_BY_FAMILY,
        netlink.DUMP_REQUEST,
        1,
        0,
        family,
        socket.IPPROTO_TCP,
        extensions,
        _STATES,
    )


_ALWAYS = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
_REQUEST, _REQUEST_OWN = _request(_ALWAYS), _request(_ALWAYS | ASKED)


def destroy_connections(namespace: Namespace) -> None:
    """Abort the TCP connections of a namespace, even those whose process has ended.

    Such an orphan retransmits for many seconds over a slow link, and keeps its namespace and its
    algorithm loaded. Raises ``OSError``; a kernel needs ``CONFIG_INET_DIAG_DESTROY``.
    """
    with NetlinkSocket(namespace, _NETLINK_SOCK_DIAG) as diag:
        # Sockets of servers that listen for both versions of IP belong to version 6.
        for family in (socket.AF_INET, socket.AF_INET6):
            head = netlink.HEADER.pack(72, _SOCK_DESTROY, netlink.REQUEST | netlink.ACK, 0, 0)
            head += struct.pack("=BBHI", family, socket.IPPROTO_TCP, 0, _STATES)
            found = diag.dumped(_request(0, family))
            diag.request([head + each[20:68] for each in found], "connections")


def has_connections(namespace: Namespace, port: int) -> bool:
    """Return whether connections to ``port`` may have unacknowledged data. Raises ``OSError``."""
    with NetlinkSocket(namespace, _NETLINK_SOCK_DIAG) as diag:
        return any(each[22:24] == port.to_bytes(2, "big") for each in diag.dumped(_request(0)))


def columns(connections: Iterable[Connection]) -> dict[str, list[int]]:
    """Return ``tcp_info.FIELDS`` by name, each as a list with one value per connection."""
    infos = memoryview(b"".join([each.info for each in connections]))
    # A ``Matrix`` would take half as long again, in every sweep.
    views = {"B": (infos.cast("B"), 1), "I": (infos.cast("I"), 4), "Q": (infos.cast("Q"), 8)}
    found = {}
    for name, code, offset in FIELDS:
        view, size = views[code]
        found[name] = view[offset // size :: INFO_SIZE // size].tolist()
    return found


class DiagSocket:
    """An open inet_diag socket of one namespace."""

    def __init__(self, open_socket: Callable[[int, int, int], socket.socket]) -> None:
        """``open_socket`` is ``Namespace.socket``; ``socket.socket`` for the current one."""
        self._socket = open_socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        netlink.set_timeout(self._socket)
        self._layout = FIRST
        self._own = False
        """Whether to request variables of algorithms, because the last dump had an algorithm with
        some."""
        self.plan: Plan | None = None
        """Plan by which dumps are read; None unless successive dumps have the same form."""
        self._sizes: list[int] = []

    def dump(self, wanted: Mapping[bytes, Connection]) -> list[Connection]:
        """Read the connections in ``wanted``, which are by ``key``; return those that exist.

        Call ``forget`` first if ``wanted`` has changed. Raises ``OSError``.
        """
        self._socket.send(_REQUEST_OWN if self._own else _REQUEST)
        if self.plan is None:
            return self._walk([], wanted)
        datagrams = self._receive(self.plan.sizes)
        if self.plan.follow(datagrams):
            return self.plan.found
        self.forget()
        return self._walk(datagrams, wanted)

    def forget(self) -> None:
        """Unpack each socket separately in the next dump."""
        if self.plan is not None:
            self.plan.end()
        self.plan, self._sizes = None, []

    def _receive(self, sizes: Sequence[int]) -> list[bytes]:
        """Receive datagrams of these sizes; stop after the first of another size."""
        receive, datagrams = self._socket.recv, list[bytes]()
        for size in sizes:
            datagrams.append(data := receive(1 << 16))
            if len(data) != size:
                break
        return datagrams

    def _walk(self, datagrams: list[bytes], wanted: Mapping[bytes, Connection]) -> list[Connection]:
        """Unpack each message of a dump; ``datagrams`` are those already received."""
        found: list[Connection] = []
        going = True
        for data in datagrams:
            going = self._unpack_datagram(data, wanted, found)
        while going:
            datagrams.append(data := self._socket.recv(1 << 16))
            going = self._unpack_datagram(data, wanted, found)
        asked = self._own
        self._own = not REPORTING.isdisjoint([each.cc for each in found])
        if len(found) >= LEAST:
            self._foresee(datagrams, wanted, asked=asked)
        return found

    def _foresee(
        self, datagrams: Sequence[bytes], wanted: Mapping[bytes, Connection], *, asked: bool
    ) -> None:
        """Make a plan if the dump has the same form as the one before."""
        before, self._sizes = self._sizes, [len(each) for each in datagrams]
        if self._sizes == before and asked == self._own and ends(datagrams[-1]):
            self.plan = Plan(datagrams, wanted, own=asked)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _unpack_datagram(
        self, data: bytes, wanted: Mapping[bytes, Connection], found: list[Connection]
    ) -> bool:
        """Unpack one datagram; return whether more follow."""
        layout, own = self._layout, self._own
        unpack, size, header = layout.unpack, layout.size, layout.header
        get, add = wanted.get, found.append
        position, end = 0, len(data)
        while position < end:
            if end - position >= size:
                length, kind, key, cookie, got, info, cc_size, cc_type = unpack(data, position)
            else:
                length, kind, got = *HEADER.unpack_from(data, position), 0
            if got != header or cc_type != INET_DIAG_CONG:
                if kind != _SOCK_DIAG_BY_FAMILY:
                    return netlink.continues(data, position, kind, "inet_diag")
                layout = self._layout = learn(data, position, length)
                unpack, size, header = layout.unpack, layout.size, layout.header
                continue
            connection = get(key)
            if connection is not None and connection.cookie != cookie:
                connection = connection if connection.meets(cookie) else None
            if connection is not None:
                begin = position + size
                connection.lone_info = info
                connection.cc = data[begin : begin + cc_size - 5]
                attributes = data[begin + (cc_size - 1 & ~3) : position + length] if own else b""
                connection.lone_own = attributes
                add(connection)
            # Attributes are padded, so every length is a multiple of four already.
            position += length
        return True
