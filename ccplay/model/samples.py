"""Measurements: sweeps of all flows and queues, and traces of single flows."""

from __future__ import annotations

from ccplay.model.base import CaState, Count, Event, Row, Value, Variable


class TcpSamples(Value, frozen=True):
    """``struct tcp_info`` of every sending socket in one sweep: one array per field.

    Names, units and meanings are those of include/uapi/linux/tcp.h; see also ``ss(8)``.
    """

    flow: list[str]
    cc: list[str]
    ca_state: list[CaState]
    """Congestion state: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss."""
    cwnd: list[Count]
    ssthresh: list[Count | None]
    srtt_us: list[Count]
    rttvar_us: list[Count]
    min_rtt_us: list[Count]
    """Minimum RTT in µs; 0 before the first measurement."""
    mss: list[Count]
    unacked: list[Count]
    lost: list[Count]
    retrans: list[Count]
    total_retrans: list[Count]
    pacing_rate: list[Count]
    """Pacing rate in bits per second; 0 if there is no limit."""
    delivery_rate: list[Count]
    """Delivery rate in bits per second."""
    bytes_acked: list[Count]
    bytes_sent: list[Count]
    delivered_ce: list[Count]


class QdiscSamples(Value, frozen=True):
    """Every sampled queue in one sweep: one array per field. Counters only grow.

    A link with classes has a row of kind ``htb`` with the sums, and a row for each class, named
    ``LINK CLASS``: ``r->h2 bulk``. When a discipline is replaced, the kernel's counters restart;
    these continue.
    """

    link: list[str]
    kind: list[str]
    backlog: list[Count]
    qlen: list[Count]
    drops: list[Count]
    ecn_marks: list[Count | None]
    """Number of ECN marks by the discipline and, in a link's own row, by the link; None if neither
    counts them."""
    overlimits: list[Count]
    requeues: list[Count]
    bytes: list[Count]
    packets: list[Count]


class Sweep(Event, frozen=True):
    """One tick of the probe: all flows and all queues, read at once."""

    tcp: TcpSamples | None = None
    qdisc: QdiscSamples | None = None
    own: dict[Variable, list[Count | None]] = {}
    """Own values of algorithms: lists in the order of ``tcp.flow``, by the variable's name.

    A value is None if the flow's algorithm does not have or does not know the variable. Variables
    of the kernel's algorithms are those of include/uapi/linux/inet_diag.h in its units, except
    ``bbr_bw_bps``, which is in bits per second; BBR's gains are multiples of 1/256,
    ``dctcp_alpha`` of 1/1024. Variables of BPF programs have names that end in the unit; see
    ``variables``. For monitored flows, ``monitor_one_way_delay_us`` is the mean one-way delay in µs
    of the packets that arrived since the previous sweep.
    """
    queue_own: dict[Variable, list[Count | None]] = {}
    """Own values of disciplines: lists in the order of ``qdisc.link``, by the variable's name.

    A value is None if the queue's discipline does not have the variable, and in the row with the
    sums of a link's classes. A name consists of the discipline, the kernel's word, as in
    ``tc_codel_xstats`` of include/uapi/linux/pkt_sched.h and similar structs, and the unit.
    """


class TcpRows(Value, frozen=True):
    """``TcpSamples`` over several sweeps: for each field one row per flow."""

    flow: list[str]
    cc: list[str]
    fields: dict[str, list[Row]]


class QdiscRows(Value, frozen=True):
    """``QdiscSamples`` over several sweeps: for each field one row per queue."""

    link: list[str]
    kind: list[str]
    fields: dict[str, list[Row]]


class Sweeps(Event, frozen=True):
    """The sweeps of some seconds, the first at ``t``, packed as in recordings.

    All these sweeps have the same flows and links, with the same algorithms and disciplines.
    """

    after_us: list[Count]
    """Microseconds between each sweep and the next."""
    tcp: TcpRows | None = None
    qdisc: QdiscRows | None = None
    own: dict[Variable, list[Row]] = {}
    queue_own: dict[Variable, list[Row]] = {}


class TraceSamples(Event, frozen=True):
    """The state of a connection at each segment that its sender received, the first one at ``t``.

    Nearly all of these segments are ACKs. The state is read at the tracepoint ``tcp:tcp_probe``,
    when a segment has arrived and is not yet processed; the trace ends once either side closes the
    connection. Each field is one row, as for a flow in ``Sweeps``.
    """

    flow: str
    """Name of the connection: ``flow/2`` is stream 2."""
    after_us: list[Count]
    """Microseconds between each segment and the next."""
    cwnd: Row
    ssthresh: Row
    srtt_us: Row
    snd_wnd: Row
    """Receiver's advertised window in bytes."""


class CaStateChanged(Event, frozen=True):
    """A traced connection has entered another congestion state (``tcp:tcp_cong_state_set``).

    The first such event of a trace has the state at the trace's first segment.
    """

    flow: str
    ca_state: CaState
    """Congestion state, numbered as in ``TcpSamples``."""
