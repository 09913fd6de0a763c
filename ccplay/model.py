"""Commands, events and the values that they carry: all that crosses the lab's pipe.

Units, unless a name says otherwise: rates in bits per second, backlog in bytes, qlen and
limits in packets, cwnd and ssthresh in segments; names ending in ``_us`` are microseconds and
in ``_s`` seconds. ``t`` is seconds on the lab's monotonic clock since ``Hello``.

A link has two directions, ``r1->r2`` and ``r2->r1``; its name ``r1-r2`` stands for both, and
``bottleneck`` for both directions of the link under study.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

Option: TypeAlias = bool | int | float | str
"""The value of one parameter of a queue discipline."""

BOTTLENECK = "bottleneck"
"""The name under which scenario files and commands may speak of the link under study."""

SAMPLE_HZ = (10.0, 200.0)
"""The least and the most sweeps a second."""

TRAFFIC_KINDS = ("flows", "downloads", "pings", "udp")
"""Words that stand for all traffic of a kind where a class says what it takes."""

CAPTURE_LIMITS = (10_000, 1_000_000_000)
"""The least and the most bytes that a capture's file may be bounded to."""

MOST_MARK = 10_000
"""A link marks from no more packets on."""

_MOST = 1 << 53

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
"""A number that the kernel counted or measured. What is greater comes from no kernel."""

Step: TypeAlias = Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]
"""What has to be added to a count to have the next one."""

Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Seconds since ``Hello``, to the microsecond; at most 30 years."""

Duration: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
"""A length of time, in microseconds or seconds as its name says."""

Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[^/\s]+$", max_length=200)]
"""What traffic is called; ``/`` parts a flow from the number of its stream."""

Variable: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
"""What an algorithm calls a number of its own, with a unit suffix."""

MOST_VARIABLES = 16
"""A flow has no more of its own."""

INFINITE_SSTHRESH = 0x7FFFFFFF
"""``TCP_INFINITE_SSTHRESH`` of include/net/tcp.h; it travels as None."""


class Value(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False
):
    """Something that a command or an event carries."""


# --- values ---------------------------------------------------------------------------------


class Qdisc(Value, frozen=True):
    """A queue discipline and its parameters, as ``tc-KIND(8)`` names them.

    ``limit`` is in packets for pfifo, in bytes for bfifo and tbf; times are in microseconds.
    """

    kind: str
    options: dict[str, Option] = {}


class TrafficClass(Value, frozen=True):
    """A queue of its own for some of a link's traffic, with a share of the rate; tc-htb(8)."""

    name: str
    share: float
    """Of the link's rate, 0 to 1: what it is sure of. It borrows what the others leave."""
    traffic: list[str] = []
    """Names of flows, downloads, pings and UDP, or all of a kind: one of ``TRAFFIC_KINDS``."""
    qdisc: Qdisc | None = None
    """Its queue; None takes the link's own."""


class LinkSetting(Value, frozen=True):
    """What one direction of a link does to packets. None leaves a field as it is."""

    rate: int | None = None
    """Bits per second on the wire, Ethernet header included; 0 is unlimited."""
    delay_us: int | None = None
    """Added propagation delay, one way."""
    jitter_us: int | None = None
    """Half the width of the uniform variation around the delay."""
    loss: float | None = None
    """Probability, 0 to 1, that a packet is lost after the queue."""
    qdisc: Qdisc | None = None
    """The queue in front of the link, where it has no classes."""
    classes: list[TrafficClass] | None = None
    """Several queues that share the rate; the last takes what no class names. Empty: one queue."""
    mtu: int | None = None
    """Bytes of the largest IP packet, of both directions at once; 1500 where nothing is said."""
    mark: int | None = None
    """Mark packets of ECN flows with CE while so many full packets wait in front of the link.

    They are counted as bytes, each of them as the MTU and its Ethernet header: with offloads one
    packet of the queue is up to 45 of the wire. 0 marks none. Disciplines that mark do so besides.
    """


class Topology(Value, frozen=True):
    """What to build: ``linear`` (h1 - r - h2) or ``dumbbell`` with 1 to 8 ``pairs``."""

    kind: str = "dumbbell"
    pairs: int = 2


