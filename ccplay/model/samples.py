"""Measurements: sweeps of all flows and queues, and traces of single flows."""

from __future__ import annotations

from ccplay.model.base import CaState, Count, Event, Row, Value, Variable


class TcpSamples(Value, frozen=True):
    """``struct tcp_info`` of every sending socket in one sweep: one array per field.

    Names, units and meanings are those of include/uapi/linux/tcp.h; see ``ss(8)`` too.
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

    A link with classes has a row of kind ``htb`` with the sums, and a row for each class, called
    ``LINK CLASS``: ``r->h2 bulk``. When a discipline is replaced, the kernel's counters restart;
    these continue.
    """

    link: list[str]
    kind: list[str]
    backlog: list[Count]
    qlen: list[Count]
    drops: list[Count]
    ecn_marks: list[Count | None]
    """Number of ECN marks; None if neither the discipline nor the link, in its own row, counts
    them."""
    overlimits: list[Count]
    requeues: list[Count]
    bytes: list[Count]
    packets: list[Count]


class Sweep(Event, frozen=True):
    """One tick of the probe: all flows and all queues, read at once."""

    tcp: TcpSamples | None = None
    qdisc: QdiscSamples | None = None
    own: dict[Variable, list[Count | None]] = {}
    """Variables of congestion controls: by name a list over the flows of ``tcp``.

    None where a flow's algorithm has no such variable, or does not know it. The kernel's are those
    of include/uapi/linux/inet_diag.h, in its units but for ``bbr_bw_bps``, which is in bits per
    second; gains are of 256, ``dctcp_alpha`` is of 1024. The names of BPF programs' own say their
    unit; see ``variables``. Of a flow that is monitored there is ``monitor_one_way_delay_us``
    beside them: the mean of what has arrived since the sweep before.
    """
    queue_own: dict[Variable, list[Count | None]] = {}
    """Statistics of disciplines: by name a list over the queues of ``qdisc``.

    None where a queue's discipline has no such variable. A name is the discipline's, then the
    kernel's word, then the unit: those of ``tc_codel_xstats`` and others in
    include/uapi/linux/pkt_sched.h. The row with the sums of a link's classes has none.
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
    """The sweeps of some seconds, the first at ``t``, as recordings keep them; see ``blocks``.

    All of them have the same flows and links, with the same algorithms and disciplines.
    """

    after_us: list[Count]
    """Microseconds between each sweep and the next."""
    tcp: TcpRows | None = None
    qdisc: QdiscRows | None = None
    own: dict[Variable, list[Row]] = {}
    queue_own: dict[Variable, list[Row]] = {}


class TraceSamples(Event, frozen=True):
    """Segments that came to the sender, nearly all of them ACKs, the first of them at ``t``.

    What the connection holds at the tracepoint ``tcp:tcp_probe``, where one has come and has no
    effect yet; there is none any more once either side has ended. The values of a field are
    one row, as those of a flow are in ``Sweeps``.
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
    """A traced connection has entered another state; the tracepoint ``tcp:tcp_cong_state_set``.

    The first such event of a trace has the state at its first segment.
    """

    flow: str
    ca_state: CaState
    """Congestion state, numbered as in ``TcpSamples``."""
