"""One sweep: ``tcp_info`` of every tracked socket and the state of every bottleneck's queue."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ccplay.lab.inet_diag import FIELDS, FIRST_FIELD, DiagSocket, Row, port_key
from ccplay.lab.netns import Namespace
from ccplay.lab.qdisc_stats import Monotonic, QdiscSocket
from ccplay.model import INFINITE_SSTHRESH, QdiscSamples, Sweep, TcpSamples

_INFINITE_RATE = (1 << 64) - 1
"""``~0``: nothing limits the socket's pacing."""

_UNKNOWN_RTT = (1 << 32) - 1
"""``~0``: no RTT has been measured yet."""

_COLUMN = {name: FIRST_FIELD + index for index, (name, _, _) in enumerate(FIELDS)}


class Counters(NamedTuple):
    """What a connection has come to."""

    bytes_acked: int
    total_retrans: int


class Probe:
    """Reads sockets and queues; netlink sockets stay open in every namespace it reads."""

    def __init__(
        self,
        namespaces: Sequence[Namespace],
        queues: Sequence[tuple[str, Namespace, str]],
    ) -> None:
        """``queues`` are the bottlenecks: link, the node whose egress it is, its interface."""
        self.after_sweep: list[Callable[[], None]] = []
        """Called in every sweep when all is read, before the sweep is returned."""
        self._namespaces = {namespace.name: namespace for namespace in namespaces}
        self._hosts: dict[str, _Host] = {}
        self._where: dict[str, tuple[_Host, _Tracked]] = {}
        self._routers: dict[str, _Router] = {}
        for link, namespace, interface in queues:
            if namespace.name not in self._routers:
                self._routers[namespace.name] = _Router(QdiscSocket(namespace.socket))
            with namespace.entered():
                index = socket.if_nametoindex(interface)
            self._routers[namespace.name].queues[index] = (link, Monotonic())

    def track(self, name: str, namespace: str, *, sport: int, dport: int) -> None:
        """Sample the connection with these ports, seen from the node that sends, as ``name``.

        The first connection with the ports keeps the name; a later one does not get it.
        """
        if namespace not in self._hosts:
            self._hosts[namespace] = _Host(DiagSocket(self._namespaces[namespace].socket))
        host = self._hosts[namespace]
        tracked = _Tracked(name, port_key(sport, dport))
        host.tracked[tracked.key] = tracked
        self._where[name] = (host, tracked)

    def untrack(self, name: str) -> None:
        """Stop sampling ``name``; nothing happens where it is not tracked."""
        found = self._where.pop(name, None)
        if found is not None:
            host, tracked = found
            if host.tracked.get(tracked.key) is tracked:
                del host.tracked[tracked.key]

    def counters(self, name: str) -> Counters | None:
        """Return what the last sweep that saw ``name`` read, None where none has seen it."""
        row = self._where[name][1].row
        if row is None:
            return None
        return Counters(row[_COLUMN["bytes_acked"]], row[_COLUMN["total_retrans"]])

    def refresh(self, name: str) -> None:
        """Read the node of ``name`` now, so that ``counters`` are of this moment."""
        self._where[name][0].read([], [], [])

    def sweep(self, t: float) -> Sweep:
        """Read everything once. Raises ``OSError`` where the kernel refuses."""
        names: list[str] = []
        ccs: list[str] = []
        rows: list[Row] = []
        for host in self._hosts.values():
            if host.tracked:
                host.read(names, ccs, rows)
        sweep = Sweep(t=t, tcp=_tcp_samples(names, ccs, rows), qdisc=self._qdisc_samples())
        for callback in tuple(self.after_sweep):
            callback()
        return sweep

    def close(self) -> None:
        """Close every netlink socket."""
        for host in self._hosts.values():
            host.socket.close()
        for router in self._routers.values():
            router.socket.close()

    def _qdisc_samples(self) -> QdiscSamples | None:
        rows = []
        for router in self._routers.values():
            found = router.socket.dump(router.queues)
            for index, (link, counters) in router.queues.items():
                if (now := found.get(index)) is None:
                    continue
                size, packets, drops, requeues, overlimits, marks = counters.add(now)
                rows.append(
                    (
                        link,
                        now.kind,
                        now.backlog,
                        now.qlen,
                        drops,
                        None if now.ecn_marks is None else marks,
                        overlimits,
                        requeues,
                        size,
                        packets,
                    )
                )
        if not rows:
            return None
        columns = [list(column) for column in zip(*rows, strict=True)]
        return QdiscSamples(**dict(zip(QdiscSamples.__struct_fields__, columns, strict=True)))


@dataclass(slots=True)
class _Tracked:
    """A connection that is sampled."""

    name: str
    key: bytes
    cookie: int | None = None
    row: Row | None = None
    """What was read last."""


@dataclass(slots=True)
class _Host:
    """A node with tracked connections, by ``port_key``."""

    socket: DiagSocket
    tracked: dict[bytes, _Tracked] = field(default_factory=dict)
    cc_names: dict[bytes, str] = field(default_factory=dict)

    def read(self, names: list[str], ccs: list[str], rows: list[Row]) -> None:
        """Read all tracked connections and add what was found to the lists."""
        cc_names = self.cc_names
        for tracked, row, cc in zip(*self.socket.dump(self.tracked), strict=True):
            if tracked.cookie != row[0]:
                if tracked.cookie is not None:
                    continue
                tracked.cookie = row[0]
            tracked.row = row
            if cc not in cc_names:
                cc_names[cc] = cc.decode()
            names.append(tracked.name)
            ccs.append(cc_names[cc])
            rows.append(row)


@dataclass(slots=True)
class _Router:
    """A node with bottlenecks: link and counters by interface index."""

    socket: QdiscSocket
    queues: dict[int, tuple[str, Monotonic]] = field(default_factory=dict)


def _tcp_samples(names: list[str], ccs: list[str], rows: list[Row]) -> TcpSamples | None:
    """Turn rows into columns, in the units of ``TcpSamples``."""
    if not rows:
        return None
    columns = [list(column) for column in zip(*rows, strict=True)]
    fields: dict[str, list[int]] = {name: columns[at] for name, at in _COLUMN.items()}
    thresholds = [None if each >= INFINITE_SSTHRESH else each for each in fields.pop("ssthresh")]
    fields["pacing_rate"] = [
        0 if each == _INFINITE_RATE else each * 8 for each in fields["pacing_rate"]
    ]
    fields["delivery_rate"] = [each * 8 for each in fields["delivery_rate"]]
    fields["min_rtt_us"] = [0 if each == _UNKNOWN_RTT else each for each in fields["min_rtt_us"]]
    return TcpSamples(flow=names, cc=ccs, ssthresh=thresholds, **fields)