class Node(Value, frozen=True):
    """A host or router of the network."""

    name: str
    role: str
    """``sender``, ``receiver`` or ``router``; a sender is where traffic starts by default."""
    address: str
    """The IPv4 address by which others reach it."""


class Link(Value, frozen=True):
    """One direction of a link: packets leave ``src`` by its ``interface``."""

    name: str
    src: str
    dst: str
    interface: str


class Network(Value, frozen=True):
    """What was built. The first of ``bottlenecks`` is the one the screen shows first."""

    topology: Topology
    nodes: list[Node]
    links: list[Link]
    bottlenecks: list[str]
    """Names of directed links whose queue is sampled."""


class Feature(Value, frozen=True):
    """Something that this machine has or lacks: an algorithm, a discipline, a tool."""

    name: str
    available: bool
    summary: str = ""
    """One line of what it is."""
    reason: str = ""
    """Why it is missing."""
    remedy: str = ""
    """What to do about it."""
    required: bool = False
    """A lab can't run without it."""


class Monitored(Value, frozen=True):
    """What was seen of a flow's packets between IP in its sending and IP in its receiving host.

    A packet is a whole one: put together from its fragments, with offloads each segment of a long
    one; one sent again is another. Those without payload do not count.
    """

    sent: Count
    """How many: where some are still under way, until the newest that arrived."""
    received: Count
    received_bytes: Count
    """Of payload."""
    delay_mean_us: Duration | None
    """One way, queues included, of those that arrived; None where none did."""
    delay_min_us: Duration | None
    delay_max_us: Duration | None


class Capabilities(Value, frozen=True):
    """What the lab's kernel and machine offer, and what they lack with reason and remedy."""

    kernel: str
    privilege: str
    """``root`` or ``rootless``."""
    congestion_controls: list[Feature]
    qdiscs: list[Feature]
    delay_engines: list[Feature]
    tools: list[Feature]
    classifiers: list[Feature] = []
    """What puts packets into classes."""
    markers: list[Feature] = []
    """What marks packets with CE in front of any discipline."""
    monitors: list[Feature] = []
    """What follows packets from host to host."""
    tracepoints: list[Feature] = []
    """What tells of every acknowledgement of a flow."""
    cpus: int = 0
    """How many the lab may use; 0 where it did not say."""
    python: str = ""
    """The version that the lab runs on."""


# --- commands -------------------------------------------------------------------------------


def _words(name: str) -> str:
    """Spell a class name as scenario files do: ``StartFlow`` -> ``start-flow``."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


class Command(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="do",
    tag=_words,
):
    """Something to do; the lab answers with ``Applied`` or ``Failed``."""


class Build(Command, frozen=True):
    """The first command of every lab: the network to build."""

    topology: Topology = Topology()
    links: dict[str, LinkSetting] = {}
    """By name of a link, of a direction, or ``bottleneck``; later entries win."""
    congestion_controls: dict[str, str] = {}
    """Default algorithm of new sockets by host; ``cubic`` where nothing is said."""
    sample_hz: float = 50.0
    seed: int = 1
    """For random loss and jitter."""
    reserved: list[str] = []
    """Names of traffic that a script is going to start, in the order of its file.

    The lab gives them to nothing else.
    """
    traces: bool = False
    """Whether flows are going to be traced, for which the lab then gets ready beforehand."""
    label: str = ""
    """What files that the lab writes are called; empty: after the moment."""
    algorithms: dict[str, str] = {}
    """The user's own congestion controls by name: the SHA-256 of each source, empty: not known.

    The files themselves are named on the lab's command line.
    """


class StartFlow(Command, frozen=True):
    """Start a long-lived iperf3 transfer from ``src`` to ``dst``."""

    flow: str | None = None
    """Its name; None takes the next free number."""
    src: str | None = None
    """The sending host; None takes the first sender."""
    dst: str | None = None
    """The receiving host; None takes the one opposite ``src``."""
    cc: str | None = None
    """The congestion control; None takes the sending host's default."""
    streams: int = 1
    """Parallel connections."""
    bytes: int | None = None
    """Stop after so many bytes of payload."""
    duration_s: float | None = None
    """Stop after so long."""
    ecn: bool = False
    """Ask for ECN as its connections open (RFC 3168); some algorithms ask by themselves."""
    monitor: bool = False
    """Follow each of its packets from host to host: one-way delay, what arrives, what is lost."""


