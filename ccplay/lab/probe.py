"""Sweeps: ``tcp_info`` of every tracked socket, and the state of every bottleneck's queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from ccplay.bpf.loaded import library
from ccplay.lab.connection import OPTION_ECN, OPTIONS, UNKNOWN_RTT, Connection, Joint, in_units
from ccplay.lab.inet_diag import Column, DiagSocket, Plan, columns, joined
from ccplay.lab.inet_diag import variable_columns as own_columns
from ccplay.lab.netns import Namespace
from ccplay.lab.qdisc_counters import LinkQueues, QdiscSocket, Row
from ccplay.model.samples import QdiscSamples, Sweep, TcpSamples

_LONGEST_REST_S = 0.002
"""Longest time in seconds for which a reading counts as recent. It bounds a multiple of the
reading's duration, which is too long if the reading was interrupted."""


class Counters(NamedTuple):
    """The counters of a connection at its last reading."""

    cc: str
    bytes_acked: int
    """Acknowledged payload in bytes; tcp_info counts the SYN too."""
    total_retrans: int
    bytes_sent: int = 0
    """Payload sent in bytes, retransmissions included."""
    ecn: bool = False
    """Whether both ends agreed on ECN."""
    window: int = 0
    """Bytes that may be outstanding now: cwnd, or the outstanding bytes if they are more."""
    busy_s: float = 0.0
    """Seconds for which data was outstanding, in whole ticks of the kernel."""
    least_rtt_s: float = 0.0
    """Lowest RTT in seconds; 0 before the first measurement."""


