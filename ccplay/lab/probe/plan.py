"""Reads many sockets at once from a dump that has the same form as the one before.

The kernel lists the sockets of a namespace in the order of its hash table, so the next dump has
the same messages at the same places unless a socket opened, closed or changed its algorithm. A
``Plan`` stores these places. ``follow`` compares the cookies there, which identify a socket until
the machine reboots, and the headers of the attributes, for all sockets at once. A field is unpacked
only if it differs from that of the last sweep.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ccplay.lab.network.dumps import ends
from ccplay.lab.probe import algorithm_info
from ccplay.lab.probe.connection import Connection
from ccplay.lab.probe.layout import COOKIE, HEADER, PORTS, Layout, learn
from ccplay.lab.probe.matrix import Matrix, numbers
from ccplay.lab.probe.tcp_info import FIELDS, INFO_SIZE, in_units

LEAST = 64
"""Smallest number of wanted sockets for a plan; fewer are read faster one by one."""

Column: TypeAlias = list[int | None]
"""Values of a field, one per socket; None if unknown."""

Units: TypeAlias = Callable[[str, list[int]], Column]


class Group:
    """Wanted sockets whose messages have one length and the same attributes at the same places."""

    def __init__(self, layout: Layout, length: int, rest: int, *, own: bool) -> None:
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
            found = algorithm_info.places(self._matrix.row(0, self._own, self._own + 4))
            self._variables = [(name, code, self._own + at) for name, code, at in found]
            if found:
                self._fixed.append(self._own)
        for row, connection in enumerate(self.connections):
            connection.move(self, row)

    def meets(self, matrix: Matrix) -> bool:
        """Return whether another dump has the same sockets."""
        return all(matrix.column("I", at) == self._matrix.column("I", at) for at in self._fixed)

    def take(self, matrix: Matrix) -> None:
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
        change = algorithm_info.in_units
        own = {name: self._column(name, code, at, change) for name, code, at in self._variables}
        self._swept = self._matrix
        if self._own < self.length and not self._variables:
            own = algorithm_info.columns([self.own(row) for row in range(len(self.connections))])
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
        self.groups: list[Group] = []
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
            group.take(matrix)
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

    def _messages(self, data: bytes, group: Group) -> memoryview:
        """Return the messages of a group, one after another."""
        if len(group.spans) * group.length == len(data):
            return memoryview(data)
        return memoryview(b"".join([data[each] for each in group.spans]))

    def _sort(self, data: bytes, wanted: Mapping[bytes, Connection], *, own: bool) -> None:
        """Sort the messages into groups, and find the places of the others' cookies."""
        groups: dict[tuple[int, ...], Group] = {}
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
                    groups[shape] = Group(layout, length, rest, own=own)
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