class StopFlow(Command, frozen=True):
    """End a flow."""

    flow: str


class StartDownload(Command, frozen=True):
    """Fetch ``bytes`` from a web server on ``src`` with wget on ``dst``."""

    download: str | None = None
    src: str | None = None
    dst: str | None = None
    cc: str | None = None
    bytes: int = 177_669


class StopDownload(Command, frozen=True):
    """Break a download off."""

    download: str


class StartPing(Command, frozen=True):
    """Ping ``dst`` from ``src``."""

    ping: str | None = None
    src: str | None = None
    dst: str | None = None
    interval_s: float = 0.2
    count: int | None = None


class StopPing(Command, frozen=True):
    """End a ping."""

    ping: str


class StartUdp(Command, frozen=True):
    """Send UDP packets from ``src`` to ``dst`` at a constant rate: cross traffic."""

    udp: str | None = None
    """Its name; None takes the next free one: ``u1``, ``u2`` …"""
    src: str | None = None
    dst: str | None = None
    rate_bps: int = 1_000_000
    """Bits of payload a second."""
    packet_bytes: int = 1024
    """Payload of each packet; more than fits the links' MTU goes in fragments."""
    duration_s: float | None = None
    """Stop after so long."""
    monitor: bool = False
    """As of a flow."""


class StopUdp(Command, frozen=True):
    """End cross traffic."""

    udp: str


class SetCongestionControl(Command, frozen=True):
    """Switch a running flow, or the default of a host's new sockets; exactly one is named."""

    cc: str
    flow: str | None = None
    host: str | None = None


class SetQdisc(Command, frozen=True):
    """Replace the queue in front of a link while traffic flows; the rate stays."""

    qdisc: Qdisc
    link: str = BOTTLENECK
    traffic_class: str | None = None
    """Whose queue, where the link has classes."""


class SetClasses(Command, frozen=True):
    """Put several queues in front of a link, each with a share of its rate, or one again.

    The queues begin empty, and what waited in front of the link is lost.
    """

    classes: list[TrafficClass]
    link: str = BOTTLENECK


class SetLink(Command, frozen=True):
    """Change rate, delay, jitter, loss or marking of a link; the queue stays."""

    link: str = BOTTLENECK
    rate: int | None = None
    delay_us: int | None = None
    jitter_us: int | None = None
    loss: float | None = None
    mark: int | None = None


class StartCapture(Command, frozen=True):
    """Write the packets of a link, both ways, to a pcapng file where the lab's user wants them.

    They are taken where the packets of ``link`` leave, after the queue, and those of the other
    direction where they come in, before any delay. Both directions of a link are taken at the
    bottleneck's queue, or else at the router.
    """

    link: str = BOTTLENECK
    capture: str | None = None
    """Its name; None takes the next free one: ``c1``, ``c2`` …"""
    snaplen: int = 128
    """Bytes kept of each packet: all headers, and little more."""
    max_bytes: int = 50_000_000
    """The file ends before it would be longer."""


class StopCapture(Command, frozen=True):
    """End a capture."""

    capture: str


class TraceFlow(Command, frozen=True):
    """Tell of every segment that comes back to the sender of a flow or download, until it ends.

    ``TraceSamples`` and ``CaStateChanged`` of each of its connections follow.
    """

    flow: str


class UntraceFlow(Command, frozen=True):
    """End that; sampling goes on."""

    flow: str


class Mark(Command, frozen=True):
    """Put a remark on the time axis."""

    text: str


AnyCommand: TypeAlias = (
    Build
    | StartFlow
    | StopFlow
    | StartDownload
    | StopDownload
    | StartPing
    | StopPing
    | StartUdp
    | StopUdp
    | SetCongestionControl
    | SetQdisc
    | SetClasses
    | SetLink
    | StartCapture
    | StopCapture
    | TraceFlow
    | UntraceFlow
    | Mark
)


# --- events ---------------------------------------------------------------------------------


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag=_words
):
    """Something that happened in the lab at ``t``."""

    t: Moment