class Probe:
    """Reads sockets and queues; netlink sockets stay open in every namespace it reads."""

    def __init__(
        self,
        namespaces: Mapping[str, Namespace],
        queues: Sequence[tuple[str, Namespace, str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to sample; ``namespaces`` are all nodes by name, ``queues`` the bottlenecks.

        Each queue is a link, the namespace of the node that sends on it, and its interface.
        ``clock`` returns the seconds of ``read_at``.
        """
        self._clock = clock
        self.after_sweep: list[Callable[[], None]] = []
        """Functions called in every sweep after all reading, before the sweep is returned."""
        self._namespaces = namespaces
        self._hosts: dict[str, _Host] = {}
        self._where: dict[str, tuple[_Host, Connection]] = {}
        self._routers: dict[str, _Router] = {}
        self.links: dict[str, LinkQueues] = {}
        """Queues of the sampled links."""
        self._delays: dict[str, Callable[[], int | None]] = {}
        for link, namespace, interface in queues:
            if namespace.name not in self._routers:
                self._routers[namespace.name] = _Router(QdiscSocket(namespace.socket))
            index = namespace.interface_index(interface)
            self.links[link] = LinkQueues(link)
            self._routers[namespace.name].queues[index] = self.links[link]

    def track(self, name: str, namespace: str, *, sport: int, dport: int) -> Connection:
        """Sample the connection with these ports, as seen from the sender, under ``name``.

        The first connection with these ports has the name; later ones are not sampled.
        """
        host, connection = self._host(namespace), Connection(name, sport, dport)
        host.socket.forget()
        host.wanted[connection.key] = connection
        self._where[name] = (host, connection)
        return connection

    def join(self, joint: Joint, namespace: str) -> None:
        """Sample several tracked connections of a node combined, under the name of ``joint``."""
        host = self._host(namespace)
        host.joints.append(joint)
        self._where[joint.name] = (host, joint)

    def _host(self, namespace: str) -> _Host:
        if namespace not in self._hosts:
            self._hosts[namespace] = _Host(DiagSocket(self._namespaces[namespace].socket))
        return self._hosts[namespace]

    def sample_delay(self, name: str, delay_us: Callable[[], int | None]) -> None:
        """Sample the delay that ``delay_us`` returns for the tracked ``name``, as an own value."""
        self._delays[name] = delay_us

    def untrack(self, name: str) -> None:
        """Stop sampling ``name``; nothing happens if it is not tracked."""
        self._delays.pop(name, None)
        if (found := self._where.pop(name, None)) is not None:
            host, connection = found
            if isinstance(connection, Joint):
                host.joints.remove(connection)
                return
            host.socket.forget()
            if host.wanted.get(connection.key) is connection:
                del host.wanted[connection.key]

    def counters(self, name: str) -> Counters | None:
        """Return the counters of ``name`` last read; None if it is not tracked or not yet open."""
        _, connection = self._where.get(name, (None, None))
        if connection is None or not connection.info:
            return None
        return Counters(
            cc=connection.algorithm,
            bytes_acked=max(connection.field("bytes_acked") - 1, 0),
            total_retrans=connection.field("total_retrans"),
            bytes_sent=connection.field("bytes_sent"),
            ecn=bool(connection.info[OPTIONS] & OPTION_ECN),
            window=max(connection.field("cwnd"), connection.field("unacked"))
            * connection.field("mss"),
            busy_s=connection.field("busy_time") * 1e-6,
            least_rtt_s=0.0
            if (rtt := connection.field("min_rtt_us")) == UNKNOWN_RTT
            else rtt * 1e-6,
        )

    def connections(self, name: str) -> list[Connection]:
        """Return the tracked connections of a flow or download, stream by stream."""
        return [
            each
            for _, each in self._where.values()
            if each.name.partition("/")[0] == name and not isinstance(each, Joint)
        ]

    def refresh(self, name: str) -> None:
        """Read the node of the tracked ``name`` now, so that ``counters`` are current."""
        host, _ = self._where[name]
        self._read(host)

    def glance(self, name: str) -> None:
        """Read the node of the tracked ``name`` unless that was done recently.

        Repeated calls thus spend about a fifth of the lab's time on reading.
        """
        host, _ = self._where[name]
        if self._clock() - host.read_at > min(4 * host.took_s, _LONGEST_REST_S):
            self._read(host)

    def read_at(self, name: str) -> float:
        """Return the time of ``clock`` at which the node of the tracked ``name`` was last read."""
        return self._where[name][0].read_at

    def sweep(self, t: float) -> Sweep:
        """Read everything once. Raises ``OSError`` if the kernel refuses."""
        alone: list[Connection] = []
        plans: list[Plan] = []
        for host in self._hosts.values():
            if host.wanted:
                found = self._read(host)
                if (plan := host.socket.plan) is None:
                    alone += found
                else:
                    plans.append(plan)
                alone += [each for each in host.joints if each.info]
        samples, own = self._samples(alone, plans)
        qdisc, queue_own = self._qdisc_samples()
        sweep = Sweep(t=t, tcp=samples, qdisc=qdisc, own=own, queue_own=queue_own)
        for callback in tuple(self.after_sweep):
            callback()
        return sweep

    def _samples(
        self, alone: list[Connection], plans: Sequence[Plan]
    ) -> tuple[TcpSamples | None, dict[str, Column]]:
        """Return the samples of connections, and the own values of their algorithms."""
        if not alone and not plans:
            return None, {}
        parts = [(len(plan.found), *plan.sweep()) for plan in plans]
        if alone:
            known = [each.own for each in alone]
            own = own_columns(known) if any(known) else {}
            fields = {name: in_units(name, counts) for name, counts in columns(alone).items()}
            parts.insert(0, (len(alone), fields, own))
        fields, own = joined(parts)
        names = [each.name for each in alone]
        algorithms = [each.algorithm for each in alone]
        for plan in plans:
            names += plan.names
            algorithms += plan.algorithms
        samples = TcpSamples(flow=names, cc=algorithms, **cast("Any", fields))
        if library.shown or self._delays:
            self._add_shown(own, alone + [each for plan in plans for each in plan.found])
        return samples, own

    def _read(self, host: _Host) -> list[Connection]:
        begun = self._clock()
        found = host.socket.dump(host.wanted)
        for joint in host.joints:
            joint.read()
        host.read_at = self._clock()
        host.took_s = host.read_at - begun
        return found

    def _add_shown(self, own: dict[str, Column], found: Sequence[Connection]) -> None:
        """Add the variables that BPF programs show in a map, and the delay of monitored flows."""
        for at, each in enumerate(found if library.shown else ()):
            if (shown := library.shown.get(each.cc)) is not None and each.cookie is not None:
                for name, value in shown.read(each.cookie).items():
                    own.setdefault(name, [None] * len(found))[at] = value
        if self._delays:
            own["monitor_one_way_delay_us"] = [
                self._delays[each.name]() if each.name in self._delays else None for each in found
            ]

    def close(self) -> None:
        """Close every netlink socket."""
        for host in self._hosts.values():
            host.socket.close()
        for router in self._routers.values():
            router.socket.close()

    def _qdisc_samples(self) -> tuple[QdiscSamples | None, dict[str, list[int | None]]]:
        """Return a row for each queue, and the own values of disciplines."""
        rows: list[Row] = []
        own: list[Mapping[str, int]] = []
        for router in self._routers.values():
            found = router.socket.dump(router.queues)
            for index, queues in router.queues.items():
                if (now := found.get(index)) is not None:
                    rows += queues.rows(now)
                    own += queues.own(now)
        if not rows:
            return None, {}
        fields = [list(column) for column in zip(*rows, strict=True)]
        samples = QdiscSamples(**dict(zip(QdiscSamples.__struct_fields__, fields, strict=True)))
        names = dict.fromkeys(name for each in own for name in each)
        return samples, {name: [each.get(name) for each in own] for name in names}


class _Host(msgspec.Struct):
    """A node with connections to read, by their key, and with combined ones."""

    socket: DiagSocket
    wanted: dict[bytes, Connection] = msgspec.field(default_factory=dict)
    joints: list[Joint] = msgspec.field(default_factory=list)
    read_at: float = 0.0
    took_s: float = 0.0


class _Router(msgspec.Struct):
    """A node with bottlenecks: its queues by interface index."""

    socket: QdiscSocket
    queues: dict[int, LinkQueues] = msgspec.field(default_factory=dict)