class Hello(Event, frozen=True):
    """The first event of every stream and so the first line of every recording."""

    format: Count
    """Version of the stream's format; see ``wire.FORMAT``."""
    version: str
    """ccplay's own version."""
    wall_time: float
    """Unix time at ``t`` = 0."""
    sample_hz: Annotated[float, msgspec.Meta(ge=1e-3, le=1e6)]
    capabilities: Capabilities
    network: Network
    build: Build | None = None
    """What was asked for; None in recordings made before it was kept."""


class Building(Event, frozen=True):
    """Progress while the network builds: ``done`` of ``total`` steps, ``step`` under way."""

    step: str
    done: int
    total: int


class Ready(Event, frozen=True):
    """The network stands and commands are taken."""


class LinkChanged(Event, frozen=True):
    """What a direction of a link does now, read back from the kernel."""

    link: str
    setting: LinkSetting
    offloads: bool
    """TSO, GSO and GRO are on, so packets in the queue may be up to 64 KB."""
    delay_engine: str
    """``netem``, ``delay line`` or, without any added delay, loss or jitter, ``none``."""


class HostChanged(Event, frozen=True):
    """The default congestion control of a host's new sockets."""

    host: str
    cc: str


class FlowStarted(Event, frozen=True):
    """The connections of a flow are open. Stream 2 samples as ``flow/2`` and so on."""

    flow: Name
    src: str
    dst: str
    cc: str
    port: int
    """The receiver's TCP port."""
    streams: Annotated[int, msgspec.Meta(ge=1, le=128)] = 1
    """At most as many as iperf3 can have."""
    ecn: bool = False
    """Both ends have agreed on ECN: packets are marked rather than dropped where a queue can."""


class FlowEnded(Event, frozen=True):
    """A flow is over. ``error`` says why when nobody asked for it."""

    flow: str
    bytes: int
    """Payload acknowledged, all streams together."""
    duration_s: float
    retransmits: int
    """Segments."""
    sent: Count = 0
    """Payload sent, what was sent again included; 0 in recordings made before it was told."""
    error: str | None = None
    monitored: Monitored | None = None
    """None where nobody asked for it, or it is not to be had."""


class Misbehaved(Event, frozen=True):
    """For some seconds by now a flow's congestion control has done it no good, or no more."""

    flow: str
    """The connection: ``flow/2`` is stream 2."""
    cc: str
    wrong: str = ""
    """What it does, such as ``keeps cwnd at 1``; empty: not any more, or not this program."""


class DownloadStarted(Event, frozen=True):
    """wget has been started under ``cc``; its TCP samples travel under ``download``."""

    download: Name
    src: str
    dst: str
    bytes: int
    cc: str = ""


class DownloadProgress(Event, frozen=True):
    """How many bytes of a download have arrived."""

    download: str
    bytes: int


class DownloadEnded(Event, frozen=True):
    """A download is over after ``duration_s`` of wget's own clock."""

    download: str
    bytes: int
    duration_s: float
    error: str | None = None


class PingStarted(Event, frozen=True):
    """ping(8) runs."""

    ping: Name
    src: str
    dst: str
    interval_s: float


class PingSample(Event, frozen=True):
    """One answer to a ping, or None for one that did not come back."""

    ping: str
    seq: int
    rtt_us: Duration | None


class PingEnded(Event, frozen=True):
    """A ping is over."""

    ping: str
    sent: int
    lost: int
    error: str | None = None


class UdpStarted(Event, frozen=True):
    """The first packets of cross traffic are being sent."""

    udp: str
    src: str
    dst: str
    rate_bps: int
    packet_bytes: int
    port: int
    """The receiver's UDP port."""


class UdpEnded(Event, frozen=True):
    """Cross traffic is over."""

    udp: str
    sent: int
    """Packets, as the sender counted them."""
    received: int
    """Packets, as the receiver counted them; it may leave the last one or two unread."""
    jitter_us: Duration | None
    """The receiver's, smoothed as in RFC 3550; None where it could not tell."""
    duration_s: float
    """How long the sender sent."""
    error: str | None = None
    monitored: Monitored | None = None
    """As of a flow."""


class InterfaceCounters(Event, frozen=True):
    """What each interface of the network has done since it was made: one array a field.

    It comes once, when all traffic has ended.
    """

    interface: list[str]
    node: list[str]
    link: list[str]
    """The direction that packets leave on."""
    sent: list[Count]
    """Packets."""
    sent_bytes: list[Count]
    received: list[Count]
    received_bytes: list[Count]
    dropped: list[Count]
    """Packets that its queue did not take or threw away, which are not among those sent."""
    lost: list[Count | None]
    """Packets sent that its link lost on purpose; None where the kernel does not count them."""


class CaptureStarted(Event, frozen=True):
    """Packets of a link are being written to a file."""

    capture: str
    link: str
    """The direction whose packets are taken as they leave."""
    path: str
    """Where the file is; with ``HOST:`` in front where the lab runs on another machine."""


class CaptureEnded(Event, frozen=True):
    """A capture is over, and its file complete."""

    capture: str
    path: str
    packets: int
    bytes: int
    """Length of the file."""
    dropped: int
    """Packets that the kernel could not keep for it."""
    full: bool = False
    """The file has reached its bound."""
    error: str | None = None
    """Why it ended when neither its bound nor anybody asked for it."""


class TraceStarted(Event, frozen=True):
    """From now on every segment that comes to the sender of a flow or download is told of."""

    flow: str


class TraceEnded(Event, frozen=True):
    """A trace is over: the flow has ended, or somebody asked for it."""

    flow: str
    segments: Count
    """Of how many it told."""


class TraceLost(Event, frozen=True):
    """Segments of traced flows were not told of: too fast to read, or the kernel ran no BPF."""

    segments: Count
    """How many are missing, of all traces together."""


class TcpSamples(Value, frozen=True):
    """``struct tcp_info`` of every sending socket at one sweep: one array a field.

    Names, units and meanings are those of include/uapi/linux/tcp.h; see ``ss(8)`` too.
    """

    flow: list[str]
    cc: list[str]
    ca_state: list[Count]
    """0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss."""
    cwnd: list[Count]
    ssthresh: list[Count | None]
    srtt_us: list[Count]
    rttvar_us: list[Count]
    min_rtt_us: list[Count]
    """0 where none has been measured yet."""
    mss: list[Count]
    unacked: list[Count]
    lost: list[Count]
    retrans: list[Count]
    total_retrans: list[Count]
    pacing_rate: list[Count]
    """Bits per second; 0 where nothing limits it."""
    delivery_rate: list[Count]
    """Bits per second."""
    bytes_acked: list[Count]
    bytes_sent: list[Count]
    delivered_ce: list[Count]


class QdiscSamples(Value, frozen=True):
    """Every sampled queue at one sweep: one array a field. Counters only grow.

    A link with classes has a row of its own, of kind ``htb``, with the sums, and one for each
    class, called ``LINK CLASS``: ``r->h2 bulk``.
    Where a discipline is replaced its counters start anew in the kernel, not here.
    """

    link: list[str]
    kind: list[str]
    backlog: list[Count]
    qlen: list[Count]
    drops: list[Count]
    ecn_marks: list[Count | None]
    """None where nothing counts marks: neither the discipline nor, in its own row, the link."""
    overlimits: list[Count]
    requeues: list[Count]
    bytes: list[Count]
    packets: list[Count]


class Sweep(Event, frozen=True):
    """One tick of the probe: all flows and all queues, read together."""

    tcp: TcpSamples | None = None
    qdisc: QdiscSamples | None = None
    own: dict[Variable, list[Count | None]] = {}
    """What congestion controls say of themselves: by name a list over the flows of ``tcp``.

    None where a flow's algorithm has no such variable, or does not know it. The kernel's are those
    of include/uapi/linux/inet_diag.h, in its units but for ``bbr_bw_bps``, which is in bits per
    second; gains are of 256, ``dctcp_alpha`` is of 1024. The names of BPF programs' own say their
    unit; see ``variables``. Of a flow that is monitored there is ``monitor_one_way_delay_us``
    beside them: the mean of what has arrived since the sweep before.
    """


Row: TypeAlias = Count | list[Step | None] | dict[int, Count | None] | None
"""A field of one flow or queue over several sweeps: one value where it stayed the same.

An array is its first value, then what each sweep adds. None is not known; what comes after it is
added to the last value that is, or to 0 where there is none. An object, where it changed seldom,
has the value by the number of the sweep, from 0, since which it holds.
"""


class TcpRows(Value, frozen=True):
    """``TcpSamples`` over several sweeps: of every field one row a flow."""

    flow: list[str]
    cc: list[str]
    fields: dict[str, list[Row]]


class QdiscRows(Value, frozen=True):
    """``QdiscSamples`` over several sweeps: of every field one row a queue."""

    link: list[str]
    kind: list[str]
    fields: dict[str, list[Row]]


class Sweeps(Event, frozen=True):
    """The sweeps of some seconds, the first at ``t``, as recordings keep them; see ``blocks``.

    All of them have the same flows and links, with the same algorithms and disciplines.
    """

    after_us: list[Count]
    """From each sweep to the next."""
    tcp: TcpRows | None = None
    qdisc: QdiscRows | None = None
    own: dict[Variable, list[Row]] = {}


class TraceSamples(Event, frozen=True):
    """Segments that came to the sender, nearly all of them ACKs, the first of them at ``t``.

    What the connection holds at the tracepoint ``tcp:tcp_probe``, where one has come and has no
    effect yet; there is none any more once either side has ended. The values of a field are
    one row, as those of a flow are in ``Sweeps``.
    """

    flow: str
    """The connection: ``flow/2`` is stream 2."""
    after_us: list[Count]
    """From each segment to the next."""
    cwnd: Row
    ssthresh: Row
    srtt_us: Row
    snd_wnd: Row
    """The window that the receiver offers, in bytes."""


class CaStateChanged(Event, frozen=True):
    """A traced connection went into another state; the tracepoint ``tcp:tcp_cong_state_set``.

    The first one of a trace is the state at its first segment.
    """

    flow: str
    ca_state: Count
    """As in ``TcpSamples``."""


class Applied(Event, frozen=True):
    """A command took effect. Its names are filled in, so that it can be played again."""

    command: AnyCommand
    took_s: float = 0.0
    """How long that took: iperf3 and wget start first, and then it has taken effect."""


class Failed(Event, frozen=True):
    """A command was refused, with the reason and what to do."""

    command: AnyCommand | None
    message: str


class Health(Event, frozen=True):
    """How well the lab itself keeps time, over the second before."""

    ticks: int
    """Sweeps made."""
    missed: int
    """Sweeps that fell out because an earlier one was late."""
    late_p50_us: float
    """How late a sweep began."""
    late_p99_us: float
    sweep_p50_us: float
    """How long a sweep took."""
    lab_cpu: float
    """CPU of the lab process and its delay line, in cores."""
    host_cpu: float
    """How much of all cores was in use, 0 to 1."""
    steal: float
    """How much of all cores the hypervisor took away, 0 to 1."""
    delay_late_p50_us: float | None = None
    """How late the delay line released packets; None where netem does it."""
    delay_late_p99_us: float | None = None
    events_dropped: int = 0
    """Events lost because nobody read them in time."""
    rate_accuracy: float | None = None
    """What left a bottleneck while its queue was never empty over what its rate allows.

    The worst link of the second, or of as many seconds as it takes to send 100 full frames;
    None where no queue stood so long, or a discipline has a rate of its own.
    """


class Log(Event, frozen=True):
    """Something worth telling a person: ``level`` is ``info``, ``warning`` or ``error``."""

    level: str
    text: str


class Ended(Event, frozen=True):
    """The last event of an orderly end."""

    reason: str


AnyEvent: TypeAlias = (
    Hello
    | Building
    | Ready
    | LinkChanged
    | HostChanged
    | FlowStarted
    | FlowEnded
    | Misbehaved
    | DownloadStarted
    | DownloadProgress
    | DownloadEnded
    | PingStarted
    | PingSample
    | PingEnded
    | UdpStarted
    | UdpEnded
    | InterfaceCounters
    | CaptureStarted
    | CaptureEnded
    | TraceStarted
    | TraceEnded
    | TraceLost
    | TraceSamples
    | CaStateChanged
    | Sweep
    | Sweeps
    | Applied
    | Failed
    | Health
    | Log
    | Ended
)
